//! The segments of a linked file, as they go to the machine.

use super::error::{FileError, ProgramError, WrongFile};
use super::indirect::R_IRELATIVE;
use object::LittleEndian as LE;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, Rela};
use object::{Object, elf};
use protocol::program::{END, Head, LINKED_AT, LOWEST, MAX_SEGMENTS, PAGE, Segment, check};
use std::collections::BTreeMap;
use std::path::Path;

/// x86-64 psABI, table 4.9.
const R_RELATIVE: u32 = 8;
/// Of the generic ABI: packed relative relocations, their bytes.
const DT_RELR: i64 = 36;
const DT_RELRSZ: i64 = 35;

/// A linked file, and the distance from its addresses to those that it will have.
pub(super) struct File<'a> {
    pub(super) elf: ElfFile64<'a, LE>,
    path: &'a Path,
    pub(super) bias: u64,
}

/// Segments with their bytes.
pub(super) struct Image {
    pub(super) head: Head,
    pub(super) contents: Vec<u8>,
}

impl<'a> File<'a> {
    /// Reads a linked file.
    pub(super) fn parse(path: &'a Path, bytes: &'a [u8]) -> Result<Self, ProgramError> {
        let damaged = FileError::damaged(path);
        let elf = ElfFile64::<LE>::parse(bytes).map_err(&damaged)?;
        let independent = elf.elf_header().e_type(LE) == elf::ET_DYN;
        let first = elf.elf_program_headers().iter().filter(|one| one.p_type(LE) == elf::PT_LOAD);
        let lowest = first.map(|one| one.p_vaddr(LE)).min().unwrap_or(0) & !(PAGE - 1);
        let bias = if independent { LINKED_AT.wrapping_sub(lowest) } else { 0 };
        Ok(Self { elf, path, bias })
    }

    fn wrong(&self, text: impl Into<String>) -> ProgramError {
        FileError::new(self.path, WrongFile::Damaged(text.into())).into()
    }

    /// The segments, with relative relocations applied. `message` is where the program leaves a text.
    pub(super) fn image(&self, message: Option<u64>) -> Result<Image, ProgramError> {
        let mut pieces: BTreeMap<u64, (Segment, Vec<u8>)> = BTreeMap::new();
        let headers = self.elf.elf_program_headers();
        let loaded =
            headers.iter().filter(|one| one.p_type(LE) == elf::PT_LOAD && one.p_memsz(LE) > 0);
        // Before their bytes are taken, of which many may be the same.
        let count = loaded.clone().count();
        if count > MAX_SEGMENTS {
            return Err(ProgramError::Segments(protocol::program::ProgramError::Segments(count)));
        }
        for header in loaded {
            let (segment, bytes) = self.piece(header)?;
            let (from, to) = (segment.address, segment.address.saturating_add(segment.memory));
            if from < LOWEST || to > END {
                return Err(ProgramError::TooLarge { from, to });
            }
            if let Some((other, _)) = pieces.insert(from, (segment, bytes)) {
                return Err(ProgramError::Overlap { first: other.address, second: from });
            }
        }
        let ranges: Vec<_> = pieces.values().map(|(segment, _)| segment.range()).collect();
        if let Some([first, second]) = ranges.array_windows().find(|[one, two]| two.start < one.end)
        {
            return Err(ProgramError::Overlap { first: first.start, second: second.start });
        }
        self.relocate(&mut pieces)?;
        let (segments, contents): (Vec<_>, Vec<_>) = pieces.into_values().unzip();
        let writable = |at: &u64| segments.iter().any(|one| one.write && one.range().contains(at));
        let head = Head { message: message.filter(writable), segments, ..Head::default() };
        check(&head)?;
        Ok(Image { head, contents: contents.concat() })
    }

    /// A segment from the beginning of its first page, with its bytes.
    fn piece(&self, header: &elf::ProgramHeader64<LE>) -> Result<(Segment, Vec<u8>), ProgramError> {
        let (at, size) = (header.p_vaddr(LE).wrapping_add(self.bias), header.p_memsz(LE));
        let in_file = header
            .data(LE, self.elf.data())
            .map_err(|()| self.wrong("a segment is beyond its end"))?;
        if in_file.len() as u64 > size {
            return Err(self.wrong("a segment has more bytes in the file than in memory"));
        }
        let address = at & !(PAGE - 1);
        let ahead = at - address;
        let memory =
            size.checked_add(ahead).ok_or(ProgramError::TooLarge { from: at, to: u64::MAX })?;
        let mut bytes = vec![0; ahead as usize];
        bytes.extend_from_slice(in_file);
        let flags = header.p_flags(LE);
        let segment = Segment {
            address,
            bytes: bytes.len() as u64,
            memory,
            write: flags.contains(elf::PF_W),
            execute: flags.contains(elf::PF_X),
        };
        Ok((segment, bytes))
    }

    /// Applies the relocations of a position independent executable.
    fn relocate(&self, pieces: &mut BTreeMap<u64, (Segment, Vec<u8>)>) -> Result<(), ProgramError> {
        let headers = self.elf.elf_program_headers();
        if let Some(header) = headers.iter().find(|one| one.p_type(LE) == elf::PT_INTERP) {
            let name = header.interpreter(LE, self.elf.data()).ok().flatten().unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            return Err(FileError::new(self.path, WrongFile::Dynamic(name)).into());
        }
        let Some(entries) =
            headers.iter().find_map(|one| one.dynamic(LE, self.elf.data()).transpose())
        else {
            return Ok(());
        };
        let entries = entries.map_err(FileError::damaged(self.path))?;
        let value = |tag: i64| {
            let found = entries.iter().find(|entry| entry.d_tag(LE).0 == tag);
            found.map(|entry| entry.d_val(LE))
        };
        if value(elf::DT_NEEDED.0).is_some() {
            let what = WrongFile::Dynamic("it needs shared libraries".to_string());
            return Err(FileError::new(self.path, what).into());
        }
        let mut words: Vec<(u64, Option<u64>)> = Vec::new();
        if let (Some(at), Some(bytes)) = (value(DT_RELR), value(DT_RELRSZ)) {
            words.extend(self.packed(at, bytes)?.into_iter().map(|at| (at, None)));
        }
        let mut others: BTreeMap<u32, usize> = BTreeMap::new();
        for (table, bytes) in
            [(elf::DT_RELA.0, elf::DT_RELASZ.0), (elf::DT_JMPREL.0, elf::DT_PLTRELSZ.0)]
        {
            let (Some(at), Some(bytes)) = (value(table), value(bytes)) else { continue };
            let table = self.bytes(at, bytes)?;
            let count = bytes as usize / size_of::<elf::Rela64<LE>>();
            let (relocations, _) = object::pod::slice_from_bytes::<elf::Rela64<LE>>(table, count)
                .map_err(|()| self.wrong("its relocations cannot be read"))?;
            for relocation in relocations {
                match relocation.r_type(LE, false).0 {
                    // Every `-static-pie` with a C library has such slots; who reaches one is refused: `reach`.
                    0 | R_IRELATIVE => {}
                    R_RELATIVE => {
                        let target = (relocation.r_addend(LE) as u64).wrapping_add(self.bias);
                        words.push((relocation.r_offset(LE), Some(target)));
                    }
                    other => *others.entry(other).or_default() += 1,
                }
            }
        }
        if let Some((kind, count)) = others.into_iter().next() {
            return Err(ProgramError::Relocation { kind, count });
        }
        words.into_iter().try_for_each(|(at, value)| self.put(pieces, at, value))
    }

    /// Writes `value` at the word `at` of the file's addresses; without a value, adds the bias to what is there.
    fn put(
        &self,
        pieces: &mut BTreeMap<u64, (Segment, Vec<u8>)>,
        at: u64,
        value: Option<u64>,
    ) -> Result<(), ProgramError> {
        let at = at.wrapping_add(self.bias);
        let outside = || self.wrong(format!("a relocation at {at:#x} is outside its segments"));
        let (_, (segment, bytes)) = pieces.range_mut(..=at).next_back().ok_or_else(outside)?;
        let offset = (at - segment.address) as usize;
        let word = bytes.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<8>());
        let word = word.ok_or_else(outside)?;
        let value = value.unwrap_or_else(|| u64::from_le_bytes(*word).wrapping_add(self.bias));
        *word = value.to_le_bytes();
        Ok(())
    }

    /// The places of packed relative relocations (generic ABI, SHT_RELR): an even entry is an address; an odd one is a bitmap
    /// of the 63 words that follow.
    fn packed(&self, at: u64, bytes: u64) -> Result<Vec<u64>, ProgramError> {
        let table = self.bytes(at, bytes)?;
        let (mut places, mut next) = (Vec::new(), 0u64);
        for entry in table.as_chunks::<8>().0 {
            let entry = u64::from_le_bytes(*entry);
            if entry & 1 == 0 {
                places.push(entry);
                next = entry.wrapping_add(8);
                continue;
            }
            let marked = (0..63u64).filter(|bit| entry >> (bit + 1) & 1 != 0);
            places.extend(marked.map(|bit| next.wrapping_add(8 * bit)));
            next = next.wrapping_add(63 * 8);
        }
        Ok(places)
    }

    /// Bytes of the file at one of its addresses.
    pub(super) fn bytes(&self, at: u64, bytes: u64) -> Result<&'a [u8], ProgramError> {
        let headers = self.elf.elf_program_headers();
        let loaded = headers.iter().filter(|one| one.p_type(LE) == elf::PT_LOAD);
        let found =
            loaded.filter_map(|one| one.data_range(LE, self.elf.data(), at, bytes).ok().flatten());
        let missing = || self.wrong(format!("{bytes} bytes at {at:#x} are not in the file"));
        found.into_iter().next().ok_or_else(missing)
    }

    /// The words of the section `name`: constructors.
    pub(super) fn words(&self, name: &str, image: &Image) -> Vec<u64> {
        use object::ObjectSection;
        let Some(section) = self.elf.section_by_name(name) else { return Vec::new() };
        let at = section.address().wrapping_add(self.bias);
        (0..section.size() / 8).map_while(|index| image.word(at.wrapping_add(8 * index))).collect()
    }
}

impl Image {
    /// The word at an address.
    pub(super) fn word(&self, at: u64) -> Option<u64> {
        let mut offset = 0;
        for segment in &self.head.segments {
            if segment.range().contains(&at) {
                let begin = offset + (at - segment.address);
                let inside = at - segment.address + 8 <= segment.bytes;
                let bytes = self.contents.get(begin as usize..)?.first_chunk()?;
                return Some(if inside { u64::from_le_bytes(*bytes) } else { 0 });
            }
            offset += segment.bytes;
        }
        None
    }
}
