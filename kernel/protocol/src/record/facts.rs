//! What a processor's caches and TLBs are, as measured.

use super::{BandwidthFacts, CoreFacts, Miss, NoiseFacts, PipelineFacts, PrefetchFacts};
use super::{Uncounted, Verdict};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A fact sheet.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactsResult {
    /// Index of the item in the job.
    pub item: u32,
    /// Name of the item.
    pub name: String,
    /// Whether it met what the job expects; absent: nothing was expected, and nothing went wrong.
    #[serde(default, skip_serializing_if = "Verdict::is_none")]
    pub verdict: Verdict,
    /// What of it missed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
    /// What the times of the memory are measured with.
    pub timer: FactsTimer,
    /// Bytes of memory that it had.
    pub bytes: u64,
    /// The data caches and TLBs; absent: they were not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryFacts>,
    /// How fast data are moved, measured with the part `memory`; absent: it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Box<BandwidthFacts>>,
    /// The core's predictor of branches; absent: it was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<Box<PipelineFacts>>,
    /// What lies between the processors; absent: that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<CoreFacts>,
    /// Stolen time, the timer, and what transitions cost; absent: that was not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<NoiseFacts>,
    /// Answers of CPUID about caches and TLBs: EAX and ECX that were asked with, then EAX, EBX, ECX and EDX.
    pub cpuid: Vec<[u32; 6]>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// State that the item had changed and that was put back behind it, in the manuals' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// Whether the processor's PMU is barecount's emulated one.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
}

/// What times are measured with.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FactsTimer {
    /// A counter of unhalted core cycles.
    CoreCycles,
    /// The TSC, because no counter counts: its ticks are no core cycles.
    Tsc,
}

/// By so many cycles the loads that one level serves may differ from the time of that level: less than the next one is slower.
#[must_use]
pub const fn slack(cycles: u64) -> u64 {
    let quarter = cycles / 4;
    if quarter > 3 { quarter } else { 3 }
}

/// Data caches and TLBs. Times are in tenths of a cycle, or of a tick of the TSC.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryFacts {
    /// Bytes of a line of the first level; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What it was determined from: bytes from a line that is there to a load, and what the load takes beyond a hit.
    pub line_evidence: Vec<[u64; 2]>,
    /// A load that the first level serves.
    pub first_tenths: u64,
    /// A load that no cache serves.
    pub memory_tenths: u64,
    /// The data caches that were found, from the first level on.
    pub caches: Vec<CacheFact>,
    /// The TLBs that were found.
    pub tlbs: Vec<TlbFact>,
    /// Which lines prefetchers bring; absent: that was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch: Option<Box<PrefetchFacts>>,
    /// What a load that crosses a line takes beyond one that does not, and one that crosses a page of 4 KiB.
    pub crossing_tenths: [u64; 2],
    /// A load's time over the size of the working set.
    pub curve: Vec<CurvePoint>,
}

/// A data cache.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheFact {
    /// Its level, from 1.
    pub level: u32,
    /// A load that it serves; absent: whether there is such a level is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenths: Option<u64>,
    /// Ways; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
    /// Bytes from a line to the next one of the same set; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_stride: Option<u64>,
    /// Why something is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What ways and sets were determined from.
    pub evidence: Vec<Fit>,
    /// What the policy is determined from; absent: it was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyEvidence>,
}

impl CacheFact {
    /// Its bytes, if they are determined.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        Some(u64::from(self.ways?) * self.set_stride?)
    }
}

/// Whether so many places fit.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fit {
    /// Bytes from one place to the next.
    pub stride: u64,
    /// How many there are.
    pub places: u32,
    /// What all of them took beyond as many hits of the first level, in cycles.
    pub cycles: u64,
    /// Whether all of them were still there.
    pub fits: bool,
}

/// Sequences of accesses to one set, each from an empty set: whether their last access found its line.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyEvidence {
    /// Ways of the set.
    pub ways: u32,
    /// How often each sequence was run.
    pub runs: u32,
    /// The sequences.
    pub sequences: Vec<PolicySequence>,
}

/// A sequence of accesses to one set, which is empty before it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicySequence {
    /// The lines in order, each a digit of base 36.
    pub lines: String,
    /// In how many runs the last access found its line.
    pub hits: u32,
}

/// A TLB.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbFact {
    /// Its level, from 1.
    pub level: u32,
    /// Bytes of the pages that it was tried with.
    pub page: u64,
    /// What a load takes beyond a hit of the first level when this one serves it; absent: whether there is such a level is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenths: Option<u64>,
    /// Ways; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ways: Option<u32>,
    /// Sets; absent: not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<u32>,
    /// Why something is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a load takes beyond a hit when no TLB serves it.
    pub walk_tenths: u64,
    /// What ways and sets were determined from.
    pub evidence: Vec<Fit>,
}

/// A working set.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Its bytes.
    pub bytes: u64,
    /// A load in it, the mean of a walk in random order.
    pub tenths: u64,
}
