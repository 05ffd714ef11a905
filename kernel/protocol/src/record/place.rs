//! Places in compiled code: what the firmware says of them, and the names that the host finds.

use super::Hex;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// A program, by which the host finds the names of its addresses: in the report itself, so that it needs no job.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramKey {
    /// Digest of what it was linked from; the host keeps the linked file under this name.
    pub key: Hex,
    /// What its addresses are moved by, compared with the file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bias: Hex,
}

fn is_zero(value: &Hex) -> bool {
    value.0 == 0
}

/// Where compiled code was when a row of a history began.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryPlace {
    /// The instruction that was to come next.
    pub address: Hex,
    /// The function of the program, found by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// File and line, found by the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}
