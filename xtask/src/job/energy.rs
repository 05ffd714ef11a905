//! Energy among the events of tasks: it takes no counter, and is of the whole item.

use crate::events::EventText;
use ::events::energy;
use ::events::parse::parse_event;

/// Whether a text is energy.
pub(super) fn is_energy(event: &EventText) -> bool {
    parse_event(&event.to_string()).is_ok_and(|request| energy::of(&request).is_some())
}

/// Adds energy, each once.
pub(super) fn add(energy: &mut Vec<EventText>, more: impl IntoIterator<Item = EventText>) {
    for one in more {
        if !energy.contains(&one) {
            energy.push(one);
        }
    }
}
