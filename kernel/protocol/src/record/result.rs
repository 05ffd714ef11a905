//! What a snippet cost, and how far to trust the figure.

use super::Series;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The measurement of one snippet.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnippetResult {
    /// Index of the item in the job.
    pub item: u32,
    /// Name of the item.
    pub name: String,
    /// Whether it met what the job expects.
    pub verdict: Verdict,
    /// What of it missed: figures out of their bounds, and events that were not counted though they had to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
    /// Executions of the body that each figure was divided by: unroll times the loop's iterations.
    pub per: u64,
    /// Measured runs of each of the two code sizes.
    pub runs: u32,
    /// The figures, one entry per event.
    pub metrics: Vec<Metric>,
    /// Events that were asked for and not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// Ticks of the TSC that finding counters for the events took; 0 without events, or if an earlier item asked for
    /// the same ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub planning: u64,
    /// Options of the machine that the job asked for, and what became of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Applied>,
    /// State that the snippet had changed and that was put back behind it, in the manuals' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// Passes without a watchdog, though the machine has one: the events took every counter.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unwatched: u32,
    /// System management interrupts that came during runs which count; absent: none, or the processor does not tell.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub smis: u32,
    /// Whether the counts come from barecount's emulated PMU.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
}

/// An option of the machine.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Applied {
    /// The option and its value, as a job writes them.
    pub option: String,
    /// Whether it was in force while the snippet ran.
    pub applied: bool,
    /// By which means, or why not.
    pub note: String,
}

fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// An event that was not counted.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Uncounted {
    /// The event in the job's words.
    pub event: String,
    /// Why.
    pub reason: String,
}

/// What missed the job's expectation: a figure out of its bounds, or an event that was not counted.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Miss {
    /// The figure: `tsc`, an event in the job's words, and whose count of it.
    pub figure: String,
    /// Least value that passes, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Greatest value that passes, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What it came to; absent if there is no such figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Why there is none; beside a value, the whole number of more than 53 bits that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a measurement met what the job expects.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did.
    Pass,
    /// It did not.
    Fail,
    /// Nothing was expected.
    #[default]
    None,
}

impl Verdict {
    /// Whether nothing was expected.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// One event's figures.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// Name of the event; `tsc` is the time stamp counter, everything else was asked for by the job.
    pub event: String,
    /// Events per execution of the body: each aggregate of the larger code size minus that of the
    /// smaller, divided by `per` of the result.
    #[serde(flatten)]
    pub value: Aggregates,
    /// True when every run of each code size gave one and the same value.
    pub deterministic: bool,
    /// The undivided series of the smaller and of the larger code size.
    pub series: [Series; 2],
    /// What was counted, and where; absent for the TSC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counting: Option<Counting>,
    /// Set for energy: the figures are in joules, those of `series` in units of the register and of all runs together. The least and
    /// the greatest value are as far from the others as cannot be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyReading>,
    /// Set for a retire latency: the figures are its mean in core cycles, over the records by which the larger code size has more than
    /// the smaller. Those of `series` are the cycles of all records of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired: Option<RetiredRecords>,
}

/// The PEBS records that a retire latency is the mean of.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetiredRecords {
    /// Records of all runs of the smaller code size, and of the larger.
    pub records: [u64; 2],
    /// Their cycles together.
    pub cycles: [u64; 2],
    /// The longest of the larger code size.
    pub longest: u16,
    /// Events from one record to the next.
    pub period: u64,
}

impl Metric {
    /// Whether both are of one event and, if it is of a whole package, of one register: one figure may have been asked for by itself
    /// and by a metric.
    #[must_use]
    pub fn is_of_same(&self, other: &Self) -> bool {
        self.event == other.event && self.reader() == other.reader()
    }

    /// The processor that read it for all processors of the item in its package, or its core: set for energy and for events of the
    /// uncore.
    #[must_use]
    pub fn reader(&self) -> Option<u32> {
        let of_energy = self.energy.as_ref().map(|energy| energy.reader);
        let uncore = self.counting.as_ref().filter(|counting| counting.units > 0);
        of_energy.or_else(|| uncore.map(|counting| counting.reader))
    }
}

/// How energy was read (RAPL).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnergyReading {
    /// The unit of the register: 14 means 2^-14 J.
    pub unit: u8,
    /// Joules of an execution by which the figure may be off: what the register moves by at once, at the end of both code sizes.
    pub resolution: f64,
    /// TSC ticks that all runs of the smaller code size took, and those of the larger.
    pub ticks: [u64; 2],
    /// TSC ticks from one update of the register to the next.
    pub update: u64,
    /// The number of the processor that read it.
    #[serde(default, skip_serializing_if = "super::count::is_boot")]
    pub reader: u32,
    /// Processors of the item in the package, or the core, that the register counts: it was read once for all of them. Absent: the
    /// reader alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<u32>,
}

/// How an event was counted.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counting {
    /// The event's name in the processor's table; for a raw event, its code.
    pub name: String,
    /// `counter n` or `fixed counter n`.
    pub counter: String,
    /// Pass in which it was counted, from 0. Events of one pass were counted at the same time, the TSC in pass 0; but
    /// with an emulated PMU in runs of its own.
    pub pass: u32,
    /// Errata of the event, and what else puts the count in doubt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Set for events of the uncore: the units whose counters were summed. The count is of everything in the package then: of all its
    /// processors and devices.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub units: u32,
    /// Of events of the uncore: the number of the processor that read it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reader: u32,
    /// Of events of the uncore: processors of the item in the package. It was read once for all of them. Absent: the reader alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<u32>,
}

/// Aggregates over the runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Aggregates {
    /// Least.
    pub min: f64,
    /// Median; the mean of the two middle ones for an even number of runs.
    pub median: f64,
    /// Mean without the lowest and the highest fifth of the runs.
    pub mean: f64,
    /// Greatest.
    pub max: f64,
}
