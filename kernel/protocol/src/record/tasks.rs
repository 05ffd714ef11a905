//! How a workload's tasks ran.

use super::{CountedEnergy, CountedUncore, Fault, Miss, Uncounted, Verdict};
use crate::bits::record::{is_usual, usual};
use crate::hex::Hex;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A run of a workload.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TasksResult {
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
    /// The tasks, in the job's order.
    pub tasks: Vec<TaskResult>,
    /// Changes from a task or the kernel to another of them, the first and the last included.
    pub switches: u64,
    /// The timer's ticks.
    pub ticks: Ticks,
    /// Interrupts and exceptions that were taken meanwhile, by vector. Performance monitoring interrupts are not
    /// among them.
    pub interrupts: Vec<VectorCount>,
    /// Instructions that retired in ring 3 meanwhile, by a counter of its own; absent if no counter can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_instructions: Option<u64>,
    /// Whether counts come from barecount's emulated PMU.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
    /// How several processors worked together; absent if one ran all tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// Energy that was used meanwhile, by everything that ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<CountedEnergy>,
    /// Events of the uncore, of everything that ran meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncore: Vec<CountedUncore>,
    /// Energy and events of the uncore that could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
}

/// How several processors ran the tasks of one item.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Together {
    /// Their numbers.
    pub processors: Vec<u32>,
    /// Whether they ran one after the other. So they do with the emulated PMU: its clock counts the instructions of all of
    /// them together.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub in_turn: bool,
    /// From the first to the last processor's beginning, in ticks of the boot processor's TSC; absent if they ran in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_skew: Option<u64>,
    /// The same of the instant behind the last task at which all were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_skew: Option<u64>,
    /// What each did, in the order of [`Together::processors`], if tasks move between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<ProcessorShare>,
}

/// What a processor did of tasks that move.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessorShare {
    /// Tasks that it took from other processors.
    pub taken: u64,
    /// Changes from a task or the kernel to another of them.
    pub switches: u64,
    /// The timer's ticks.
    pub ticks: u64,
    /// Instructions that retired in ring 3 there, by a counter of its own; absent if no counter can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_instructions: Option<u64>,
}

/// What a task that may move did on one processor.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskShare {
    /// The processor's number.
    pub processor: u32,
    /// How often this processor was given to it.
    pub switches: u64,
    /// Time that it had this processor, in TSC ticks.
    pub time: u64,
    /// Instructions of it that retired in ring 3 there; absent if no counter can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_instructions: Option<u64>,
}

/// How one task ran.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskResult {
    /// Its name.
    pub name: String,
    /// Address of its first instruction: subtract it from an address to get the distance that labels have.
    pub entry: Hex,
    /// How it ended.
    pub end: TaskEnd,
    /// Turns of the body that it completed.
    pub turns: u64,
    /// How often the processor was given to it.
    pub switches: u64,
    /// Time that it had the processor, in TSC ticks, from switch to switch.
    pub time: u64,
    /// The eight bytes that R14 pointed to at its start, as it left them.
    pub value: Hex,
    /// CRC-32 of its memory areas without the stack, as it left them.
    pub memory_crc32: Hex,
    /// The exception that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// Instructions of it that retired in ring 3; absent if no counter can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_instructions: Option<u64>,
    /// The same of its children and theirs, added as each exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_user_instructions: Option<u64>,
    /// The task to whose counts its own were added when it was gone, as an index: its parent, or the nearest ancestor that was
    /// still there. Absent: none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_to: Option<u16>,
    /// The parent that was gone before it, as an index; absent: none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outlived: Option<u16>,
    /// Number of the processor that it ran on, or was last on if it may move; absent: the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub cpu: u32,
    /// How often it came to another processor than it had been on; absent: it may not move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<u64>,
    /// What it did on each processor that it was on, in the order of their numbers, if it may move.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<TaskShare>,
    /// 32 if it began as 32-bit code; absent: 64.
    #[serde(default = "usual", skip_serializing_if = "is_usual")]
    pub bits: u8,
    /// 32 or 64 if it ended as the other; absent: it ended as what it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_bits: Option<u8>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_first(cpu: &u32) -> bool {
    *cpu == 0
}

/// How a task ended.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// It exited.
    Exit,
    /// It raised an exception.
    Fault,
    /// It took longer than it may.
    Limit,
}

/// The timer's ticks. Intervals are TSC ticks from one timer interrupt to the next.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ticks {
    /// How many there were.
    pub count: u64,
    /// Shortest interval; 0 with less than two ticks.
    pub min: u64,
    /// Median interval, of at most 4,096 that lie evenly over the run.
    pub median: u64,
    /// Longest interval.
    pub max: u64,
    /// The interval at the end, in TSC ticks, if the one that was asked for left the tasks no time and was lengthened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengthened: Option<u64>,
}

/// How often a vector was taken.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VectorCount {
    /// The vector.
    pub vector: u8,
    /// How often.
    pub count: u64,
}
