//! What stepping through a snippet came to.

use super::{Miss, Uncounted, Verdict};
use crate::bits::record::{is_usual, usual};
use crate::program::ProgramKey;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Exact counts of one snippet.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExactResult {
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
    /// Events that were asked for: stepping counts instructions, and no events of the PMU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// Executions of the body that each figure was divided by: unroll times the loop's iterations.
    pub per: u64,
    /// Whether a filter decided what counted.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub filtered: bool,
    /// The counts.
    pub counts: Vec<ExactCount>,
    /// Executed mnemonics, in alphabetical order.
    pub opcodes: Vec<ExactCount>,
    /// The body's instructions that were executed, in order of their place; the first 1,000 of them.
    pub listing: Vec<ListedInstruction>,
    /// How many there were; greater than the length of the listing if that was cut.
    pub listed: u32,
    /// The program that the listing's addresses are of, if it is one of compiled code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramKey>,
    /// The PMU's counts beside the exact ones, if the job asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
    /// Whether those are of barecount's emulated PMU.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
}

/// One exact count.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExactCount {
    /// What was counted, or the mnemonic.
    pub event: String,
    /// Per execution of the body: the larger code size minus the smaller, divided by `per`.
    pub value: f64,
    /// The undivided counts of the smaller and of the larger code size.
    pub totals: [u64; 2],
}

/// An instruction of the body and how often it was executed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedInstruction {
    /// Of its first byte within a copy of the body; in a program, its address.
    pub offset: u32,
    /// Its machine code, hexadecimal.
    pub bytes: String,
    /// Per execution of the body, as [`ExactCount::value`].
    pub value: f64,
    /// 32 if it was executed as 32-bit code; absent: 64.
    #[serde(default = "usual", skip_serializing_if = "is_usual")]
    pub bits: u8,
    /// The function of the program, found by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// File and line, found by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// One event, counted both ways.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What was counted.
    pub event: String,
    /// By stepping, per execution of the body.
    pub exact: f64,
    /// By the PMU, per execution of the body: the least of all runs.
    pub pmu_min: f64,
    /// The greatest.
    pub pmu_max: f64,
    /// Whether all three are equal.
    pub agrees: bool,
}
