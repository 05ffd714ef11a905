//! What a bring-up finds on a machine before it checks the PMU.

use crate::hex::Hex;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What CPUID answers on one processor.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuidLeaves {
    /// Index of the item in the job.
    pub item: u32,
    /// Number of the processor.
    pub cpu: u32,
    /// EAX and ECX that were asked with, then EAX, EBX, ECX and EDX of the answer. Sub-leaves that answer with zeros alone are
    /// left out; on every processor but the boot processor, so are answers that are the same as there.
    pub answers: Vec<[u32; 6]>,
}

/// Model-specific registers of one processor that have to do with its PMU.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Msrs {
    /// Index of the item in the job.
    pub item: u32,
    /// Number of the processor.
    pub cpu: u32,
    /// As the machine's firmware left them; absent: as they were when the item ran.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub found: bool,
    /// Number and value of each that can be read.
    pub values: Vec<[Hex; 2]>,
    /// Numbers of those that raise an exception.
    pub absent: Vec<Hex>,
}

/// The ACPI tables, in their order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcpiTables {
    /// Index of the item in the job.
    pub item: u32,
    /// Each table.
    pub tables: Vec<AcpiTable>,
}

/// One ACPI table.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcpiTable {
    /// Its four characters.
    pub signature: String,
    /// Physical address.
    pub address: Hex,
    /// Length in bytes.
    pub bytes: u32,
    /// Revision of its form.
    pub revision: u8,
    /// Who made it, and what he calls it.
    pub oem: String,
    /// What of it matters for measuring; empty for tables that are not looked into.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub facts: String,
}

/// A property of the machine that was measured.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measure {
    /// Index of the item in the job.
    pub item: u32,
    /// Stable name, `family.subject`.
    pub name: String,
    /// The processor, if it is not the boot processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What the values are.
    pub unit: String,
    /// How often it was measured.
    pub runs: u32,
    /// The least value.
    pub min: i64,
    /// The middle one.
    pub median: i64,
    /// The greatest one.
    pub max: i64,
    /// What the machine says that it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<i64>,
    /// Up to where the checks that follow take it for sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<i64>,
}

/// CPUID leaves whose answer depends on ECX (SDM vol. 2, CPUID; APM vol. 3, appendix E).
pub const INDEXED_LEAVES: [u32; 20] = [
    0x4,
    0x7,
    0xb,
    0xd,
    0xf,
    0x10,
    0x12,
    0x14,
    0x17,
    0x18,
    0x1a,
    0x1b,
    0x1d,
    0x1f,
    0x20,
    0x23,
    0x24,
    0x8000_001d,
    0x8000_0020,
    0x8000_0026,
];
