//! What lies between processors, as measured.

use super::Times;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What lies between the processors. Times are ticks of the TSC.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoreFacts {
    /// Ticks of the TSC in a second.
    pub tsc_hz: u64,
    /// The processors, in the order of the rows and columns below.
    pub processors: Vec<CorePlace>,
    /// One processor runs at a time, as below QEMU's translator: times are those of its turns.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_turn: bool,
    /// A line that goes there and back, by instruction.
    pub matrices: Vec<LineMatrix>,
    /// Processors that all change one line at the same time.
    pub contention: Vec<Contention>,
    /// How long a processor that waits takes to answer.
    pub wakes: Vec<Wake>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

impl CoreFacts {
    /// The ways of waiting that were measured, each once.
    #[must_use]
    pub fn ways(&self) -> Vec<(Waiting, Option<u32>)> {
        let mut all: Vec<(Waiting, Option<u32>)> = Vec::new();
        for one in &self.wakes {
            if !all.contains(&(one.waiting, one.hint)) {
                all.push((one.waiting, one.hint));
            }
        }
        all
    }

    /// The processors that waited in this way.
    pub fn wakes_by(&self, way: (Waiting, Option<u32>)) -> impl Iterator<Item = &Wake> {
        self.wakes.iter().filter(move |one| (one.waiting, one.hint) == way)
    }
}

/// A processor, and where it stands.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CorePlace {
    /// Its number.
    pub number: u32,
    /// Its local APIC's id.
    pub apic_id: u32,
    /// Its core: processors of the same number share one.
    pub core: u32,
    /// Its package.
    pub package: u32,
}

/// How a line is taken.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LineAccess {
    /// Waits by loads, answers by a store.
    Plain,
    /// Waits by loads, answers by `lock xadd`.
    Xadd,
    /// Waits and answers by `lock cmpxchg`.
    Cmpxchg,
}

impl LineAccess {
    /// All.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Xadd, Self::Cmpxchg];

    /// Its name in figures and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Xadd => "lock xadd",
            Self::Cmpxchg => "lock cmpxchg",
        }
    }
}

/// A line between each two processors.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineMatrix {
    /// How it is taken.
    pub by: LineAccess,
    /// How often it goes there and back in a sample.
    pub rounds: u32,
    /// Samples of each pair.
    pub samples: u32,
    /// One way in tenths of a tick: least, median, and what nine of ten samples do not exceed. A row for each processor that begins and
    /// has the clock, a column for each that answers; absent: not measured, as of a processor with itself.
    pub tenths: Vec<Vec<Option<[u64; 3]>>>,
}

impl LineMatrix {
    /// The medians of all pairs.
    pub fn medians(&self) -> impl Iterator<Item = u64> {
        self.tenths.iter().flatten().flatten().map(|[_, median, _]| *median)
    }
}

/// Processors that all change one line.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contention {
    /// How they change it.
    pub by: LineAccess,
    /// For each number of processors.
    pub points: Vec<ContentionPoint>,
}

/// So many processors change one line.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentionPoint {
    /// How many.
    pub processors: u32,
    /// How often each changes it.
    pub changes: u32,
    /// From the first one's begin to the last one's end.
    pub ticks: u64,
    /// Instructions that it took in all: more than changes where some found another value than they expected.
    pub tries: u64,
}

impl ContentionPoint {
    /// Tenths of a tick that each change of the line took.
    #[must_use]
    pub fn tenths(&self) -> u64 {
        self.ticks * 10 / (u64::from(self.processors) * u64::from(self.changes)).max(1)
    }
}

/// What a processor does while it waits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// It runs a loop; an interrupt comes.
    Runs,
    /// HLT; an interrupt comes.
    Hlt,
    /// MWAIT; the line that it monitors is written to.
    Mwait,
}

impl Waiting {
    /// Its name in figures and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "interrupt",
            Self::Hlt => "hlt",
            Self::Mwait => "mwait",
        }
    }
}

/// From the command or the store by which the first processor wakes another one to the answer.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wake {
    /// What the other one does.
    pub waiting: Waiting,
    /// EAX of MWAIT: which state of sleep is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<u32>,
    /// The other one's place among the processors.
    pub processor: u32,
    /// There and back, in ticks.
    pub ticks: Times,
}
