//! Counts over time: a row for every so many ticks, with each task's share.

use super::super::contexts::{ContextError, Contexts};
use super::super::owner::Claim;
use super::super::{CountingError, Counts, Platform, Set};
use alloc::vec::Vec;
use protocol::count;
use protocol::limits::MAX_INTERVALS;
use protocol::record::CountInterval;

/// Most figures of a series: some 10 bytes each on the serial line.
const MAX_FIGURES: usize = 5_000;

/// The rows of the series of one claim.
#[derive(Clone, Debug)]
pub(super) struct Series {
    claim: Claim,
    /// Whose events they are: the set's number.
    set: u32,
    /// Ticks of a row.
    ticks: u64,
    /// Events of a row.
    events: usize,
    /// Rows: TSC, and the raw counts: of all, then of each task.
    rows: Vec<(u64, Vec<u64>)>,
    /// How many of them are full.
    full: usize,
    dropped: u64,
    /// Raw counts in the order of a row, up to the last one.
    last: Vec<u64>,
    now: Counts,
    /// An heir's raw counts before another's are added.
    before: Vec<u64>,
}

impl Series {
    /// Room for the rows that `item` asks for; `None`: it asks for none.
    pub(super) fn new(item: &count::Count, set: &Set, claim: Claim, number: usize) -> Option<Self> {
        let ticks = match item.workload.tick_ns {
            0 => 0,
            tick_ns => item.interval_ns.div_ceil(tick_ns),
        };
        let events = set.requests().len();
        let figures = events * (1 + item.workload.tasks.len());
        // What the counters of the whole start from is no count; tasks' counts start from 0.
        let mut last: Vec<u64> = set.requests().iter().map(|request| request.preset).collect();
        last.resize(figures, 0);
        // A tick comes in an interrupt, so the rows are there beforehand.
        let rows =
            alloc::vec![(0, alloc::vec![0; figures]); MAX_INTERVALS.min(MAX_FIGURES / figures)];
        let series = Self {
            claim,
            set: number as u32,
            ticks,
            events,
            rows,
            full: 0,
            dropped: 0,
            last,
            now: Counts::new(set),
            before: alloc::vec![0; events],
        };
        (ticks > 0).then_some(series)
    }

    /// Whether a row ends with this tick.
    pub(super) fn is_due(&self, tick: u64) -> bool {
        tick.is_multiple_of(self.ticks)
    }

    /// One more, up to now.
    pub(super) fn row(
        &mut self,
        begin: u64,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let Some((tsc, row)) = self.rows.get_mut(self.full) else {
            self.dropped += 1;
            return Ok(());
        };
        // The tasks first: reading the whole counts for the kernel, so that no task has more than all.
        let of_tasks = contexts.tasks(&self.claim, platform)?;
        let raw = of_tasks.iter().flat_map(Counts::counts).map(|count| count.raw);
        let (all, tasks) = row.split_at_mut(self.events);
        tasks.iter_mut().zip(raw).for_each(|(into, raw)| *into = raw);
        contexts.session(&self.claim)?.sample(platform, &mut self.now)?;
        all.iter_mut().zip(self.now.counts()).for_each(|(into, count)| *into = count.raw);
        *tsc = self.now.tsc.wrapping_sub(begin);
        for (into, last) in row.iter_mut().zip(&mut self.last) {
            let now = *into;
            *into = now.wrapping_sub(*last);
            *last = now;
        }
        self.full += 1;
        Ok(())
    }

    /// A task exits, which `exit` adds to the counts of `heir`. The rows have them where they were counted: as the task's.
    pub(super) fn exited(
        &mut self,
        heir: u16,
        contexts: &mut Contexts,
        platform: &mut dyn Platform,
        exit: impl FnOnce(&mut Contexts, &mut dyn Platform) -> Result<(), CountingError>,
    ) -> Result<(), ContextError> {
        let counts = contexts.task(&self.claim, heir, platform)?.counts();
        self.before.iter_mut().zip(counts).for_each(|(before, count)| *before = count.raw);
        exit(contexts, platform)?;
        let counts = contexts.task(&self.claim, heir, platform)?.counts();
        let first = self.events * (1 + usize::from(heir));
        let last = self.last.iter_mut().skip(first);
        for ((last, before), count) in last.zip(&self.before).zip(counts) {
            *last = last.wrapping_add(count.raw.wrapping_sub(*before));
        }
        Ok(())
    }

    /// The rows, and how many found no room.
    pub(super) fn rows(self) -> (Vec<CountInterval>, u64) {
        let interval = |(tsc, figures): (u64, Vec<u64>)| {
            let mut parts = figures.chunks(self.events).map(<[u64]>::to_vec);
            let raw = parts.next().unwrap_or_default();
            CountInterval { tsc, raw, tasks: parts.collect(), set: self.set, processor: 0 }
        };
        (self.rows.into_iter().take(self.full).map(interval).collect(), self.dropped)
    }
}
