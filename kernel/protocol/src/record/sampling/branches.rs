//! Branches that were sampled or recorded.

use crate::hex::Hex;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

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
