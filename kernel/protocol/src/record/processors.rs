//! The processors of the machine, and what was measured on several of them.

use super::{Metric, Miss, Uncounted, Verdict};
use crate::core_kind::CoreKind;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One that the machine's tables list.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedProcessor {
    /// Local APIC id.
    pub apic_id: u32,
    /// What became of it.
    pub state: ProcessorState,
    /// Why it is not in use, or has no emulated PMU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of a processor.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessorState {
    /// The boot processor.
    Boot,
    /// Started, and at work when there is some.
    Started,
    /// Called, and not in use.
    Failed,
    /// Not enabled by the machine's firmware.
    Off,
}

/// What a snippet cost on several processors at once.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessorsResult {
    /// Index of the item in the job.
    pub item: u32,
    /// Name of the item; where several kinds of core ran it one after the other, with the kind.
    pub name: String,
    /// Kind of the cores that it ran on, if the processor tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<CoreKind>,
    /// The item has results of other kinds of core behind this one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub more: bool,
    /// Whether it met what the job expects; absent: nothing was expected, and nothing went wrong.
    #[serde(default, skip_serializing_if = "Verdict::is_none")]
    pub verdict: Verdict,
    /// What of it missed: figures out of their bounds, and events that were not counted though they had to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
    /// State that the item had changed and that was put back behind it, in the manuals' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// Executions of the body that each figure was divided by, on each processor.
    pub per: u64,
    /// Measured runs of each of the two code sizes.
    pub runs: u32,
    /// Each processor's own figures.
    pub processors: Vec<ProcessorResult>,
    /// The sum over the processors of each event that was counted.
    pub sums: Vec<Sum>,
    /// Events that were asked for and not counted on the first of the processors, nor anywhere else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// Whether the processors ran one after the other. So they do with the emulated PMU: its clock counts the instructions
    /// of all of them together.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_turn: bool,
    /// From the first to the last processor's beginning of the same run, in ticks of the boot processor's TSC.
    pub start_skew: Skew,
    /// All counters of all processors, read at one instant while they counted.
    pub snapshot: Snapshot,
    /// Whether the counts come from barecount's emulated PMU.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
}

/// One processor's figures.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessorResult {
    /// Its number: 0 is the boot processor.
    pub processor: u32,
    /// Its local APIC id.
    pub apic_id: u32,
    /// What its TSC shows more than the boot processor's.
    pub tsc_offset: i64,
    /// The true offset is not further away than this.
    pub tsc_offset_error: u64,
    /// Why nothing but the TSC was counted on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pmu_absent: Option<String>,
    /// The figures, as those of a snippet.
    pub metrics: Vec<Metric>,
    /// Its TSC at the snapshot, in the boot processor's time.
    pub snapshot_tsc: u64,
    /// The values of the snapshot's events on it; none where it counts nothing.
    pub snapshot: Vec<u64>,
    /// What came of interrupts at overflow, if the job asked for them and it has a PMU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<Interrupts>,
    /// What came of rounds in which all processors did the same at once, if the job asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<ContentionRounds>,
}

/// Rounds in which all processors did the same things at once.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContentionRounds {
    /// Rounds that the processor was called for and did.
    pub rounds: u64,
    /// How often it held the lock that all of them wanted.
    pub locked: u64,
    /// Interrupts that its neighbour sent, as many as it sent itself.
    pub interrupts: u64,
    /// PMIs that its own control block counted, each installed and removed anew.
    pub pmis: u64,
    /// Instructions that a counter, which was started and stopped in each round, counted in all of them; absent without a PMU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<u64>,
}

/// A loop that was interrupted at every so many instructions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interrupts {
    /// Turns of the loop, of two instructions each.
    pub turns: u64,
    /// Interrupts that found an overflow.
    pub taken: u64,
    /// Interrupts that found none.
    pub spurious: u64,
    /// Overflows that the handler counted.
    pub overflows: u64,
    /// Instructions that were counted: overflows times the period, and the rest. Those of each handler are among them from
    /// where it gives the counter its start value back.
    pub instructions: u64,
}

/// An event on all processors together.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sum {
    /// The event.
    pub event: String,
    /// The sum of the medians.
    pub value: f64,
    /// Of how many processors.
    pub processors: u32,
}

/// How far something was from being at the same time, over all runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skew {
    /// Least.
    pub min: u64,
    /// Median, the upper one of two.
    pub median: u64,
    /// Greatest.
    pub max: u64,
}

/// When the snapshot was.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// The instant that was named, of the boot processor's TSC.
    pub deadline: u64,
    /// The latest processor's time less the earliest's, as they noted them.
    pub skew: u64,
    /// The events that were counting, in the order of each processor's values. None if the processors run in turn: the
    /// counts would be those of all together.
    pub events: Vec<String>,
}
