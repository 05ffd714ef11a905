//! Counters for the events of a snippet. All of them are counted at once.

use alloc::vec::Vec;
use arch::pmu::{Capabilities, Counter, Selection};
use protocol::event::Event;
use thiserror::Error;

/// Why an event cannot be counted.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum EventError {
    /// The processor has nothing that counts it.
    #[error("event {0} cannot be counted: this processor has no counter for it")]
    NoSuchEvent(Event),
    /// More events than counters.
    #[error("event {0} cannot be counted along with the others: all {1} counters are taken")]
    NoCounterLeft(Event, u32),
}

/// A counter for each event, in order. Fixed counters are used where they count the event, general-purpose ones for the
/// rest.
///
/// # Errors
/// The first event that finds no counter.
pub fn assign(
    events: &[Event],
    has: &Capabilities,
) -> Result<Vec<(Counter, Selection)>, EventError> {
    let mut free = has.generals();
    let mut taken = Vec::with_capacity(events.len());
    for &event in events {
        let (fixed, selection) = match (event, has.is_intel()) {
            (Event::Instructions, _) => (Some(0), Some(Selection::of(0xc0, 0))),
            (Event::Cycles, true) => (Some(1), Some(Selection::of(0x3c, 0))),
            // AMD: cycles not in halt.
            (Event::Cycles, false) => (None, Some(Selection::of(0x76, 0))),
            // The general-purpose form of it ticks at another rate.
            (Event::ReferenceCycles, _) => (Some(2), None),
            (Event::Raw { event, umask }, _) => (None, Some(Selection::of(event, umask))),
        };
        let fixed = fixed.map(Counter::Fixed).filter(|&counter| {
            has.has(counter) && !taken.iter().any(|&(other, _)| other == counter)
        });
        let general = || {
            selection.ok_or(EventError::NoSuchEvent(event))?;
            free.next().ok_or(EventError::NoCounterLeft(event, has.general.count_ones()))
        };
        let counter = fixed.map_or_else(general, Ok)?;
        taken.push((counter, selection.unwrap_or(Selection::of(0, 0))));
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arch::pmu::find;
    use pmu_model::{Host, Model, Pmu, Timing};

    fn has(model: Model) -> Capabilities {
        find(&mut Pmu::new(model, Host::EXAMPLE, Timing::FLAT)).unwrap()
    }

    const RAW: Event = Event::Raw { event: 0xc4, umask: 0 };

    #[test]
    fn c2_fixed_counters_are_used_where_they_fit() {
        let events = [Event::Cycles, RAW, Event::Instructions, Event::ReferenceCycles];
        let counters = |model| {
            let assigned = assign(&events, &has(model));
            assigned.map(|list| list.iter().map(|&(counter, _)| counter).collect::<Vec<_>>())
        };
        use Counter::{Fixed, General};
        assert_eq!(counters(Model::Skylake), Ok(vec![Fixed(1), General(0), Fixed(0), Fixed(2)]));
        assert_eq!(counters(Model::Zen2), Err(EventError::NoSuchEvent(Event::ReferenceCycles)));
        let amd = assign(&events[..3], &has(Model::Zen2)).unwrap();
        assert_eq!(amd.iter().map(|row| row.0).collect::<Vec<_>>(), [0, 1, 2].map(General));
        assert_eq!(amd[0].1, Selection::of(0x76, 0));
    }

    #[test]
    fn n2_the_same_event_twice_takes_two_counters_and_too_many_are_refused() {
        let twice = assign(&[Event::Instructions; 2], &has(Model::Core2)).unwrap();
        assert_eq!([twice[0].0, twice[1].0], [Counter::Fixed(0), Counter::General(0)]);
        let error = assign(&[RAW; 3], &has(Model::Core2)).unwrap_err();
        assert_eq!(error, EventError::NoCounterLeft(RAW, 2));
        assert!(error.to_string().contains("0xc4.0x00"), "{error}");
    }
}
