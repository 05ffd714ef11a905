//! Counts over time: for each set a row for every so many ticks, with each task's share.

use super::super::contexts::{ContextError, Contexts};
use super::super::owner::Claim;
use super::super::{Counts, Platform, Set};
use super::Share;
use alloc::vec::Vec;
use protocol::job::count;
use protocol::job::limits::MAX_INTERVALS;
use protocol::record::CountInterval;

/// Most figures of the series of one processor: some 10 bytes each on the serial line.
const MAX_FIGURES: usize = 5_000;
/// Most figures of all processors: of 20 digits at most, so that they fit into a line of `protocol::stream::MAX_LINE_BYTES`.
const MAX_ALL_FIGURES: usize = 40_000;

/// The series of all sets that one processor counts.
#[derive(Clone, Debug)]
pub(super) struct AllSeries {
    /// Ticks of a row.
    ticks: u64,
    all: Vec<Series>,
}

/// The rows of one set.
#[derive(Clone, Debug)]
struct Series {
    /// The set's number.
    set: u32,
    /// For whom it is counted here: the counts of all of them are the set's.
    followed: Vec<Followed>,
    /// Events of a row.
    events: usize,
    /// Rows: TSC, and the raw counts: of all, then of each task. They are 0 until something is gathered for them.
    rows: Vec<(u64, Vec<u64>)>,
    /// How many of them are full.
    full: usize,
    dropped: u64,
    now: Counts,
}

/// A claim whose counts are in the rows.
#[derive(Clone, Debug)]
struct Followed {
    claim: Claim,
    /// Raw counts in the order of a row, up to the last one.
    last: Vec<u64>,
    /// An heir's raw counts before another's are added.
    before: Vec<u64>,
}

impl AllSeries {
    /// Room for the rows that `item` asks for, in equal parts; `None`: it asks for none.
    pub(super) fn new(item: &count::Count, shares: &[Share]) -> Option<Self> {
        let ticks = match item.workload.tick_ns {
            0 => 0,
            tick_ns => item.interval_ns.div_ceil(tick_ns),
        };
        let tasks = item.workload.tasks.len();
        let of = |share: &Share| share.set.requests().len() * (1 + tasks);
        let figures: usize = shares.iter().map(of).sum();
        let processors = shares.first().map_or(1, |share| share.processors);
        // A tick comes in an interrupt, so the rows are there beforehand.
        let figures = MAX_FIGURES.min(MAX_ALL_FIGURES / processors.max(1)) / figures.max(1);
        let most = MAX_INTERVALS.min(figures).max(1);
        let all = shares.iter().map(|share| Series::new(share, tasks, most)).collect();
        (ticks > 0).then_some(Self { ticks, all })
    }

    /// A claim of set number `number`, which is `set`, of so many tasks.
    pub(super) fn follow(&mut self, number: usize, set: &Set, claim: Claim, tasks: u16) {
        let series = self.all.iter_mut().filter(|series| series.set as usize == number);
        series.for_each(|series| series.followed.push(Followed::new(claim, set, tasks.into())));
    }

    /// One more row of each set, up to now, if one ends with this tick.
    pub(super) fn tick(
        &mut self,
        tick: u64,
        begin: u64,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        match tick.is_multiple_of(self.ticks) {
            true => self.row(begin, contexts, platform),
            false => Ok(()),
        }
    }

    /// One more row of each set.
    pub(super) fn row(
        &mut self,
        begin: u64,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.gather(begin, contexts, platform)?;
        self.end_row();
        Ok(())
    }

    /// Adds what was counted up to now to the row of each set that ends next.
    pub(super) fn gather(
        &mut self,
        begin: u64,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.all.iter_mut().try_for_each(|series| series.gather(begin, contexts, platform))
    }

    /// Ends the row of each set with what was gathered for it.
    pub(super) fn end_row(&mut self) {
        self.all.iter_mut().for_each(Series::end_row);
    }

    /// The counts of request number `index` of a claim have begun anew, from `preset`.
    pub(super) fn begins_anew(&mut self, claim: &Claim, index: usize, preset: u64) {
        for series in &mut self.all {
            let mut each = series.followed.iter_mut();
            let Some(followed) = each.find(|one| one.claim == *claim) else { continue };
            let of_request = followed.last.iter_mut().skip(index).step_by(series.events);
            (0..)
                .zip(of_request)
                .for_each(|(place, last)| *last = if place == 0 { preset } else { 0 });
        }
    }

    /// Does `work` with each claim that a series follows.
    fn each(
        &mut self,
        mut work: impl FnMut(&mut Followed) -> Result<(), ContextError>,
    ) -> Result<(), ContextError> {
        let mut all = self.all.iter_mut().flat_map(|series| &mut series.followed);
        all.try_for_each(|followed| unless_lost(work(followed)))
    }

    /// A task is about to exit, which adds its counts to those of `heir`.
    pub(super) fn exits(
        &mut self,
        heir: u16,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.each(|followed| followed.exits(heir, contexts, platform))
    }

    /// It has exited. The rows have its counts where they were counted: as the task's.
    pub(super) fn exited(
        &mut self,
        heir: u16,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.each(|followed| followed.exited(heir, contexts, platform))
    }

    /// The rows, set by set, and how many found no room.
    pub(super) fn rows(self) -> (Vec<CountInterval>, u64) {
        let dropped = self.all.iter().map(|series| series.dropped).sum();
        (self.all.into_iter().flat_map(Series::rows).collect(), dropped)
    }
}

/// What was done with a claim. A set that was evicted has counted until then.
fn unless_lost(done: Result<(), ContextError>) -> Result<(), ContextError> {
    match done {
        Err(ContextError::Owner(_)) => Ok(()),
        done => done,
    }
}

impl Series {
    fn new(share: &Share, tasks: usize, most: usize) -> Self {
        let events = share.set.requests().len();
        let rows = alloc::vec![(0, alloc::vec![0; events * (1 + tasks)]); most];
        let (now, followed) = (Counts::new(&share.set), Vec::new());
        let set = share.number as u32;
        Self { set, followed, events, rows, full: 0, dropped: 0, now }
    }

    fn gather(
        &mut self,
        begin: u64,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let Some((tsc, row)) = self.rows.get_mut(self.full) else { return Ok(()) };
        for followed in &mut self.followed {
            unless_lost(followed.add(row, &mut self.now, contexts, platform))?;
        }
        *tsc = platform.tsc().wrapping_sub(begin);
        Ok(())
    }

    fn end_row(&mut self) {
        match self.full < self.rows.len() {
            true => self.full += 1,
            false => self.dropped += 1,
        }
    }

    fn rows(self) -> impl Iterator<Item = CountInterval> {
        let (events, set) = (self.events, self.set);
        let interval = move |(tsc, figures): (u64, Vec<u64>)| {
            let mut parts = figures.chunks(events).map(<[u64]>::to_vec);
            let raw = parts.next().unwrap_or_default();
            CountInterval { tsc, raw, tasks: parts.collect(), set, processor: 0 }
        };
        self.rows.into_iter().take(self.full).map(interval)
    }
}

impl Followed {
    fn new(claim: Claim, set: &Set, tasks: usize) -> Self {
        let events = set.requests().len();
        // What the counters of the whole start from is no count; tasks' counts start from 0.
        let mut last: Vec<u64> = set.requests().iter().map(|request| request.preset).collect();
        last.resize(events * (1 + tasks), 0);
        Self { claim, last, before: alloc::vec![0; events] }
    }

    /// Adds what came since the last time to `row`.
    fn add(
        &mut self,
        row: &mut [u64],
        now: &mut Counts,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let mut add = |place: usize, raw: u64| {
            if let (Some(into), Some(last)) = (row.get_mut(place), self.last.get_mut(place)) {
                let more = since(last, raw);
                *into = into.wrapping_add(more);
            }
        };
        // The tasks first: reading the whole counts for the kernel, so that no task has more than all.
        let of_tasks = contexts.tasks(&self.claim, platform)?.iter().flat_map(Counts::counts);
        (self.before.len()..).zip(of_tasks).for_each(|(place, count)| add(place, count.raw));
        contexts.session(&self.claim)?.sample(platform, now)?;
        (0..).zip(now.counts()).for_each(|(place, count)| add(place, count.raw));
        Ok(())
    }

    fn exits(
        &mut self,
        heir: u16,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let counts = contexts.task(&self.claim, heir, platform)?.counts();
        self.before.iter_mut().zip(counts).for_each(|(before, count)| *before = count.raw);
        Ok(())
    }

    fn exited(
        &mut self,
        heir: u16,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let counts = contexts.task(&self.claim, heir, platform)?.counts();
        let last = self.last.iter_mut().skip(self.before.len() * (1 + usize::from(heir)));
        for ((last, before), count) in last.zip(&self.before).zip(counts) {
            *last = last.wrapping_add(count.raw.wrapping_sub(*before));
        }
        Ok(())
    }
}

/// What was counted since the `last` reading, which becomes `raw`. Between addresses more may have been taken out than was
/// counted: then it is nothing, and the next reading makes up for it.
const fn since(last: &mut u64, raw: u64) -> u64 {
    let more = raw.wrapping_sub(*last);
    if more.cast_signed() < 0 {
        return 0;
    }
    *last = raw;
    more
}

#[cfg(test)]
mod tests {
    use super::since;

    #[test]
    fn m14_a_row_is_never_below_nothing_and_rows_add_up() {
        let mut last = 100;
        let rows = [130, 127, 129, 140].map(|raw| since(&mut last, raw));
        assert_eq!((rows, last), ([30, 0, 0, 10], 140));
        // A count that wraps goes on.
        let mut last = u64::MAX - 1;
        assert_eq!((since(&mut last, 3), last), (5, 3));
    }
}
