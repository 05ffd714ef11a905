//! Call stacks of samples.

use crate::hex::Hex;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

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
