//! What became of the event tables that came with the job.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// The event tables of the ramdisk, and the one of them that this processor uses.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventTables {
    /// Version of their layout; absent if they were refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u16>,
    /// Name of this processor's table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Where its facts come from, and their version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Events that it has; 0 without a table.
    pub events: u32,
    /// Why there is no table for this processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}
