//! Which events of the uncore are counted at the same time, and on which counters.

use super::layout::Kind;
use super::{Event, Refusal, Uncore};
use alloc::vec::Vec;

/// An event with its counter.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The event.
    pub event: Event,
    /// The counter: it is the same in each unit.
    pub counter: u8,
    pub(super) kind: &'static Kind,
}

/// Events of a table of requests, which the filters are for (Linux, `skx_uncore_cha_extra_regs`): without a filter as well.
const FILTERED: [u64; 2] = [0x35, 0x36];

/// A unit has its filters once: an event that has one writes them, whatever its code is.
fn uses_filter(event: &Event) -> bool {
    event.filter != 0 || FILTERED.contains(&(event.select & 0xff))
}

impl Uncore {
    /// Whether there are registers for an event.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, event: &Event) -> Result<(), Refusal> {
        let kind = self.kind(event.unit).ok_or(Refusal::NoUnit(self.model()))?;
        let most = match kind.select {
            // A clock has no event, whatever it is called.
            0 => 0xffff,
            select => select,
        };
        match event.select & !most {
            0 if event.filter == 0 || !kind.filters.is_empty() => Ok(()),
            0 => Err(Refusal::NoFilter),
            bits => Err(Refusal::Bits(bits)),
        }
    }

    /// Puts events that [`Uncore::check`] lets through into rounds: those of a group in one, if that is possible. Each is in one round at
    /// least.
    #[must_use]
    pub fn rounds(&self, groups: &[Vec<Event>]) -> Vec<Vec<Placed>> {
        let mut rounds: Vec<Vec<Placed>> = Vec::new();
        for group in groups {
            if !self.add(&mut rounds, group) {
                for event in group {
                    let added = self.add(&mut rounds, core::slice::from_ref(event));
                    debug_assert!(added, "an event alone fits");
                }
            }
        }
        rounds
    }

    /// Adds all of these to the first round that has counters for them. Whether there can be one.
    fn add(&self, rounds: &mut Vec<Vec<Placed>>, events: &[Event]) -> bool {
        for round in rounds.iter_mut() {
            if let Some(more) = self.together(round, events) {
                *round = more;
                return true;
            }
        }
        let alone = self.together(&[], events);
        alone.is_some_and(|round| {
            rounds.push(round);
            true
        })
    }

    /// The round with these events in addition, if they fit. Those that the fewest counters count come first.
    fn together(&self, round: &[Placed], events: &[Event]) -> Option<Vec<Placed>> {
        let mut all = round.to_vec();
        let counters = |event: &Event| {
            let kind = self.kind(event.unit);
            kind.map_or(0, |kind| kind.counters_for(event.select as u8))
        };
        // Those that only some count come first, as the others fit beside them.
        let freedom = |event: &&Event| {
            let kind = self.kind(event.unit);
            let is_free =
                |kind: &Kind| kind.only.iter().all(|(only, _)| *only != event.select as u8);
            if kind.is_none_or(is_free) { u32::MAX } else { counters(event).count_ones() }
        };
        let mut sorted: Vec<&Event> = events.iter().collect();
        sorted.sort_by_key(freedom);
        for event in sorted {
            if all.iter().any(|placed| placed.event == *event) {
                continue;
            }
            let kind = self.kind(event.unit)?;
            let of_kind = || all.iter().filter(|placed| placed.event.unit == event.unit);
            let clashes =
                |placed: &Placed| uses_filter(&placed.event) && placed.event.filter != event.filter;
            if uses_filter(event) && of_kind().any(clashes) {
                return None;
            }
            let may = |counter: &u8| counters(event) >> counter & 1 != 0;
            let is_free = |counter: &u8| of_kind().all(|placed| placed.counter != *counter);
            // From the last on, as the first counts more.
            let counter = (0..kind.counters).rev().filter(may).find(is_free)?;
            all.push(Placed { event: *event, counter, kind });
        }
        Some(all)
    }
}
