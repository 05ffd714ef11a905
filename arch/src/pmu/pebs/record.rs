//! Decoding records.

use super::{Adaptive, Architectural, Format};
use thiserror::Error;

/// General registers of a record.
pub(super) const REGISTERS: usize = 16;

/// Where each register, in the order of their encoding (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15), stands behind
/// flags and address in formats 0 to 3.
const PLACES: [usize; REGISTERS] = [0, 2, 3, 1, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The data access of a record. 0 in a field is what the processor writes when it does not know.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// Linear address.
    pub address: u64,
    /// Where the data came from, in the processor's own code.
    pub source: u64,
    /// Latency in cycles, of load-latency events and, where the processor has it, of others.
    pub latency: u64,
    /// Of transactions that were aborted; 0 before format 2.
    pub transaction: u64,
}

impl Access {
    /// Cycles from dispatch to use, up to Ice Lake. Golden Cove, Gracemont and later split the field in two (Linux,
    /// `struct pebs_meminfo`).
    #[must_use]
    pub const fn load_latency(&self) -> u32 {
        self.latency as u32
    }

    /// Cycles from dispatch to completion of the whole instruction, where the field is split: bits 15:0.
    #[must_use]
    pub const fn instruction_latency(&self) -> u16 {
        self.latency as u16
    }

    /// Cycles that the access to caches and memory took, where the field is split: bits 47:32.
    #[must_use]
    pub const fn cache_latency(&self) -> u16 {
        (self.latency >> 32) as u16
    }
}

/// A record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
    /// Linear address: of the instruction itself where [`Format::is_exact`], else of the one after it.
    pub ip: u64,
    /// The counters whose record it is, as bits of the global status; 0 in format 0, which does not tell.
    pub counters: u64,
    /// The general registers after the instruction, in the order of their encoding, where the record has them.
    pub registers: Option<[u64; REGISTERS]>,
    /// The data access, where the record has it.
    pub access: Option<Access>,
    /// The TSC, where the record has it.
    pub tsc: Option<u64>,
}

/// Bytes that are not record.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Malformed {
    /// Fewer words than a record has.
    #[error("a record of format {format} has {needed} words, but only {there} are left")]
    Short { format: u8, needed: usize, there: usize },
    /// An adaptive record's size field is not a size.
    #[error(
        "a record states a size of {bytes} bytes; it must be a multiple of 8, with room for the first group"
    )]
    Size { bytes: u64 },
    /// An adaptive record's groups do not make up its size.
    #[error("a record states {there} words, but its groups ({contents:#x}) have another size")]
    Groups { contents: u32, there: usize },
    /// An adaptive record has a group that its format does not know.
    #[error(
        "a record of format {format} states groups that the format does not have: {unknown:#x}"
    )]
    Unknown { format: u8, unknown: u32 },
    /// The header of an architectural record states groups that do not make up its size, or that are not known.
    #[error(
        "a header states groups ({contents:#x}) that are not known, or whose sizes do not add up to its own"
    )]
    Contents { contents: u64 },
    /// A fragment of architectural PEBS, and no record in front of it.
    #[error("a header ({contents:#x}) has no basic group, and does not continue a record")]
    Fragment { contents: u64 },
}

/// The first record in `words`, and how many words it has.
///
/// # Errors
/// There is no record: too few words, or an adaptive record that contradicts itself.
pub fn decode(format: Format, words: &[u64]) -> Result<(Record, usize), Malformed> {
    if format.is_adaptive() {
        let (seen, count) = Adaptive::decode(format, words)?;
        return Ok((seen.record(), count));
    }
    if format == Format::Architectural {
        let (mut rest, mut count) = (words, 0);
        loop {
            let (seen, more) = Architectural::decode(rest)?;
            count += more;
            match seen {
                Some(seen) => return Ok((seen.common.record(), count)),
                None => rest = &rest[more..],
            }
        }
    }
    let needed = format.words();
    let short = Malformed::Short { format: format.number(), needed, there: words.len() };
    let words = words.get(..needed).ok_or(short)?;
    let at = |index: usize| words.get(index).copied();
    let registers = PLACES.map(|place| words[2 + place]);
    let record = Record {
        ip: at(22).unwrap_or(words[1]),
        counters: at(18).unwrap_or(0),
        registers: Some(registers),
        access: at(19).map(|address| Access {
            address,
            source: words[20],
            latency: words[21],
            transaction: at(23).unwrap_or(0),
        }),
        tsc: at(24),
    };
    Ok((record, needed))
}
