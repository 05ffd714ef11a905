//! What takes a processor's time besides its program, as measured.

use super::Times;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Stolen time, the local APIC's timer, and what transitions cost. Times are ticks of the TSC.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseFacts {
    /// Ticks of the TSC in a second.
    pub tsc_hz: u64,
    /// The hypervisor that instructions leave to; absent: there is none that says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// From how many ticks on time between two readings counts as stolen.
    pub threshold: u64,
    /// All processors were watched at the same time; absent: one after the other.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub together: bool,
    /// System management interrupts that the job had raised on the first processor.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub raised: u32,
    /// Each processor.
    pub windows: Vec<NoiseWindow>,
    /// How late the timer of the first one comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer: Option<TimerJitter>,
    /// What transitions and slow instructions cost.
    pub costs: Vec<TransitionCost>,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A processor that reads the TSC again and again, with interrupts off.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseWindow {
    /// Its number.
    pub processor: u32,
    /// TSC at the first reading, in the first processor's time.
    pub begin: u64,
    /// From the first reading to the last.
    pub ticks: u64,
    /// How often it read.
    pub reads: u64,
    /// System management interrupts that it counted meanwhile; absent: it does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smis: Option<u64>,
    /// How many times between two readings were as long as the threshold.
    pub count: u64,
    /// How long these are together.
    pub stolen: u64,
    /// The longest time between two readings.
    pub longest: u64,
    /// The first 1,000 of them.
    pub gaps: Vec<Gap>,
    /// How many times between two readings had at least 2 to the power of the place, and less than twice as much.
    pub buckets: Vec<u64>,
}

/// Time that was stolen.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// Ticks from the window's begin to the reading in front of it.
    pub at: u64,
    /// Ticks to the next reading.
    pub ticks: u64,
}

/// How late a timer's interrupts come.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimerJitter {
    /// Ticks that it was set to.
    pub period: u64,
    /// From then to the handler, in ticks.
    pub late: Times,
    /// How many were late by at least 2 to the power of the place, and less than twice as much; the first also has those of 0.
    pub buckets: Vec<u64>,
}

/// What one transition or instruction costs, with two readings of the TSC around it or its loop.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransitionCost {
    /// What: one of [`TransitionCost::NAMES`].
    pub name: String,
    /// Its ticks.
    pub ticks: Times,
}

impl TransitionCost {
    /// What the two readings cost by themselves: it is in all others but those of ring 3.
    pub const NOTHING: &'static str = "nothing";
    /// All.
    pub const NAMES: [&'static str; 15] = [
        Self::NOTHING,
        "cpuid",
        "rdpmc",
        "rdpmc_fixed",
        "rdmsr",
        "wrmsr_counter",
        "wrmsr_select",
        "wrmsr_global",
        "int",
        "ud2",
        "int_ring_3",
        "page_fault_ring_3",
        "syscall",
        "wbinvd",
        "wbinvd_256k_dirty",
    ];
}
