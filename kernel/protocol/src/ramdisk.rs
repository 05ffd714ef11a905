//! The ramdisk: a job in binary, behind a header that tells a foreign, newer, cut or damaged file
//! from a good one.
//!
//! | offset | bytes | content, little endian |
//! | --- | --- | --- |
//! | 0 | 8 | magic `BARECNT\n` |
//! | 8 | 2 | [`PROTOCOL_VERSION`] |
//! | 10 | 2 | zero |
//! | 12 | 4 | length of the payload in bytes |
//! | 16 | 4 | CRC-32 of bytes 0 to 15 followed by the payload |
//! | 20 | .. | payload: the [`Job`] in postcard form |
//!
//! Bytes behind the payload are ignored: boot loaders round lengths up.

use crate::job::Job;
use crate::limits::{self, LimitError};
use crate::{PROTOCOL_VERSION, checksum::crc32_parts};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use thiserror::Error;

/// First bytes of every ramdisk.
pub const MAGIC: [u8; 8] = *b"BARECNT\n";
const VERSION_AT: usize = 8;
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
    #[error("the job has protocol version {found}; this firmware knows up to {PROTOCOL_VERSION}")]
    Newer { found: u16 },
    /// The end is missing.
    #[error(
        "the ramdisk is truncated: its header announces {announced} bytes, {present} are there"
    )]
    Truncated { announced: usize, present: usize },
    /// Bits changed on the way.
    #[error("the ramdisk is damaged: its checksum is {found:08x}, its header says {announced:08x}")]
    Checksum { announced: u32, found: u32 },
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
/// [`RamdiskError::Limit`] if the job breaks a bound: what is packed here always unpacks.
pub fn pack(job: &Job) -> Result<Vec<u8>, RamdiskError> {
    check(job)?;
    let payload = postcard::to_allocvec(job).map_err(|e| RamdiskError::Decode(e.to_string()))?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0, 0]);
    let length = u32::try_from(payload.len())
        .map_err(|_| RamdiskError::Decode("the job is larger than 4 GiB".to_string()))?;
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&payload);
    let crc = checksum(&bytes);
    bytes[CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    Ok(bytes)
}

/// Reads a job out of a ramdisk, borrowing its text and code.
///
/// # Errors
/// Says which check the ramdisk failed, in the order magic, version, length, checksum, content, bounds.
pub fn unpack(bytes: &[u8]) -> Result<Job<'_>, RamdiskError> {
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
    let bytes = &bytes[..HEADER_BYTES + announced];
    let (announced, found) = (u32::from_le_bytes(field(bytes, CRC_AT)), checksum(bytes));
    if announced != found {
        return Err(RamdiskError::Checksum { announced, found });
    }
    let job = postcard::from_bytes(&bytes[HEADER_BYTES..])
        .map_err(|e| RamdiskError::Decode(e.to_string()))?;
    check(&job)?;
    Ok(job)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the caller checked the length")
}

/// The checksum of a whole ramdisk, its own field taken as absent.
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
mod tests {
    use super::*;
    use crate::job::{OnEnd, tests::any_job, tests::snippet};
    use alloc::borrow::Cow;
    use proptest::prelude::*;

    fn job() -> Job<'static> {
        Job {
            name: Cow::Borrowed("test"),
            baud: 115_200,
            on_end: OnEnd::Halt,
            exit_port: Some(0xf4),
            self_test: None,
            items: alloc::vec![crate::job::Item::Snippet(snippet("nop", &[0x90]))],
        }
    }

    #[test]
    fn a_job_comes_back_as_it_was_even_with_bytes_behind_it() {
        let mut bytes = pack(&job()).unwrap();
        assert_eq!(unpack(&bytes).unwrap(), job());
        bytes.extend_from_slice(&[0xaa; 4096]);
        assert_eq!(unpack(&bytes).unwrap(), job());
    }

    #[test]
    fn each_refusal_has_its_own_error() {
        let good = pack(&job()).unwrap();
        assert_eq!(unpack(&[]), Err(RamdiskError::NoHeader(0)));
        assert!(matches!(unpack(&[0; 64]), Err(RamdiskError::Magic(_))));
        let mut newer = good.clone();
        newer[VERSION_AT] = 2;
        assert_eq!(unpack(&newer), Err(RamdiskError::Newer { found: 2 }));
        let cut = &good[..good.len() - 1];
        assert!(matches!(unpack(cut), Err(RamdiskError::Truncated { .. })));
        let mut bad = job();
        bad.baud = 12345;
        assert!(matches!(pack(&bad), Err(RamdiskError::Limit { .. })));
    }

    #[test]
    fn a_right_checksum_over_nonsense_is_not_a_job() {
        let mut bytes = pack(&job()).unwrap();
        bytes[HEADER_BYTES..].fill(0xff);
        let crc = checksum(&bytes);
        bytes[CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        assert!(matches!(unpack(&bytes), Err(RamdiskError::Decode(_))));
    }

    proptest! {
        #[test]
        fn what_packs_unpacks(job in any_job()) {
            if let Ok(bytes) = pack(&job) {
                prop_assert_eq!(unpack(&bytes).unwrap(), job);
            }
        }

        #[test]
        fn any_flipped_bit_is_noticed(at in 0usize..usize::MAX, bit in 0u8..8) {
            let mut bytes = pack(&job()).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert!(unpack(&bytes).is_err(), "byte {} bit {}", at, bit);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = unpack(&bytes);
            let mut framed = pack(&job()).unwrap()[..HEADER_BYTES].to_vec();
            framed[LENGTH_AT..CRC_AT].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
            framed.extend_from_slice(&bytes);
            let crc = checksum(&framed);
            framed[CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
            let _ = unpack(&framed);
        }
    }
}
