//! Putting the hypervisor's ELF file into memory.

use crate::Refusal;
use elf::ElfBytes;
use elf::abi::{DT_RELA, DT_RELASZ, PT_LOAD, R_X86_64_RELATIVE};
use elf::endian::LittleEndian as Little;

/// What the memory's start must be a multiple of.
pub const ALIGN: u64 = 1 << 21;
/// Bytes of an Elf64_Rela: offset, info, addend.
const RELA_BYTES: usize = 24;

type File<'a> = ElfBytes<'a, Little>;

fn parse(file: &[u8]) -> Option<File<'_>> {
    ElfBytes::minimal_parse(file).ok()
}

/// Bytes of memory that the file takes when loaded.
///
/// # Errors
/// [`Refusal::Image`] if it is no such file.
pub fn bytes_needed(file: &[u8]) -> Result<u64, Refusal> {
    let file = parse(file).ok_or(Refusal::Image)?;
    let segments = file.segments().ok_or(Refusal::Image)?;
    let mut end = 0;
    for segment in segments.iter().filter(|segment| segment.p_type == PT_LOAD) {
        end = end.max(segment.p_vaddr.checked_add(segment.p_memsz).ok_or(Refusal::Image)?);
    }
    if end == 0 { Err(Refusal::Image) } else { Ok(end) }
}

/// Loads `file` into `memory`, which will are at `address` when it runs, and applies its relocations.
/// Returns the address of its entry point.
///
/// # Errors
/// [`Refusal::Image`] if the file is damaged or does not fit.
pub fn load(file: &[u8], memory: &mut [u8], address: u64) -> Result<u64, Refusal> {
    place(file, memory, address).ok_or(Refusal::Image)
}

fn place(file: &[u8], memory: &mut [u8], address: u64) -> Option<u64> {
    let file = parse(file)?;
    memory.fill(0);
    for segment in file.segments()?.iter().filter(|segment| segment.p_type == PT_LOAD) {
        let content = file.segment_data(&segment).ok()?;
        let start = usize::try_from(segment.p_vaddr).ok()?;
        let end = start.checked_add(content.len())?;
        let whole = start.checked_add(usize::try_from(segment.p_memsz).ok()?)?;
        if whole > memory.len() || end > whole {
            return None;
        }
        memory[start..end].copy_from_slice(content);
    }
    relocate(&file, memory, address)?;
    let entry = file.ehdr.e_entry;
    (entry < memory.len() as u64).then(|| address + entry)
}

/// Adds `address` to every place that the table of relative relocations names. A position-independent
/// program without libraries has no other kind.
fn relocate(file: &File, memory: &mut [u8], address: u64) -> Option<()> {
    let Some(dynamic) = file.dynamic().ok()? else { return Some(()) };
    let value = |tag| dynamic.iter().find(|entry| entry.d_tag == tag).map(|entry| entry.d_val());
    let (Some(at), Some(bytes)) = (value(DT_RELA), value(DT_RELASZ)) else { return Some(()) };
    let (at, bytes) = (usize::try_from(at).ok()?, usize::try_from(bytes).ok()?);
    let table = at..at.checked_add(bytes)?;
    memory.get(table.clone())?;
    for entry in table.step_by(RELA_BYTES) {
        let word = |index: usize| -> Option<u64> {
            let at = entry + 8 * index;
            Some(u64::from_le_bytes(memory.get(at..at + 8)?.try_into().ok()?))
        };
        let (offset, info, addend) = (word(0)?, word(1)?, word(2)?);
        if info & 0xffff_ffff != u64::from(R_X86_64_RELATIVE) {
            return None;
        }
        let target = usize::try_from(offset).ok()?;
        let value = address.wrapping_add(addend);
        memory.get_mut(target..target.checked_add(8)?)?.copy_from_slice(&value.to_le_bytes());
    }
    Some(())
}

#[cfg(test)]
mod tests;
