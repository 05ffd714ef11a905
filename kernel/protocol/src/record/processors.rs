//! The processors of the machine.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// One that the machine's tables list.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedProcessor {
    /// Local APIC id.
    pub apic_id: u32,
    /// What became of it.
    pub state: ProcessorState,
    /// Why it is not in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of a processor.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProcessorState {
    /// The boot processor.
    Boot,
    /// Started, and at work when there is some.
    Started,
    /// Called, and not in use.
    Failed,
    /// Not enabled by the machine's firmware.
    Off,
}
