//! What stands behind the job.

use super::{
    CRC_AT, HEADER_BYTES as JOB_AT, LENGTH_AT as JOB_LENGTH_AT, MAGIC, RamdiskError, SECTIONS_AT,
    checksum, field, frame,
};
use crate::authentication::Key;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;

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
    /// The boot's key: [`crate::authentication::KEY_BYTES`].
    Key = 3,
    /// A program, in the form of [`crate::program`]. There may be several.
    Program = 4,
    /// Which serial ports the report goes to: [`crate::serial::SerialPorts`] in postcard form.
    SerialPorts = 5,
    /// The report is to be KTAP: [`crate::ktap`]. The content is empty.
    Ktap = 6,
}

/// Writes the sections after the job.
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

/// Adds a section to a ramdisk that is packed.
///
/// # Errors
/// As for [`section`]; or there is no room for another one.
pub fn add_section(
    bytes: &mut Vec<u8>,
    kind: SectionKind,
    content: &[u8],
) -> Result<(), RamdiskError> {
    let framed = frame(bytes)?.0.len();
    let count = u16::from_le_bytes(field(bytes, SECTIONS_AT)).checked_add(1);
    let count = count
        .ok_or_else(|| RamdiskError::Decode("there are more than 65535 sections".to_string()))?;
    append(bytes, &[(kind, content)])?;
    bytes[SECTIONS_AT..SECTIONS_AT + 2].copy_from_slice(&count.to_le_bytes());
    // The count is among what the checksum covers.
    let sum = checksum(&bytes[..framed]);
    bytes[CRC_AT..JOB_AT].copy_from_slice(&sum.to_le_bytes());
    Ok(())
}

/// The content of the first section of this kind; `None` if there is none.
///
/// # Errors
/// The ramdisk itself is refused for the same reasons as by [`unpack`](super::unpack); or this section, or one
/// before it, is not all there.
pub fn section(bytes: &[u8], kind: SectionKind) -> Result<Option<&[u8]>, RamdiskError> {
    nth_section(bytes, kind, 0)
}

/// The content of the section of this kind before which there are `before` others of it; `None` if there are not so many.
///
/// # Errors
/// As for [`section`].
pub fn nth_section(
    bytes: &[u8],
    kind: SectionKind,
    before: usize,
) -> Result<Option<&[u8]>, RamdiskError> {
    let range = find_in(bytes, frame(bytes)?.1, kind, before)?;
    Ok(range.map(|range| &bytes[range]))
}

/// Takes the boot's key out of the ramdisk: its place holds zeros afterwards. `None` if there is none, or if the ramdisk
/// is not all there. The job's checksum is not looked at, which takes as long as the job is large.
pub fn take_key(bytes: &mut [u8]) -> Option<Key> {
    let announced = bytes.starts_with(&MAGIC).then(|| bytes.get(JOB_LENGTH_AT..))??;
    let announced = u32::from_le_bytes(*announced.first_chunk()?) as usize;
    let rest = bytes.get(JOB_AT.checked_add(announced)?..)?;
    let range = find_in(bytes, rest, SectionKind::Key, 0).ok()??;
    let place = &mut bytes[range];
    let key = Key::new((&*place).try_into().ok()?);
    place.fill(0);
    Some(key)
}

/// Where the section of this kind lies that has `before` others of it before it. `rest` is what stands behind the job.
fn find_in(
    bytes: &[u8],
    mut rest: &[u8],
    kind: SectionKind,
    mut before: usize,
) -> Result<Option<Range<usize>>, RamdiskError> {
    for index in 0..u16::from_le_bytes(field(bytes, SECTIONS_AT)) {
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
        if found == kind as u32 && before == 0 {
            let end = bytes.len() - behind.len();
            return Ok(Some(end - content.len()..end));
        }
        before -= usize::from(found == kind as u32);
        rest = behind;
    }
    Ok(None)
}
