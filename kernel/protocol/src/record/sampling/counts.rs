//! The events that were sampled by, of all processors and of each.

use super::{TimerResult, is_zero};
use crate::record::Qualified;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

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

/// One event that was sampled by, or counted beside. `samples` + `dropped` + `lost` = `overflows`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampledCount {
    /// The event as the job has it, or `timer`.
    pub event: String,
    /// The counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<String>,
    /// Events between two overflows; for the timer, nanoseconds. 0: no sample was taken by this event, it was counted beside
    /// the others, and `witness` is its count.
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
    /// Events since the last overflow. Unless periods are random, `(overflows + throttled) * period + rest` is what the counter saw.
    #[serde(default)]
    pub rest: u64,
    /// The same event at the same time on a counter that raised no interrupts, if one was free; where `period` is 0, its count.
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

impl SampledCount {
    /// Whether samples were taken by it.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.period > 0
    }

    /// What its counter or unit saw; for one that was counted beside, its count.
    #[must_use]
    pub fn seen(&self) -> Option<u64> {
        if !self.is_sampled() {
            return self.witness;
        }
        let periods = self.overflows.saturating_add(self.throttled).saturating_mul(self.period);
        Some(self.ended.unwrap_or(periods).saturating_add(self.rest))
    }
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
