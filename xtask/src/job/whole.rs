//! Energy and events of the uncore among the events of tasks: they take no counter of a processor, and are of the whole item.

use crate::events::EventText;
use ::events::parse::{parse_event, parse_list};
use ::events::{energy, uncore};
use std::borrow::Cow;

/// Whether a text is energy.
fn is_energy(event: &EventText) -> bool {
    parse_event(&event.to_string()).is_ok_and(|request| energy::of(&request).is_some())
}

/// Whether a text is an event of the uncore, or several and nothing else.
fn is_uncore(event: &EventText) -> bool {
    let items = parse_list(&event.to_string()).unwrap_or_default();
    let mut requests = items.iter().flat_map(|item| &item.requests).peekable();
    requests.peek().is_some() && requests.all(|request| uncore::of(request).is_some())
}

/// Whether a text is of the whole item.
pub(super) fn is_whole(event: &EventText) -> bool {
    is_energy(event) || is_uncore(event)
}

/// What is of the whole item, for sentences.
pub(super) fn what(event: &EventText) -> &'static str {
    if is_energy(event) { "energy" } else { "the uncore" }
}

/// Adds texts, each once.
pub(super) fn add(whole: &mut Vec<EventText>, more: impl IntoIterator<Item = EventText>) {
    for one in more {
        if !whole.contains(&one) {
            whole.push(one);
        }
    }
}

/// The texts of energy, and those of the uncore, as the item has them.
pub(super) fn split(whole: &[EventText]) -> [Vec<Cow<'static, str>>; 2] {
    let (energy, uncore): (Vec<_>, Vec<_>) = whole.iter().partition(|one| is_energy(one));
    [energy, uncore].map(|all| all.into_iter().map(|one| Cow::Owned(one.to_string())).collect())
}
