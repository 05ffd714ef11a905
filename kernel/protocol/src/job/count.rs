//! Counting over time: sets of events over tasks, as `perf stat` counts.

use crate::core_kind::CoreKind;
use crate::job::gate::GatePoint;
use crate::job::workload::Workload;
use alloc::borrow::Cow;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

mod schedule;

pub use schedule::{Schedule, When};

/// Events to count while tasks run.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Count<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// What is counted.
    #[serde(borrow)]
    pub requests: Vec<CountRequest<'a>>,
    /// Whether all requests have to be counted at the same time. If not, those that do not fit take turns, at each
    /// tick of the workload.
    pub together: bool,
    /// What is done at the overflow of a request with [`CountRequest::every`].
    pub at_overflow: AtOverflow,
    /// Passes through all requests after which counting ends; 0: with the tasks.
    pub passes: u64,
    /// Time between two rows of the series of counts, in nanoseconds, rounded up to ticks; 0: no series.
    pub interval_ns: u64,
    /// Time that each task may take, in microseconds; a task that takes longer is ended.
    pub limit_us: u64,
    /// What runs.
    #[serde(borrow)]
    pub workload: Workload<'a>,
    /// For whom [`Count::requests`] are counted.
    pub bind: Bind,
    /// As [`CountSet::alone`].
    pub alone: bool,
    /// Sets of their own, bound one after the other; [`Count::requests`] are empty then.
    #[serde(borrow)]
    pub sets: Vec<CountSet<'a>>,
    /// Where counting starts and stops; only what the tasks that are named do in between is counted. Empty: everything is
    /// counted, from the beginning to the end.
    pub gate: Vec<GatePoint>,
    /// Whether a start that comes while its task is counted has to be stopped as well.
    pub nested: bool,
    /// Energy that is read before and after, by the names of the crate `events`.
    #[serde(borrow)]
    pub energy: Vec<Cow<'a, str>>,
    /// Events of the uncore that are read before and after: one each, or several in braces that are to be counted at the same time.
    #[serde(borrow)]
    pub uncore: Vec<Cow<'a, str>>,
    /// Whether lines of the serial line are taken while it runs: [`crate::console`].
    pub console: bool,
}

impl Count<'_> {
    /// The sets: those of its own, or the one that the item itself is.
    #[must_use]
    pub fn all_sets(&self) -> Vec<SetOf<'_>> {
        if !self.sets.is_empty() {
            let sets = self.sets.iter().map(|set| SetOf {
                requests: &set.requests,
                together: set.together,
                bind: &set.bind,
                alone: set.alone,
                force: set.force,
                gated: false,
                at_overflow: self.at_overflow,
                schedule: set.schedule,
            });
            return sets.collect();
        }
        let (together, bind, gated) = (self.together, &self.bind, !self.gate.is_empty());
        let (requests, alone, at_overflow) = (&self.requests[..], self.alone, self.at_overflow);
        let (force, schedule) = (false, Schedule::default());
        Vec::from([SetOf { requests, together, bind, alone, force, gated, at_overflow, schedule }])
    }
}

/// One set of an item, wherever it stands.
#[derive(Clone, Copy, Debug)]
pub struct SetOf<'a> {
    /// What is counted.
    pub requests: &'a [CountRequest<'a>],
    /// As [`Count::together`].
    pub together: bool,
    /// For whom.
    pub bind: &'a Bind,
    /// As [`CountSet::alone`].
    pub alone: bool,
    /// As [`CountSet::force`].
    pub force: bool,
    /// Whether counting starts and stops at addresses: [`Count::gate`].
    pub gated: bool,
    /// As [`Count::at_overflow`].
    pub at_overflow: AtOverflow,
    /// When it is counted.
    pub schedule: Schedule,
}

/// A set of events that is counted for somebody.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CountSet<'a> {
    /// Name in the report.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// What is counted.
    #[serde(borrow)]
    pub requests: Vec<CountRequest<'a>>,
    /// As [`Count::together`].
    pub together: bool,
    /// For whom.
    pub bind: Bind,
    /// Of tasks that are bound: whether children that they start are left out.
    pub alone: bool,
    /// Whether sets that are in the way, bound before it, are evicted.
    pub force: bool,
    /// When it wants the counters.
    pub schedule: Schedule,
}

/// Sets of an item.
pub const MAX_SETS: usize = 16;

/// For whom a set counts.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Bind {
    /// Everything on each processor that a task of the item runs on.
    #[default]
    System,
    /// Everything on all processors in use.
    AllProcessors,
    /// Everything on the processor of this number.
    Processor(u16),
    /// Everything on one processor of a kind of core: the one of this number among them, from 0 on.
    Core(CoreKind, u16),
    /// These tasks by their indices, and children that they start; nothing else.
    Tasks(Vec<u16>),
}

/// One event.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct CountRequest<'a> {
    /// The event, in the syntax of the crate `events`.
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    /// Where its count starts.
    pub preset: u64,
    /// Overflows after each so many events.
    pub every: Option<u64>,
    /// Requests, by their number, that count nothing before this one's first overflow.
    pub starts: Vec<u16>,
    /// Counted in every pass.
    pub correlate: bool,
}

/// What a run does when a request overflows.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AtOverflow {
    /// The same requests count on.
    #[default]
    Same,
    /// The next ones count.
    Next,
    /// Nothing counts any more.
    Stop,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::any_job;
    use crate::job::{Item, Job};
    use proptest::prelude::*;

    proptest! {
        /// An item's sets are those that it names; without any it is one itself, gated if it has a gate.
        #[test]
        fn c3_an_item_without_sets_is_one(job in any_job()) {
            let Job { items, .. } = &job;
            for item in items {
                let Item::Count(count) = item else { continue };
                let sets = count.all_sets();
                let bound: Vec<_> = sets.iter().map(|set| (set.bind, set.force, set.gated)).collect();
                if count.sets.is_empty() {
                    prop_assert_eq!(bound, [(&count.bind, false, !count.gate.is_empty())]);
                    prop_assert_eq!(sets[0].requests, &count.requests[..]);
                } else {
                    let own = count.sets.iter().map(|set| (&set.bind, set.force, false));
                    prop_assert_eq!(bound, own.collect::<Vec<_>>());
                }
            }
        }
    }
}
