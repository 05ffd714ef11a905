//! What tasks read of their counts while they run.

use super::super::contexts::{ContextError, Contexts};
use super::super::owner::Claim;
use super::super::{Count, Platform};
use super::{Held, value};
use crate::tasks::Read;
use alloc::vec::Vec;
use protocol::limits::MAX_READINGS;
use protocol::record::CountReading;

/// The readings of one processor.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    rows: Vec<CountReading>,
    dropped: u64,
}

impl Readings {
    /// Room for as many as a record takes: a task reads in an interrupt.
    pub(super) fn new() -> Self {
        Self { rows: Vec::with_capacity(MAX_READINGS), dropped: 0 }
    }

    /// A task reads its count of event number `event` of the set that counts it, in the job's order. `None`: no set counts it, the
    /// set does not count the event, or the event had no counter yet.
    pub(super) fn read(
        &mut self,
        [task, event]: [u64; 2],
        held: &[Held],
        begin: u64,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<Option<Read>, ContextError> {
        let Ok(task) = u16::try_from(task) else { return Ok(None) };
        let Some(claim) = contexts.counts_of(task) else { return Ok(None) };
        let Some((set, request)) = place(held, &claim, event) else { return Ok(None) };
        let Some([own, children]) = contexts.family(&claim, task, request, platform)? else {
            return Ok(None);
        };
        let row = CountReading {
            task,
            set,
            event: request as u32,
            tsc: platform.tsc().wrapping_sub(begin),
            own: value(&own),
            children: value(&children),
        };
        match self.rows.len() < self.rows.capacity() {
            true => self.rows.push(row),
            false => self.dropped += 1,
        }
        let both = own.scaled().zip(Count::scaled(&children));
        Ok(both.map(|(own, children)| Read { own, children }))
    }

    /// The readings, and how many found no room.
    pub(super) fn rows(self) -> (Vec<CountReading>, u64) {
        (self.rows, self.dropped)
    }
}

/// The set of a claim by its number, and which of its requests is event number `event` of the job.
fn place(held: &[Held], claim: &Claim, event: u64) -> Option<(u32, usize)> {
    let held = held.iter().find(|held| held.claims.contains(claim))?;
    let request = held.events.iter().position(|&number| number as u64 == event)?;
    Some((held.number as u32, request))
}
