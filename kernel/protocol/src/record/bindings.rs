//! When sets of a count had the counters, and readers of counts that were no longer theirs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A moment of a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BindMoment {
    /// TSC ticks since counting began on the processor.
    pub tsc: u64,
    /// The same in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub us: Option<u64>,
    /// The `at-us` or `until-us` that it was the moment of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_us: Option<u64>,
    /// Timer ticks on the processor until then. One at which something happened counts.
    pub tick: u64,
    /// The marker that a task reached; absent: it was before the tasks started, or at the tick.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marker: Option<u32>,
    /// The task that reached it, as an index into the item's tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<u16>,
}

/// A time for which a set had the counters of a processor.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountBinding {
    /// The processor.
    pub processor: u32,
    /// The generation of ownership in which it acquired them.
    pub generation: u64,
    /// Since when it had waited for them; absent: it got them at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited: Option<BindMoment>,
    /// When it got them.
    pub since: BindMoment,
    /// When it gave them back or lost them; absent: it had them to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<BindMoment>,
    /// Name of the set that took them by force; absent: nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted_by: Option<String>,
    /// The generation that began with the eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<u64>,
    /// What each event came to in this time.
    pub raw: Vec<u64>,
}

/// A task asked for its count (`int 0x85`), and was told that the set whose count it read before does not count it any more.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StaleReading {
    /// The task, as an index into the item's tasks.
    pub task: u16,
    /// The set that it had read, as an index into the item's sets.
    pub set: u32,
    /// TSC ticks since counting began.
    pub tsc: u64,
    /// The generation in which that set had acquired the counters, which the task got in RAX.
    pub acquired: u64,
    /// The generation in which it lost them, which the task got in RDX.
    pub generation: u64,
}

impl super::CountResult {
    /// What sets came to each time that they had the counters, by the names of its figures. The bindings of a set on all
    /// processors are numbered from 1.
    #[must_use]
    pub fn named_bindings(&self) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        // Where events took turns, what was counted is not all there was.
        for set in self.sets.iter().filter(|set| set.groups == 1) {
            for (binding, number) in set.bindings.iter().zip(1..) {
                let events = set.events.iter().zip(&binding.raw);
                let named = |(event, raw): (&super::CountedEvent, &u64)| {
                    (format!("{}: {}, binding {number}", set.name, event.event), *raw)
                };
                all.extend(events.map(named));
            }
        }
        all
    }
}
