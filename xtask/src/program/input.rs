//! The files that are given: what each one is, before anything is done with it.

use super::error::{FileError, WrongFile};
use object::elf;
use object::read::archive::ArchiveFile;
use std::fs;
use std::path::{Path, PathBuf};

/// A file and what it holds.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
    /// Of a thin archive, which has only names of files: these, with their bytes.
    pub(super) members: Vec<(String, Vec<u8>)>,
}

/// What a file is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// To be linked.
    Relocatable,
    /// Objects in one file.
    Archive,
    /// Linked, at its own addresses.
    Fixed,
    /// Linked, to be placed anywhere.
    Independent,
}

impl Input {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let wrong = |what| FileError::new(path, what);
        let bytes = fs::read(path).map_err(|error| wrong(WrongFile::Read(error)))?;
        let kind = kind(&bytes).map_err(wrong)?;
        let members = match kind {
            Kind::Archive => members(path, &bytes).map_err(wrong)?,
            _ => Vec::new(),
        };
        Ok(Self { path: path.to_path_buf(), bytes, kind, members })
    }

    /// All bytes that the linker reads for it.
    pub(super) fn contents(&self) -> impl Iterator<Item = &[u8]> {
        let members = self.members.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes]);
        [&*self.bytes].into_iter().chain(members)
    }

    /// The objects in it, with their names.
    pub(super) fn objects(&self) -> Result<Vec<(String, &[u8])>, FileError> {
        let name = self.path.display().to_string();
        if self.kind != Kind::Archive {
            return Ok(vec![(name, &self.bytes)]);
        }
        let damaged = FileError::damaged(&self.path);
        let archive = ArchiveFile::parse(&*self.bytes).map_err(&damaged)?;
        let within = |member: &[u8]| format!("{name}({})", String::from_utf8_lossy(member));
        let mut objects: Vec<(String, &[u8])> = Vec::new();
        for (member, bytes) in &self.members {
            objects.push((within(member.as_bytes()), bytes));
        }
        if !archive.is_thin() {
            for member in archive.members() {
                let member = member.map_err(&damaged)?;
                objects.push((within(member.name()), member.data(&*self.bytes).map_err(&damaged)?));
            }
        }
        objects.retain(|(_, bytes)| bytes.starts_with(&elf::ELFMAG));
        Ok(objects)
    }
}

/// Bytes of an ELF file's header.
const HEADER_BYTES: usize = 64;

/// What `bytes` are.
pub(super) fn kind(bytes: &[u8]) -> Result<Kind, WrongFile> {
    if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") {
        return Ok(Kind::Archive);
    }
    if bytes.starts_with(b"BC\xc0\xde") {
        return Err(WrongFile::Bitcode);
    }
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(WrongFile::NotElf);
    }
    // The offsets are those of the ELF header: System V ABI, chapter 4.
    let cut =
        || WrongFile::Damaged(format!("it ends within its header, after {} bytes", bytes.len()));
    let (&class, &order) = bytes.get(4).zip(bytes.get(5)).ok_or_else(cut)?;
    if class != elf::ELFCLASS64.0 {
        return Err(WrongFile::Bits32);
    }
    if order != elf::ELFDATA2LSB.0 {
        return Err(WrongFile::BigEndian);
    }
    if bytes.len() < HEADER_BYTES {
        return Err(cut());
    }
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    match elf::Machine(half(18)) {
        elf::EM_X86_64 => {}
        elf::EM_AARCH64 => return Err(WrongFile::Architecture("AArch64".to_string())),
        elf::EM_RISCV => return Err(WrongFile::Architecture("RISC-V".to_string())),
        other => return Err(WrongFile::Architecture(format!("ELF machine {}", other.0))),
    }
    match elf::FileType(half(16)) {
        elf::ET_REL => Ok(Kind::Relocatable),
        elf::ET_EXEC => Ok(Kind::Fixed),
        elf::ET_DYN => Ok(Kind::Independent),
        other => Err(WrongFile::Type(other.0)),
    }
}

/// The members of an archive that are files of their own: all of a thin one, none of another. Every object of the archive must
/// be one that can be linked.
fn members(path: &Path, bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, WrongFile> {
    let damaged = |error: object::Error| WrongFile::Damaged(error.to_string());
    let archive = ArchiveFile::parse(bytes).map_err(damaged)?;
    let mut files = Vec::new();
    for member in archive.members() {
        let member = member.map_err(damaged)?;
        if !archive.is_thin() {
            check_member(member.data(bytes).map_err(damaged)?)?;
            continue;
        }
        let name = String::from_utf8_lossy(member.name()).into_owned();
        // Relative to the archive's folder (binutils, "ar": thin archives).
        let file = path.parent().unwrap_or(Path::new("")).join(&name);
        let bytes =
            fs::read(file).map_err(|error| WrongFile::Member { name: name.clone(), error })?;
        check_member(&bytes)?;
        files.push((name, bytes));
    }
    Ok(files)
}

fn check_member(bytes: &[u8]) -> Result<(), WrongFile> {
    match kind(bytes) {
        // Rust puts metadata next to the code.
        Ok(Kind::Relocatable) | Err(WrongFile::NotElf) => Ok(()),
        Ok(_) => Err(WrongFile::Whole),
        Err(wrong) => Err(wrong),
    }
}
