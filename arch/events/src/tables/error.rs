//! Why a table, or a processor's part of it, cannot be used.

use super::layout::{HEADER_BYTES, VERSION};
use crate::cpu::CpuKey;
use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

/// Why an event table was refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum TableError {
    /// Shorter than a header.
    #[error("the event table has {0} bytes, less than the {HEADER_BYTES} of its header")]
    NoHeader(usize),
    /// Another kind of file.
    #[error("this is not an event table: it starts with {0:02x?}")]
    Magic([u8; 8]),
    /// Made by another release.
    #[error("the event table has layout version {found}; this release reads version {VERSION}")]
    Version { found: u16 },
    /// The end is missing.
    #[error(
        "the event table is truncated: its header announces {announced} bytes, the file has {present}"
    )]
    Truncated { announced: usize, present: usize },
    /// Bits changed on the way.
    #[error("the event table is damaged: its checksum is {found:08x}, not {announced:08x}")]
    Checksum { announced: u32, found: u32 },
    /// The checksum is right, but a section does not hold together: a defect of the packer.
    #[error("the event table contradicts itself: {section} {index}: {what}")]
    Inconsistent { section: &'static str, index: usize, what: &'static str },
}

/// Why there is no table for a processor. Raw and architectural events work without one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum NoCore {
    /// Nothing is known of this family, model and stepping.
    #[error("there is no event table for {0}; raw and architectural events can be counted")]
    Unknown(CpuKey),
    /// A hybrid part, and the key does not say which of its cores is meant.
    #[error(
        "{cpu} is hybrid: CPUID leaf 0x1A must identify which of its cores is meant ({})",
        .cores.join(", ")
    )]
    CoreType { cpu: CpuKey, cores: Vec<String> },
}
