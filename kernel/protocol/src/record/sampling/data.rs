//! Data addresses of samples, and where the data came from.

use crate::hex::Hex;
use alloc::string::String;
use serde::{Deserialize, Serialize};

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
    /// Samples that have a latency, if not all have: IBS has none of loads that hit the first level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<u64>,
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
    /// Whether the second-level TLB had no translation; absent where that is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tlb_miss: Option<bool>,
    /// Whether they were locked; absent where that is not determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<bool>,
    /// The class of the latency: from so many cycles to less than twice as many; 0: no latency was reported.
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
