//! Decoding records.

use super::Format;
use thiserror::Error;

/// General registers of a record.
const REGISTERS: usize = 16;

/// Where each register, in the order of their encoding (RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15), stands behind
/// flags and address in formats 0 to 3.
const PLACES: [usize; REGISTERS] = [0, 2, 3, 1, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// Contents of an adaptive record, in its first word.
const MEMORY: u64 = 1 << 0;
const GENERAL: u64 = 1 << 1;
const VECTORS: u64 = 1 << 2;
const BRANCHES: u64 = 1 << 3;
/// Words of the groups: basic, memory, general registers, vector registers, one branch.
const BASIC_WORDS: usize = 4;
const MEMORY_WORDS: usize = 4;
const GENERAL_WORDS: usize = 18;
const VECTOR_WORDS: usize = 32;
const BRANCH_WORDS: usize = 3;

/// The data access of a record. 0 in a field is what the processor writes when it does not know.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// Linear address.
    pub address: u64,
    /// Where the data came from, in the processor's own code.
    pub source: u64,
    /// Cycles from dispatch to use, of load-latency events.
    pub latency: u64,
}

/// A record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
    /// Linear address: of the instruction itself where [`Format::is_exact`], else of the one behind it.
    pub ip: u64,
    /// The counters whose record it is, as bits of the global status; 0 in format 0, which does not tell.
    pub counters: u64,
    /// The general registers behind the instruction, in the order of their encoding, where the record has them.
    pub registers: Option<[u64; REGISTERS]>,
    /// The data access, where the record has it.
    pub access: Option<Access>,
    /// The TSC, where the record has it.
    pub tsc: Option<u64>,
}

/// Bytes that are no record.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum Malformed {
    /// Fewer words than a record has.
    #[error("a record of format {format} has {needed} words, and {there} are there")]
    Short { format: u8, needed: usize, there: usize },
    /// An adaptive record's size field is no size.
    #[error("a record states a size of {bytes} bytes; it has to be a multiple of 8, at least 32")]
    Size { bytes: u64 },
    /// An adaptive record is smaller than the groups that it states.
    #[error("a record states {there} words, and groups ({contents:#x}) of {needed} words")]
    Groups { contents: u64, needed: usize, there: usize },
}

/// The first record in `words`, and how many words it has.
///
/// # Errors
/// There is no record: too few words, or an adaptive record that contradicts itself.
pub fn decode(format: Format, words: &[u64]) -> Result<(Record, usize), Malformed> {
    if format == Format::Adaptive {
        return adaptive(words);
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
        access: at(19).map(|address| Access { address, source: words[20], latency: words[21] }),
        tsc: at(24),
    };
    Ok((record, needed))
}

fn adaptive(words: &[u64]) -> Result<(Record, usize), Malformed> {
    let short = |needed| Malformed::Short { format: 4, needed, there: words.len() };
    let &[head, ip, counters, tsc, ..] = words else { return Err(short(BASIC_WORDS)) };
    // Bits 63:48 are the size in bytes, 47:0 the contents as in MSR_PEBS_DATA_CFG.
    let (bytes, contents) = (head >> 48, head & 0xffff_ffff_ffff);
    let size = bytes as usize / 8;
    if !bytes.is_multiple_of(8) || size < BASIC_WORDS {
        return Err(Malformed::Size { bytes });
    }
    let words = words.get(..size).ok_or_else(|| short(size))?;
    let group = |bit: u64, words: usize| if contents & bit != 0 { words } else { 0 };
    let memory = group(MEMORY, MEMORY_WORDS);
    let general = group(GENERAL, GENERAL_WORDS);
    let branches = (contents >> 24 & 0xff) as usize + 1;
    let needed = BASIC_WORDS
        + memory
        + general
        + group(VECTORS, VECTOR_WORDS)
        + group(BRANCHES, BRANCH_WORDS * branches);
    if needed > size {
        return Err(Malformed::Groups { contents, needed, there: size });
    }
    let access = (memory > 0).then(|| Access {
        address: words[BASIC_WORDS],
        source: words[BASIC_WORDS + 1],
        latency: words[BASIC_WORDS + 2],
    });
    let registers = (general > 0).then(|| {
        // Flags and address, then the registers in the order of their encoding.
        let first = BASIC_WORDS + memory + 2;
        core::array::from_fn(|n| words[first + n])
    });
    Ok((Record { ip, counters, registers, access, tsc: Some(tsc) }, size))
}
