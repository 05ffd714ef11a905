//! In which cycles of a snippet events happened.

use super::{Applied, Counting, HistoryPlace, Miss, Uncounted, Verdict};
use crate::program::ProgramKey;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The history of one snippet.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryResult {
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
    /// The event whose overflow stopped all counters, in the job's words.
    pub clock: String,
    /// Events of the clock from row to row.
    pub step: u32,
    /// Runs for each row.
    pub runs: u32,
    /// Copies of the body that ran, times the loop's iterations.
    pub per: u64,
    /// Whether the rows begin where the counters are switched on, and not where the snippet begins.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub end_to_end: bool,
    /// What stopped the counters.
    pub stopped_by: StoppedBy,
    /// One entry for each pass that the events took.
    pub passes: Vec<HistoryPass>,
    /// What was counted.
    pub series: Vec<HistorySeries>,
    /// The program that was measured, if it is compiled code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramKey>,
    /// Where in it each row of the first pass began: the instruction in front of which the interrupt of the row before came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<HistoryPlace>,
    /// Events that were asked for and not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// Options of the machine that the job asked for, and what became of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Applied>,
    /// State that the snippet had changed and that was put back behind it, in the manuals' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// What puts the rows in doubt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Whether the counts come from barecount's emulated PMU.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
}

/// What stops all counters when the clock overflows.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// The processor: it freezes them at the interrupt's request.
    Freeze,
    /// The interrupt's handler, some instructions later.
    Handler,
}

/// Events that were counted at the same time, beside the clock.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryPass {
    /// Events of the clock from the switch that lets it count to the beginning of the snippet: those of the code in
    /// front. They are subtracted from the rows.
    pub front: u64,
    /// Events of the clock from the beginning of the snippet until its last instruction has retired; absent: the rows
    /// end before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// Events of the clock from switch to switch, when nothing stops it: the median.
    pub whole: f64,
    /// Least and most events that the clock counted beyond those after which it was to stop.
    pub skid: [u64; 2],
    /// Instructions of the snippet up to each row, the median of the runs; in passes after the first, where they were
    /// requested. Those of the first pass are a series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<f64>,
}

/// One event's counts, row by row.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistorySeries {
    /// The event in the job's words.
    pub event: String,
    /// What was counted, where, and in which pass.
    pub counting: Counting,
    /// What had been counted at the beginning of the snippet: the median. It is subtracted from the rows.
    pub front: f64,
    /// Row i, from 0: events of the snippet until the clock had counted `step` times (i + 1) events of it; the median of
    /// the runs. Shorter than asked for where the code ended before.
    pub median: Vec<f64>,
    /// Likewise, the least of the runs.
    pub min: Vec<f64>,
    /// Likewise, the greatest.
    pub max: Vec<f64>,
    /// Each median minus the one before it: what happened in that cycle.
    pub each: Vec<f64>,
}
