//! A position independent program as it is when it is at its own addresses.

use object::{Object, ObjectSegment, RelocationFlags};

/// x86-64 psABI, table 4.9.
const R_RELATIVE: u32 = 8;

/// The bytes of `file` with the addresses in them that a loader would write: in the file they are in a table alone. Packed ones
/// (SHT_RELR) are in their places already.
pub(super) fn relocated(file: &object::File<'_>, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
        if !matches!(relocation.flags(), RelocationFlags::Elf { r_type } if r_type.0 == R_RELATIVE)
        {
            continue;
        }
        let place = file.segments().find_map(|segment| {
            let (first, size) = segment.file_range();
            let offset = at.checked_sub(segment.address()).filter(|offset| *offset < size)?;
            usize::try_from(first.checked_add(offset)?).ok()
        });
        let word = place.and_then(|place| bytes.get_mut(place..)?.first_chunk_mut());
        if let Some(word) = word {
            *word = relocation.addend().to_le_bytes();
        }
    }
    bytes
}
