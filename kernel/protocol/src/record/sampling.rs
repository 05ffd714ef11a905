//! What sampling a workload came to.

mod addresses;
mod branches;
mod counts;
mod data;
mod samples;
mod stacks;

pub use addresses::{AddressCount, CodePlace};
pub use branches::{EdgeCount, OutcomeCount, RecordedBranches};
pub use counts::{RetireLatency, SampledCount, SampledProcessor};
pub use data::{DataCount, SourceCount};
pub use samples::Samples;
pub use stacks::{SampledStacks, StackCount};

use super::{CountedEnergy, CountedUncore, Miss, TaskResult, Ticks, Uncounted, Verdict};
use crate::job::sampling::{Delivery, OnFull};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What was sampled of one item. Single samples stand in [`Samples`] records before this one.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleResult {
    /// Index of the item in the job.
    pub item: u32,
    /// Name of the item.
    pub name: String,
    /// Whether it met what the job expects; absent: nothing was expected, and nothing went wrong.
    #[serde(default, skip_serializing_if = "Verdict::is_none")]
    pub verdict: Verdict,
    /// What of it missed: figures out of their bounds, and events that were not counted though they had to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
    /// State that the item had changed and that was put back behind it, in the manuals' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// The events, in the job's order; the timer, if there is one, is the last. Where several processors were sampled, their
    /// numbers are sums over those, `last_period` is the longest, and `remarks` that are not of all name the processor.
    pub events: Vec<SampledCount>,
    /// What each processor sampled, by its number; absent: the boot processor alone was sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<SampledProcessor>,
    /// Names of the tasks.
    pub tasks: Vec<String>,
    /// Where the tasks' code lies, in the same order.
    pub code: Vec<CodePlace>,
    /// How the scheduler ran the tasks; absent if there was none: one task of ring 0 ran alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// How often each address came, most often first; empty if single samples were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressCount>,
    /// Overflows whose address found no place in the histogram.
    #[serde(default)]
    pub elsewhere: u64,
    /// Samples in the log.
    #[serde(default)]
    pub logged: u64,
    /// Interrupts whose sample did not fit the log.
    #[serde(default)]
    pub dropped: u64,
    /// What a full log does.
    pub on_full: OnFull,
    /// Whether it stopped the counters before the workload's end.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stopped: bool,
    /// How the interrupt came.
    pub delivery: Delivery,
    /// What counters did while an overflow was handled.
    pub handling: String,
    /// Instructions of the handler that a counter of ring 0 sees at each interrupt, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler_instructions: Option<u64>,
    /// Interrupts that found an overflow.
    pub interrupts: u64,
    /// Interrupts that found none.
    pub spurious: u64,
    /// Rounds of overflows that came while an interrupt was being handled.
    pub back_to_back: u64,
    /// Times that the rate was too high and all periods were doubled.
    #[serde(default)]
    pub throttled: u32,
    /// Times that it was far below the limit afterwards and all longer periods were halved.
    #[serde(default)]
    pub eased: u32,
    /// The timer's intervals, if a timer sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerResult>,
    /// What this PMU can tell about an overflow.
    pub capability: Box<SamplingCapability>,
    /// Whether the PMU is barecount's emulated one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// Events that were not sampled by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// TSC ticks that the workload took, sampled.
    pub ticks: u64,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
    /// How often PEBS records had each data address, most often first; empty if none has one, or single samples were asked
    /// for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<DataCount>,
    /// PEBS records whose data address found no place in that histogram.
    #[serde(default)]
    pub data_elsewhere: u64,
    /// The branches that the processor recorded before each sample, where the job asks for them and there are such records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branches: Option<RecordedBranches>,
    /// Where the data of sampled accesses came from and how long it took, most often first; empty if no sample tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceCount>,
    /// Accesses whose source found no place there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sources_elsewhere: u64,
    /// What the cycles of `sources` are, and what the other cycles are; absent: nothing tells any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latencies: Option<[String; 2]>,
    /// What became of branches that were sampled themselves, most often first: with IBS.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<OutcomeCount>,
    /// Branches that found no place there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outcomes_elsewhere: u64,
    /// The calls that led to the samples, where the job asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<SampledStacks>,
    /// The events whose counters' values stand with each sample, in the order of `values` there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// Energy that was used while the workload ran, by everything that ran: the interrupts of its samples too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<CountedEnergy>,
    /// Events of the uncore, of everything that ran meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncore: Vec<CountedUncore>,
    /// Energy and events of the uncore that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<Uncounted>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_boot(cpu: &u16) -> bool {
    *cpu == 0
}

/// How a scheduler ran sampled tasks.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schedule {
    /// The tasks, in the job's order.
    pub tasks: Vec<TaskResult>,
    /// Changes from a task or the kernel to another of them.
    pub switches: u64,
    /// The scheduler's ticks.
    pub ticks: Ticks,
}

/// What the timer really did.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerResult {
    /// The interval that the job asked for, in nanoseconds.
    pub asked_ns: u64,
    /// What the timer was set to.
    pub set_ns: u64,
    /// How often that was doubled, because ticks came late: the machine would have done nothing but handle them.
    #[serde(default)]
    pub doubled: u32,
    /// Least, median and greatest interval between ticks, by the TSC, in nanoseconds; of the first 256 ticks. Absent
    /// if there were fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_ns: Option<[u64; 3]>,
}

/// What a PMU can tell about an overflow.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SamplingCapability {
    /// An overflow raises an interrupt.
    pub overflow_interrupt: bool,
    /// How the overflowing counter is known.
    pub culprit: String,
    /// How counters are kept from counting the handler.
    pub freeze: String,
    /// How far the address may be behind the event.
    pub skid: String,
    /// The data address of a sample, or why there is none.
    pub data_address: String,
}
