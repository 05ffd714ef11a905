//! The ramdisk: a job in binary, after a header that tells a foreign, newer, cut or damaged file
//! from a good one; then sections with what else the firmware may use.
//!
//! | offset | bytes | content, little endian |
//! | --- | --- | --- |
//! | 0 | 8 | magic `BARECNT\n` |
//! | 8 | 2 | [`PROTOCOL_VERSION`] |
//! | 10 | 2 | number of sections |
//! | 12 | 4 | length of the payload in bytes |
//! | 16 | 4 | CRC-32 of bytes 0 to 15 followed by the payload |
//! | 20 | .. | payload: the [`Job`] in postcard form |
//!
//! Behind the payload come the sections, one after the other:
//!
//! | offset | bytes | content, little endian |
//! | --- | --- | --- |
//! | 0 | 4 | [`SectionKind`] |
//! | 4 | 4 | length of the content in bytes |
//! | 8 | .. | content |
//!
//! The checksum covers the job alone: a section has one of its own if it needs one, so that damage there costs the
//! section and not the job. Unknown kinds are passed over, and so are bytes after the last section: boot loaders
//! round lengths up.

mod section;

pub use section::{SectionKind, add_section, nth_section, section, take_key};

use crate::job::Job;
use crate::job::limits::{self, LimitError};
use crate::{PROTOCOL_VERSION, checksum::crc32_parts};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thiserror::Error;

/// First bytes of every ramdisk.
pub const MAGIC: [u8; 8] = *b"BARECNT\n";
const VERSION_AT: usize = 8;
const SECTIONS_AT: usize = 10;
const LENGTH_AT: usize = 12;
const CRC_AT: usize = 16;
const HEADER_BYTES: usize = 20;

/// Why a ramdisk was refused.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum RamdiskError {
    /// Shorter than a header.
    #[error("the ramdisk has {0} bytes, less than the {HEADER_BYTES} of its header")]
    NoHeader(usize),
    /// Another kind of file.
    #[error("the ramdisk does not start with the magic of a barecount job (found {0:02x?})")]
    Magic([u8; 8]),
    /// Made by a newer host tool.
    #[error(
        "the job has protocol version {found}; this firmware supports versions up to {PROTOCOL_VERSION}"
    )]
    Newer { found: u16 },
    /// The end is missing.
    #[error(
        "the ramdisk is truncated: its header announces {announced} bytes, {present} are present"
    )]
    Truncated { announced: usize, present: usize },
    /// Bits changed on the way.
    #[error("the ramdisk is damaged: its checksum is {found:08x}, its header says {announced:08x}")]
    Checksum { announced: u32, found: u32 },
    /// The end of a section is missing.
    #[error(
        "section {index} of the ramdisk is truncated: {announced} bytes are announced, {present} are present"
    )]
    SectionTruncated { index: u16, announced: usize, present: usize },
    /// The checksum is right, but the content is no job.
    #[error("the job cannot be decoded: {0}")]
    Decode(String),
    /// A value outside its bounds.
    #[error("{place}: {error}")]
    Limit { place: String, error: LimitError },
}

/// Puts a job into its binary form.
///
/// # Errors
/// As for [`pack_with`].
pub fn pack(job: &Job) -> Result<Vec<u8>, RamdiskError> {
    pack_with(job, &[])
}

/// Puts a job into its binary form, with sections after it.
///
/// # Errors
/// [`RamdiskError::Limit`] if the job breaks a bound: what is packed here always unpacks.
/// [`RamdiskError::Decode`] if a part does not fit the form.
pub fn pack_with(job: &Job, sections: &[(SectionKind, &[u8])]) -> Result<Vec<u8>, RamdiskError> {
    check(job)?;
    let payload = postcard::to_allocvec(job).map_err(|e| RamdiskError::Decode(e.to_string()))?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    let count = u16::try_from(sections.len())
        .map_err(|_| RamdiskError::Decode("there are more than 65535 sections".to_string()))?;
    bytes.extend_from_slice(&count.to_le_bytes());
    let length = u32::try_from(payload.len())
        .map_err(|_| RamdiskError::Decode("the job is larger than 4 GiB".to_string()))?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&payload);
    let crc = checksum(&bytes);
    bytes[CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    section::append(&mut bytes, sections)?;
    Ok(bytes)
}

/// Reads a job out of a ramdisk, borrowing its text and code.
///
/// # Errors
/// Says which check the ramdisk failed, in the order magic, version, length, checksum, content, bounds.
pub fn unpack(bytes: &[u8]) -> Result<Job<'_>, RamdiskError> {
    let (framed, _) = frame(bytes)?;
    let job = postcard::from_bytes(&framed[HEADER_BYTES..])
        .map_err(|e| RamdiskError::Decode(e.to_string()))?;
    check(&job)?;
    Ok(job)
}

/// Checks the header and the job's checksum. Returns header and job, and what follows.
fn frame(bytes: &[u8]) -> Result<(&[u8], &[u8]), RamdiskError> {
    if bytes.len() < HEADER_BYTES {
        return Err(RamdiskError::NoHeader(bytes.len()));
    }
    let magic = field::<8>(bytes, 0);
    if magic != MAGIC {
        return Err(RamdiskError::Magic(magic));
    }
    let version = u16::from_le_bytes(field(bytes, VERSION_AT));
    if version > PROTOCOL_VERSION {
        return Err(RamdiskError::Newer { found: version });
    }
    let announced = u32::from_le_bytes(field(bytes, LENGTH_AT)) as usize;
    let present = bytes.len() - HEADER_BYTES;
    if announced > present {
        return Err(RamdiskError::Truncated { announced, present });
    }
    let (framed, rest) = bytes.split_at(HEADER_BYTES + announced);
    let (announced, found) = (u32::from_le_bytes(field(framed, CRC_AT)), checksum(framed));
    if announced != found {
        return Err(RamdiskError::Checksum { announced, found });
    }
    Ok((framed, rest))
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the caller checked the length")
}

/// The checksum of header and job, its own field taken as absent.
fn checksum(bytes: &[u8]) -> u32 {
    crc32_parts(&[&bytes[..CRC_AT], &bytes[HEADER_BYTES..]])
}

fn check(job: &Job) -> Result<(), RamdiskError> {
    let limit = |place: String| move |error| RamdiskError::Limit { place, error };
    limits::check_job(job).map_err(limit("job".to_string()))?;
    for (index, item) in job.items.iter().enumerate() {
        let place = || alloc::format!("item {index} ({})", item.name());
        limits::check_item(item).map_err(|error| limit(place())(error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
