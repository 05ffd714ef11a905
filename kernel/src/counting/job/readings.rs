//! What tasks read of their counts while they run.

use super::super::contexts::{ContextError, Contexts};
use super::super::owner::Claim;
use super::super::{Count, Platform};
use super::{Held, Part, value};
use crate::tasks::Read;
use alloc::string::String;
use alloc::vec::Vec;
use protocol::job::limits::MAX_READINGS;
use protocol::record::{ChangedEvent, CountReading, StaleReading};

/// The readings of one processor.
#[derive(Clone, Debug)]
pub(super) struct Readings {
    rows: Vec<CountReading>,
    stale: Vec<StaleReading>,
    dropped: u64,
    changed: Vec<ChangedEvent>,
    /// What each task has read last: the claim, and its set.
    last: Vec<Option<(Claim, u32)>>,
}

impl Readings {
    /// Room for as many as a record takes: a task reads in an interrupt.
    pub(super) fn new(tasks: u16) -> Self {
        let last = alloc::vec![None; usize::from(tasks)];
        let (rows, stale) = (Vec::with_capacity(MAX_READINGS), Vec::with_capacity(MAX_READINGS));
        Self { rows, stale, dropped: 0, changed: Vec::new(), last }
    }

    /// A task reads its count of event number `event` of the set that counts it, in the job's order. `None`: no set counts it, the
    /// set does not count the event, or the event had no counter yet. If it read another's count before, it is told that first.
    pub(super) fn read(
        &mut self,
        [task, event]: [u64; 2],
        held: &[Held],
        begin: u64,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<Option<Read>, ContextError> {
        let Ok(task) = u16::try_from(task) else { return Ok(None) };
        let (counts_now, tsc) = (contexts.counts_of(task), platform.tsc().wrapping_sub(begin));
        if let Some((before, set)) = self.last.get_mut(usize::from(task)).and_then(Option::take)
            && counts_now != Some(before)
        {
            let [acquired, generation] = contexts.ended(&before);
            let row = StaleReading { task, set, tsc, acquired, generation };
            match self.stale.len() < self.stale.capacity() {
                true => self.stale.push(row),
                false => self.dropped += 1,
            }
            return Ok(Some(Read::Stale { acquired, generation }));
        }
        let Some(claim) = counts_now else { return Ok(None) };
        let Some((set, request)) = place(held, contexts, &claim, event) else { return Ok(None) };
        let Some([own, children]) = contexts.family(&claim, task, request, platform)? else {
            return Ok(None);
        };
        if let Some(last) = self.last.get_mut(usize::from(task)) {
            *last = Some((claim, set));
        }
        let row = CountReading {
            task,
            set,
            event: request as u32,
            changed: self.changed.len() as u32,
            tsc,
            own: value(&own, 0),
            children: value(&children, 0),
        };
        match self.rows.len() < self.rows.capacity() {
            true => self.rows.push(row),
            false => self.dropped += 1,
        }
        let both = own.scaled().zip(Count::scaled(&children));
        Ok(both.map(|(own, children)| Read::Counts { own, children }))
    }

    /// Another event comes to the place of one, in the kernel between two tasks: what is read from here on is of that.
    pub(super) fn changes(&mut self, [set, event]: [usize; 2], was: String) {
        self.changed.push(ChangedEvent { set: set as u32, event: event as u32, was });
    }

    /// The readings, and how many found no room.
    pub(super) fn rows(&mut self, part: &mut Part) {
        (part.readings, part.stale) =
            (core::mem::take(&mut self.rows), core::mem::take(&mut self.stale));
        part.readings_dropped = self.dropped;
        part.changed = core::mem::take(&mut self.changed);
    }
}

/// The set of a claim by its number, and which of its requests is event number `event` of the job.
fn place(held: &[Held], contexts: &Contexts, claim: &Claim, event: u64) -> Option<(u32, usize)> {
    let is_of =
        |held: &&Held| held.bindings.iter().any(|&binding| contexts.claim(binding) == Some(*claim));
    let held = held.iter().find(is_of)?;
    let request = held.events.iter().position(|&number| number as u64 == event)?;
    Some((held.number as u32, request))
}
