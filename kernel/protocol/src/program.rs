//! Compiled code as the firmware maps it: what the host has linked, in segments with fixed addresses.
//!
//! A program lies in a section of the ramdisk and is shared by the items that use it:
//!
//! | offset | bytes | content, little endian |
//! | --- | --- | --- |
//! | 0 | 8 | [`sum`] of what follows |
//! | 8 | 4 | length of the head |
//! | 12 | .. | head: [`Head`] in postcard form |
//! | .. | .. | the bytes of all segments, one after the other |
//!
//! The CRC of the job would take a long time over megabytes, so the sum goes by words.

use crate::hex::Hex;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bytes of a page: segments begin at a multiple, so that each has rights of its own.
pub const PAGE: u64 = 4096;
/// The lowest address that a program may have. Nothing is mapped below, so that null pointers fault.
pub const LOWEST: u64 = 0x1_0000;
/// Where programs are linked to.
pub const LINKED_AT: u64 = 0x1000_0000;
/// The end of the stack of a task that calls a function: below what is linked.
pub const STACK_END: u64 = 0x0ff0_0000;
/// Its bytes.
pub const STACK_BYTES: u64 = 1 << 20;
/// The end of the addresses that programs may have: there the snippet arena begins.
pub const END: u64 = 0x4000_0000;
/// Most programs of a job.
pub const MAX_PROGRAMS: usize = 256;
/// Most segments of a program.
pub const MAX_SEGMENTS: usize = 64;
/// Longest text that a program leaves behind, in bytes.
pub const MAX_MESSAGE_BYTES: u64 = 512;
/// Bytes of a length and [`MAX_MESSAGE_BYTES`] of text: what a program leaves behind.
pub const MESSAGE_BYTES: u64 = 8 + MAX_MESSAGE_BYTES;

const LENGTH_AT: usize = 8;
const HEAD_AT: usize = 12;

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

/// A call that is measured, in place of a body.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Call<'a> {
    /// The program's position in the ramdisk, among programs.
    pub program: u16,
    /// Address of the function.
    pub function: u64,
    /// Code that runs after each run, unmeasured.
    #[serde(borrow)]
    pub teardown: alloc::borrow::Cow<'a, [u8]>,
}

/// What a program is made of.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Head {
    /// Its segments, by rising addresses.
    pub segments: Vec<Segment>,
    /// Where it leaves a text before it gives up: a length of eight bytes, then as many bytes of UTF-8.
    pub message: Option<u64>,
    /// Digest of what it was linked from, for the report.
    pub key: u64,
    /// What was added to the addresses of its file.
    pub bias: u64,
}

impl Head {
    /// What the report calls it.
    #[must_use]
    pub fn name(&self) -> ProgramKey {
        ProgramKey { key: Hex(self.key), bias: Hex(self.bias) }
    }
}

/// A piece of memory with rights of its own.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Segment {
    /// First address, a multiple of [`PAGE`].
    pub address: u64,
    /// Bytes that it has at the beginning.
    pub bytes: u64,
    /// Bytes in memory; those after [`Segment::bytes`] are zero.
    pub memory: u64,
    /// It may be written to, and every item finds it as it was.
    pub write: bool,
    /// It may be executed.
    pub execute: bool,
}

impl Segment {
    /// Its addresses.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.address..self.address + self.memory
    }

    /// Its pages.
    #[must_use]
    pub fn pages(&self) -> Range<u64> {
        self.address..(self.address + self.memory).next_multiple_of(PAGE)
    }
}

/// A program in a ramdisk.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program<'a> {
    /// What it is made of.
    pub head: Head,
    /// The bytes of all segments.
    contents: &'a [u8],
}

/// Why a program was refused.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum ProgramError {
    /// The end is missing.
    #[error("the program is truncated: it has {0} bytes")]
    Truncated(usize),
    /// Bits changed on the way.
    #[error("the program is damaged: its checksum is {found:016x}, not {announced:016x}")]
    Sum { announced: u64, found: u64 },
    /// The head is none.
    #[error("the program's head cannot be decoded: {0}")]
    Head(String),
    /// There are too many or no segments.
    #[error("the program has {0} segments; it must have 1 to {MAX_SEGMENTS}")]
    Segments(usize),
    /// A segment that cannot be mapped.
    #[error("the segment at {address:#x} with {memory} bytes {why}")]
    Segment { address: u64, memory: u64, why: &'static str },
    /// The place of the message cannot be read.
    #[error("the message at {0:#x} is in no writable segment")]
    Message(u64),
}

impl<'a> Program<'a> {
    /// Reads what [`pack`] made.
    ///
    /// # Errors
    /// It is damaged, or has what cannot be mapped.
    pub fn unpack(bytes: &'a [u8]) -> Result<Self, ProgramError> {
        let truncated = || ProgramError::Truncated(bytes.len());
        let announced = u64::from_le_bytes(*bytes.first_chunk().ok_or_else(truncated)?);
        let found = sum(&bytes[LENGTH_AT..]);
        if announced != found {
            return Err(ProgramError::Sum { announced, found });
        }
        let length = bytes[LENGTH_AT..].first_chunk().ok_or_else(truncated)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (head, contents) = bytes[HEAD_AT..].split_at_checked(length).ok_or_else(truncated)?;
        let head: Head =
            postcard::from_bytes(head).map_err(|error| ProgramError::Head(error.to_string()))?;
        check(&head)?;
        let wanted = head.segments.iter().map(|segment| segment.bytes).sum::<u64>();
        if contents.len() as u64 != wanted {
            return Err(truncated());
        }
        Ok(Self { head, contents })
    }

    /// Each segment with the bytes that it has at the beginning.
    pub fn segments(&self) -> impl Iterator<Item = (&Segment, &'a [u8])> + '_ {
        let mut rest = self.contents;
        self.head.segments.iter().map(move |segment| {
            let (bytes, behind) = rest.split_at(segment.bytes as usize);
            rest = behind;
            (segment, bytes)
        })
    }
}

/// Puts a program into its binary form: `contents` are the bytes of all segments, one after the other.
///
/// # Errors
/// It has what cannot be mapped, or other bytes than its segments say.
pub fn pack(head: &Head, contents: &[u8]) -> Result<Vec<u8>, ProgramError> {
    check(head)?;
    if head.segments.iter().map(|segment| segment.bytes).sum::<u64>() != contents.len() as u64 {
        return Err(ProgramError::Truncated(contents.len()));
    }
    let coded =
        postcard::to_allocvec(head).map_err(|error| ProgramError::Head(error.to_string()))?;
    let mut bytes = Vec::with_capacity(HEAD_AT + coded.len() + contents.len());
    bytes.extend_from_slice(&[0; LENGTH_AT]);
    bytes.extend_from_slice(&(coded.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&coded);
    bytes.extend_from_slice(contents);
    let sum = sum(&bytes[LENGTH_AT..]);
    bytes[..LENGTH_AT].copy_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

/// Checks that every segment can be mapped, with rights of its own.
///
/// # Errors
/// The first that cannot.
pub fn check(head: &Head) -> Result<(), ProgramError> {
    if head.segments.is_empty() || head.segments.len() > MAX_SEGMENTS {
        return Err(ProgramError::Segments(head.segments.len()));
    }
    let mut last = LOWEST;
    for segment in &head.segments {
        let (address, memory) = (segment.address, segment.memory);
        let refused = |why| Err(ProgramError::Segment { address, memory, why });
        if !address.is_multiple_of(PAGE) {
            return refused("does not begin at a page");
        }
        if !(LOWEST..END).contains(&address) || memory > END - address {
            return refused("is outside 0x10000 to 0x40000000, where programs may be");
        }
        if memory == 0 || segment.bytes > memory {
            return refused("has more bytes in the file than in memory, or no bytes");
        }
        if segment.write && segment.execute {
            return refused("is both writable and executable");
        }
        if address < last {
            return refused("shares a page with the one before it");
        }
        last = segment.pages().end;
    }
    let fits = |at: u64| {
        let inside = |range: Range<u64>| range.contains(&at) && MESSAGE_BYTES <= range.end - at;
        head.segments.iter().any(|segment| segment.write && inside(segment.range()))
    };
    match head.message.filter(|&at| !fits(at)) {
        Some(at) => Err(ProgramError::Message(at)),
        None => Ok(()),
    }
}

/// A sum that notices any changed word, and words in another order. Each step is invertible, so two inputs that differ in
/// one word never have the same sum.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    // 2^64 divided by the golden ratio, made odd: multiplying by it spreads every bit upwards.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(SPREAD).rotate_left(29);
    let (words, rest) = bytes.as_chunks::<8>();
    let whole =
        words.iter().fold(bytes.len() as u64, |sum, word| step(sum, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    step(whole, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests;
