//! Addresses that were sampled, and where the tasks' code lay.

use super::is_boot;
use crate::bits::record::{is_usual, usual};
use crate::hex::Hex;
use crate::program::ProgramKey;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Where a task's code lay when it was sampled.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodePlace {
    /// First address of the body and the first behind it.
    pub body: [Hex; 2],
    /// The same of the code that runs once.
    pub init: [Hex; 2],
    /// The same of everything, the measuring code around the body included.
    pub function: [Hex; 2],
    /// The program that the task calls, if it is compiled code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramKey>,
}

/// How often overflows of one event met one address.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressCount {
    /// The interrupted instruction: the next one to execute. With PEBS, what the event's `skid` says.
    pub address: Hex,
    /// Index of the event.
    pub event: u32,
    /// Index of the task.
    pub task: u32,
    /// Its ring.
    pub ring: u8,
    /// How often.
    pub count: u64,
    /// Machine code at the address, hexadecimal, 15 bytes at most.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bytes: String,
    /// 32 if 32-bit code was interrupted; absent: 64.
    #[serde(default = "usual", skip_serializing_if = "is_usual")]
    pub bits: u8,
    /// The processor; absent: the boot processor.
    #[serde(default, skip_serializing_if = "is_boot")]
    pub cpu: u16,
}
