//! A linked file that was looked through, made ready for the readers of its debug information.
//!
//! The linker leaves its relocations for `reach`. They have been applied, and those of debug information that name sections
//! which were left out have no symbol any more: a reader that applies them again says so on standard error.

use super::error::{FileError, ProgramError, WrongFile};
use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHF_ALLOC, SHT_NULL, SHT_REL, SHT_RELA, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader};
use std::mem::{offset_of, size_of};
use std::path::Path;

/// Takes the relocations of all that is not loaded out of the file's list of sections.
///
/// # Errors
/// The file cannot be read or written.
pub(super) fn drop_relocations(path: &Path) -> Result<(), ProgramError> {
    let failed = |error| FileError::new(path, WrongFile::Read(error));
    let mut bytes = std::fs::read(path).map_err(failed)?;
    for at in applied(&bytes).map_err(FileError::damaged(path))? {
        bytes[at..at + size_of::<u32>()].copy_from_slice(&SHT_NULL.0.to_le_bytes());
    }
    std::fs::write(path, bytes).map_err(|error| ProgramError::Tool(error.to_string()))
}

/// Where the types of those sections stand.
fn applied(bytes: &[u8]) -> object::Result<Vec<usize>> {
    let header = FileHeader64::<LE>::parse(bytes)?;
    let sections = header.section_headers(LE, bytes)?;
    let first = header.e_shoff(LE) as usize + offset_of!(SectionHeader64<LE>, sh_type);
    let is_applied = |section: &SectionHeader64<LE>| {
        let target = sections.get(section.sh_info(LE) as usize);
        [SHT_REL, SHT_RELA].contains(&section.sh_type(LE))
            && section.sh_info(LE) != 0
            && target.is_some_and(|target| !target.sh_flags(LE).contains(SHF_ALLOC))
    };
    let applied = sections.iter().enumerate().filter(|(_, section)| is_applied(section));
    Ok(applied.map(|(at, _)| first + at * size_of::<SectionHeader64<LE>>()).collect())
}
