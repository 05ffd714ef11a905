//! What stands behind the job.

use super::{RamdiskError, SECTIONS_AT, field, frame};
use alloc::string::ToString;
use alloc::vec::Vec;

const LENGTH_AT: usize = 4;
const HEADER_BYTES: usize = 8;

/// What a section holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
pub enum SectionKind {
    /// The event tables, in the form of the crate `events`.
    EventTables = 1,
    /// The licence under which the tables may be passed on: text, for whoever looks into the file.
    Licence = 2,
}

/// Writes the sections behind the job.
pub(super) fn append(
    bytes: &mut Vec<u8>,
    sections: &[(SectionKind, &[u8])],
) -> Result<(), RamdiskError> {
    for (kind, content) in sections {
        let length = u32::try_from(content.len())
            .map_err(|_| RamdiskError::Decode("a section is larger than 4 GiB".to_string()))?;
        bytes.extend_from_slice(&(*kind as u32).to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(content);
    }
    Ok(())
}

/// The content of the first section of this kind; `None` if there is none.
///
/// # Errors
/// The ramdisk itself is refused for the same reasons as by [`unpack`](super::unpack); or this section, or one
/// before it, is not all there.
pub fn section(bytes: &[u8], kind: SectionKind) -> Result<Option<&[u8]>, RamdiskError> {
    let (framed, mut rest) = frame(bytes)?;
    for index in 0..u16::from_le_bytes(field(framed, SECTIONS_AT)) {
        let truncated =
            |announced, present| Err(RamdiskError::SectionTruncated { index, announced, present });
        if rest.len() < HEADER_BYTES {
            return truncated(HEADER_BYTES, rest.len());
        }
        let found = u32::from_le_bytes(field(rest, 0));
        let length = u32::from_le_bytes(field(rest, LENGTH_AT)) as usize;
        let Some((content, behind)) = rest[HEADER_BYTES..].split_at_checked(length) else {
            return truncated(length, rest.len() - HEADER_BYTES);
        };
        if found == kind as u32 {
            return Ok(Some(content));
        }
        rest = behind;
    }
    Ok(None)
}
