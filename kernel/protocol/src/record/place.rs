//! Places in compiled code: what the firmware says of them, and the names that the host finds.

use crate::hex::Hex;
use alloc::string::String;
use serde::{Deserialize, Serialize};

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
