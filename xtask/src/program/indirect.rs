//! Indirect functions (IFUNC) of static programs.
//!
//! The start-up code of a C library asks each which of its variants is to be called, and writes the answer to a slot, through
//! which all calls go. Nobody does that here, so whoever reaches such a slot would jump to nowhere.

use super::error::{FileError, ProgramError};
use super::image::File;
use object::LittleEndian as LE;
use object::elf::{Rela64, SHF_ALLOC, SHT_RELA};
use object::read::elf::{FileHeader, SectionHeader};
use std::collections::BTreeMap;
use std::path::Path;

/// x86-64 psABI, table 4.9: R_X86_64_IRELATIVE.
pub(super) const R_IRELATIVE: u32 = 37;

/// The slots, each with the function that chooses the variant.
///
/// # Errors
/// The list of sections cannot be read.
pub(super) fn slots(file: &File, path: &Path) -> Result<BTreeMap<u64, u64>, ProgramError> {
    let damaged = FileError::damaged(path);
    let (header, bytes) = (file.elf.elf_header(), file.elf.data());
    let sections = header.section_headers(LE, bytes).map_err(&damaged)?;
    let mut slots = BTreeMap::new();
    for section in sections {
        let is_loaded = section.sh_flags(LE).contains(SHF_ALLOC);
        if section.sh_type(LE) != SHT_RELA || !is_loaded {
            continue;
        }
        let entries: &[Rela64<LE>] = section.data_as_array(LE, bytes).map_err(&damaged)?;
        let indirect = entries.iter().filter(|one| one.r_type(LE, false).0 == R_IRELATIVE);
        slots.extend(indirect.map(|one| {
            let chooser = (one.r_addend.get(LE) as u64).wrapping_add(file.bias);
            (one.r_offset.get(LE).wrapping_add(file.bias), chooser)
        }));
    }
    Ok(slots)
}
