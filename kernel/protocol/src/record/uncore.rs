//! Events of the uncore that are counted of a whole item, which runs once.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// An event of the uncore while tasks ran: of everything in a package, its other processors and devices included.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedUncore {
    /// The event, in the job's words or by the name that the job gives it.
    pub event: String,
    /// What was counted, by perf's name of the unit: `uncore_arb/config=0x181/`.
    pub name: String,
    /// The counter of the first unit, and its register.
    pub counter: String,
    /// The units of the package whose counters were summed.
    pub units: u32,
    /// Events.
    pub count: u64,
    /// TSC ticks in which they were counted, the way into the tasks and out of them included.
    pub ticks: u64,
    /// The number of the processor that read it.
    #[serde(default, skip_serializing_if = "super::count::is_boot")]
    pub reader: u32,
    /// Processors of the item in the package: it was read once for all of them. Absent: the reader alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<u32>,
}

impl CountedUncore {
    /// Counts by the event's name, over all packages; where there are several, those of each with the number of the processor that
    /// read it.
    #[must_use]
    pub fn sums(all: &[Self]) -> Vec<(String, u64)> {
        let mut sums = Vec::new();
        for (index, one) in all.iter().enumerate() {
            let same = || all.iter().filter(|other| other.event == one.event);
            if all[..index].iter().all(|other| other.event != one.event) {
                let sum = same().fold(0_u64, |sum, other| sum.saturating_add(other.count));
                sums.push((one.event.clone(), sum));
            }
            if same().nth(1).is_some() {
                sums.push((format!("{}, cpu {}", one.event, one.reader), one.count));
            }
        }
        sums
    }
}
