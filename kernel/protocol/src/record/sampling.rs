//! What sampling a workload came to.

use super::{Hex, Miss, ProgramKey, Qualified, TaskResult, Ticks, Uncounted, Verdict};
use crate::bits::record::{is_usual, usual};
use crate::sampling::{Delivery, OnFull};
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
    pub capability: SamplingCapability,
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
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_boot(cpu: &u16) -> bool {
    *cpu == 0
}

/// What one processor sampled, with counters, a control block and a log of its own.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledProcessor {
    /// The processor's number.
    pub cpu: u16,
    /// Its events, as in `events` of the item: each with an account of its own.
    pub events: Vec<SampledCount>,
    /// Overflows whose address found no place in its histogram.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elsewhere: u64,
    /// Samples in its log.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub logged: u64,
    /// Interrupts whose sample did not fit its log.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Whether its full log stopped its counters before the workload's end.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stopped: bool,
    /// Its interrupts that found an overflow.
    pub interrupts: u64,
    /// Its interrupts that found none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spurious: u64,
    /// The timer's intervals on it, if a timer sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerResult>,
}

/// One event that was sampled by. `samples` + `dropped` + `lost` = `overflows`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledCount {
    /// The event as the job has it, or `timer`.
    pub event: String,
    /// The counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// Events between two overflows; for the timer, nanoseconds.
    pub period: u64,
    /// Overflows.
    pub overflows: u64,
    /// Of these, how many are in the histogram or the log.
    pub samples: u64,
    /// Of these, how many found no place there.
    pub dropped: u64,
    /// Periods that passed without an overflow, because throttling had made the period longer, or because they ended while an
    /// interrupt waited.
    #[serde(default)]
    pub throttled: u64,
    /// The period at the end, if throttling made it longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_period: Option<u64>,
    /// Events since the last overflow. `(overflows + throttled) * period + rest` is what the counter saw.
    #[serde(default)]
    pub rest: u64,
    /// The same event at the same time on a counter that raised no interrupts, if one was free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<u64>,
    /// Doubts about the count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// How far its addresses are behind the event, where that differs from what the PMU does in general: with PEBS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skid: Option<String>,
    /// Overflows whose PEBS record the processor did not write because the buffer was full.
    #[serde(default)]
    pub lost: u64,
    /// Samples that were none of what was asked for and were left out by software; they are not among the overflows.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub filtered: u64,
    /// Where periods are random, with `period` as their mean: what those that ended come to, of samples that were left out as well.
    /// `ended + rest` is what the unit saw. Absent as well where the unit keeps fast loads away by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// What the samples say of the event of some instructions only, where the job asks (`only`); absent as well where some samples
    /// are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qualified: Option<Qualified>,
    /// What its PEBS records state of retirement; absent where they state nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retire_latency: Option<RetireLatency>,
}

/// Core cycles from the retirement of the instruction before to that of the record's own, of several PEBS records.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RetireLatency {
    /// Records that state it, those whose sample was dropped among them.
    pub records: u64,
    /// Their cycles together. One record states up to 65,535.
    pub cycles: u64,
    /// The longest of them.
    pub longest: u16,
}

impl RetireLatency {
    /// The mean, if there are records.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.records > 0).then(|| self.cycles as f64 / self.records as f64)
    }

    /// That of all these records; nothing if none of them has any.
    #[must_use]
    pub fn sum(all: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        all.flatten().reduce(|one, other| Self {
            records: one.records + other.records,
            cycles: one.cycles + other.cycles,
            longest: one.longest.max(other.longest),
        })
    }
}

/// Where a task's code lay when it was sampled.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodePlace {
    /// First address of the body and the first behind it.
    pub body: [Hex; 2],
    /// The same of the code that runs once.
    pub init: [Hex; 2],
    /// The same of everything, the measuring code around the body included.
    pub function: [Hex; 2],
    /// The program that the task calls, if it is compiled code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramKey>,
}

/// How often overflows of one event met one address.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressCount {
    /// The interrupted instruction: the next one to execute. With PEBS, what the event's `skid` says.
    pub address: Hex,
    /// Index of the event.
    pub event: u32,
    /// Index of the task.
    pub task: u32,
    /// Its ring.
    pub ring: u8,
    /// How often.
    pub count: u64,
    /// Machine code at the address, hexadecimal, 15 bytes at most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bytes: String,
    /// 32 if 32-bit code was interrupted; absent: 64.
    #[serde(default = "usual", skip_serializing_if = "is_usual")]
    pub bits: u8,
    /// The processor; absent: the boot processor.
    #[serde(default, skip_serializing_if = "is_boot")]
    pub cpu: u16,
}

/// How often PEBS records of one event had one data address.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataCount {
    /// Linear address of what was loaded or stored.
    pub address: Hex,
    /// Index of the event.
    pub event: u32,
    /// Index of the task.
    pub task: u32,
    /// How often.
    pub count: u64,
    /// Cycles to the data, of all of them; absent where records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<u64>,
    /// The longest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<u32>,
}

/// How often samples of one event found their data in one place, with a latency of one class.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceCount {
    /// Index of the event.
    pub event: u32,
    /// Index of the task.
    pub task: u32,
    /// Where the data was: `L1`, `LFB`, `L2`, `L3`, `memory`, `remote memory` and others; behind a comma what other caches had.
    pub source: String,
    /// They were stores.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub store: bool,
    /// Whether the second-level TLB had no translation; absent where that is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb_miss: Option<bool>,
    /// Whether they were locked; absent where that is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<bool>,
    /// The class of the latency: from so many cycles to less than twice as many; 0: no latency was told.
    #[serde(default)]
    pub least: u32,
    /// How often.
    pub count: u64,
    /// Cycles to the data, of all of them.
    #[serde(default)]
    pub latency: u64,
    /// The longest of them.
    #[serde(default)]
    pub longest: u32,
    /// Cycles of the other kind, of all of them.
    #[serde(default)]
    pub other: u64,
}

/// What became of a branch that was sampled.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeCount {
    /// Address of the branch.
    pub address: Hex,
    /// Index of the task.
    pub task: u32,
    /// How often it was sampled.
    pub count: u64,
    /// Of these, how many were taken.
    pub taken: u64,
    /// How many were mispredicted.
    pub mispredicted: u64,
    /// How many were returns.
    pub returns: u64,
}

/// The calls that led to the samples of an item.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledStacks {
    /// How many calls the processor's records hold: of deeper stacks the oldest are missing.
    pub entries: u8,
    /// Each stack, most often first.
    pub stacks: Vec<StackCount>,
    /// Samples whose stack found no place in the table.
    #[serde(default)]
    pub elsewhere: u64,
}

/// How often a stack was sampled.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackCount {
    /// Index of the event.
    pub event: u32,
    /// Index of the task.
    pub task: u32,
    /// Its ring.
    pub ring: u8,
    /// The sampled instruction, and before it the calls that led to it, the newest first.
    pub frames: Vec<Hex>,
    /// How often.
    pub count: u64,
}

/// The branches that were in the processor's records at the samples of an item. One may be in the records of several samples, if
/// fewer branches than there are records come between them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedBranches {
    /// How many records the processor keeps.
    pub entries: u8,
    /// Each branch, most often first.
    pub edges: Vec<EdgeCount>,
    /// Branches that found no place in the table.
    #[serde(default)]
    pub elsewhere: u64,
}

/// How often a branch was in the records.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EdgeCount {
    /// Address of the branch.
    pub from: Hex,
    /// Where it went.
    pub to: Hex,
    /// Index of the task.
    pub task: u32,
    /// How often.
    pub count: u64,
    /// Of these, how many were mispredicted; absent where the records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mispredicted: Option<u64>,
    /// Core cycles since the taken branch before, of all of them; absent where the records do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
}

/// Single samples of one item, in the order in which they came; where several processors were sampled, those of one of them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Samples {
    /// Index of the item in the job.
    pub item: u32,
    /// Number of the first sample of this record.
    pub first: u64,
    /// The processor, whose TSC is meant as well; absent: the boot processor.
    #[serde(default, skip_serializing_if = "is_boot")]
    pub cpu: u16,
    /// Addresses: each minus the one before it, as signed numbers; the first of a record as it is.
    pub addresses: Vec<i64>,
    /// TSC: likewise.
    pub tsc: Vec<i64>,
    /// The events that had overflowed, as bits of their indices.
    pub events: Vec<u32>,
    /// Task and ring, as 4 times the task's index plus the ring; empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<u32>,
    /// The registers that the job asked for, those of each sample in a row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registers: Vec<Hex>,
    /// XMM0 to XMM15 of each sample, two words each, the lower one first, those of a sample in a row; empty if they were not
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vectors: Vec<Hex>,
    /// Values of counters, those of each sample in a row, in the order of `values` of the item's result; empty if they were not
    /// asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<u64>,
    /// The data address of each sample, 0 where it has none; empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<Hex>,
    /// Cycles to the data of each sample, 0 where they are not told; empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<u32>,
    /// Where the data of each sample came from, as a number among `source_names`, from 1; 0: it is not told. Empty if all are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<u32>,
    /// The names of these, as in `sources` of the item's result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_names: Vec<String>,
    /// The retire latency of each sample, 0 where its record states none; empty if no record states any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retire_latencies: Vec<u16>,
    /// Numbers of the samples that interrupted 32-bit code, from 0 in each record; all others interrupted 64-bit code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compatibility: Vec<u32>,
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

impl Samples {
    /// Appends one sample; `tsc` and address are kept as differences.
    pub fn push(&mut self, last: &mut [u64; 2], address: u64, tsc: u64, events: u32, task: u32) {
        self.addresses.push(address.wrapping_sub(last[0]) as i64);
        self.tsc.push(tsc.wrapping_sub(last[1]) as i64);
        *last = [address, tsc];
        self.events.push(events);
        self.tasks.push(task);
    }

    /// The samples again: address, TSC, events, task and ring. As many as all lists have.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, u32, u32)> + '_ {
        let whole = self.addresses.iter().zip(&self.tsc).zip(&self.events).enumerate();
        whole.scan([0u64; 2], |last, (index, ((address, tsc), &events))| {
            let address = last[0].wrapping_add_signed(*address);
            let tsc = last[1].wrapping_add_signed(*tsc);
            *last = [address, tsc];
            Some((address, tsc, events, self.tasks.get(index).copied().unwrap_or(0)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn m11_samples_come_back_as_they_went(all: Vec<(u64, u64, u32, u32)>) {
            let (mut chunk, mut last) = (Samples::default(), [0; 2]);
            for &(address, tsc, events, task) in &all {
                chunk.push(&mut last, address, tsc, events, task);
            }
            let text = serde_json::to_string(&chunk).unwrap();
            let again: Samples = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(again.iter().collect::<Vec<_>>(), all);
        }
    }
}
