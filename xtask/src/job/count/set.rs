//! A set of a count, as decided.

use super::event::EventTable;
use super::keys::RawSet;
use super::schedule::{Moments, schedule};
use crate::events::EventText;
use crate::job::bind::BindFile;
use crate::job::errors::Place;
use crate::job::file::Text;
use crate::job::workload::place;
use crate::metrics::Asked;
use protocol::job::count::Schedule;
use toml::Spanned;

/// A set, all decided but the numbers of tasks.
#[derive(Clone, Debug)]
pub(super) struct SetFile {
    pub(super) name: String,
    pub(super) events: Vec<EventTable>,
    /// Energy and events of the uncore among them, which are of the whole item.
    pub(super) whole: Vec<EventText>,
    /// Metrics that are asked for of it alone.
    pub(super) metrics: Vec<Asked>,
    pub(super) together: bool,
    pub(super) bind: BindFile,
    /// Whether children of tasks are counted; `None`: it does not say.
    pub(super) inherit: Option<bool>,
    pub(super) force: bool,
    /// When it is bound and released, or what is wrong with that, and where.
    pub(super) schedule: Result<Schedule, (Place, String)>,
    pub(super) place: Place,
}

impl SetFile {
    /// Decides what `raw` leaves open. `number`: its place among the sets of its item, from 1.
    pub(super) fn decide(raw: Spanned<RawSet>, number: usize, text: &Text, source: &str) -> Self {
        let place = place(text, source, &raw.span());
        let raw = raw.into_inner();
        let (at, until) = ([raw.at_us, raw.at_marker], [raw.until_us, raw.until_marker]);
        let said = schedule(&Moments { at, until, wait: raw.wait });
        let events = raw.events.into_iter().map(|event| event.0);
        let (whole, events): (Vec<_>, Vec<_>) = events.partition(EventTable::is_whole);
        Self {
            schedule: said.map_err(|(span, message)| (self::place(text, source, &span), message)),
            name: raw.name.unwrap_or_else(|| format!("set {number}")),
            events,
            whole: whole.into_iter().map(|one| one.event).collect(),
            metrics: raw.metrics,
            together: raw.together,
            bind: BindFile::decide(raw.bind, text, source),
            inherit: raw.inherit,
            force: raw.force,
            place,
        }
    }
}
