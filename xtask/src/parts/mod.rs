//! What the installed program carries in place of a checkout: firmware, loaders, emulated PMU, image maker, symbols,
//! licences. They were built with it, and lie compressed in its own file.
//!
//! - [`pack`] makes the archive, in a checkout; the build script puts it into the program.
//! - [`extract`] writes a part to the user's cache when it is needed: QEMU takes files.
//! - [`licences`]: whose code is in it; [`project`]: the user's own project, if there is one.

mod error;
pub mod extract;
pub mod licences;
pub mod pack;
pub mod project;

pub use error::PartsError;

use flate2::read::DeflateDecoder;
use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A part.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Part {
    /// The kernel as it is booted.
    Kernel,
    /// The kernel with its symbols and lines.
    Symbols,
    /// The direct loader.
    Direct,
    /// The BIOS loader.
    Bios,
    /// The emulated PMU's hypervisor.
    EmulatedPmu,
    /// The UEFI application that starts it.
    UefiApplication,
    /// The UEFI application that saves reports on the stick.
    StickApplication,
    /// The loader for UEFI machines.
    UefiLoader,
    /// The plugin for QEMU's translator.
    Plugin,
    /// The program that makes images.
    ImageMaker,
    /// Licences of all that is carried, and of the program.
    Licences,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Kernel,
        Self::Symbols,
        Self::Direct,
        Self::Bios,
        Self::EmulatedPmu,
        Self::UefiApplication,
        Self::StickApplication,
        Self::UefiLoader,
        Self::Plugin,
        Self::ImageMaker,
        Self::Licences,
    ];

    /// Its file's name.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Symbols => "kernel.symbols",
            Self::Direct => "direct.bin",
            Self::Bios => "bios.bin",
            Self::EmulatedPmu => "emulated-pmu",
            Self::UefiApplication => "emulated-pmu-uefi.efi",
            Self::StickApplication => "stick-uefi.efi",
            Self::UefiLoader => "uefi-loader.efi",
            Self::Plugin => "libemulated_pmu_plugin.so",
            Self::ImageMaker => "boot",
            Self::Licences => "licences.txt",
        }
    }

    /// Its file's permissions.
    fn mode(self) -> u32 {
        if self == Self::ImageMaker { 0o755 } else { 0o644 }
    }
}

/// The first bytes of an archive; the digit changes with its form.
const MAGIC: &[u8; 8] = b"bcparts1";
/// Bytes of the index's length after it.
const LENGTH: usize = size_of::<u32>();

/// What is in front of the parts.
#[derive(Debug, Deserialize, Serialize)]
struct Index {
    /// The checkout that they were built in, which the symbols name.
    source: PathBuf,
    parts: Vec<Entry>,
}

/// Where a part lies.
#[derive(Debug, Deserialize, Serialize)]
struct Entry {
    part: Part,
    /// From the first byte after the index.
    at: usize,
    /// Compressed.
    packed: usize,
    /// Bytes of the file.
    bytes: usize,
    /// Of the file's content.
    hash: String,
}

/// Against damage, not against an attacker: who can write to a user's files needs no collision.
fn hash(bytes: &[u8]) -> String {
    let mut hasher = SipHasher24::new();
    hasher.write(bytes);
    format!("{:032x}", hasher.finish128().as_u128())
}

/// An archive.
#[derive(Debug)]
pub struct Parts {
    index: Index,
    data: &'static [u8],
    /// What tells this archive from every other.
    id: String,
}

impl Parts {
    /// Reads an archive's index.
    ///
    /// # Errors
    /// It is empty, or no archive.
    pub fn read(archive: &'static [u8]) -> Result<Self, PartsError> {
        if archive.is_empty() {
            return Err(PartsError::Absent);
        }
        let damaged = || PartsError::Damaged { what: "its index" };
        let rest = archive.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let (length, rest) = rest.split_first_chunk::<LENGTH>().ok_or_else(damaged)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (index, data) = rest.split_at_checked(length).ok_or_else(damaged)?;
        // The index has every part's hash, so it stands for all.
        let id = format!("{}-{}", env!("CARGO_PKG_VERSION"), &hash(index)[..16]);
        let index = serde_json::from_slice(index).map_err(|_| damaged())?;
        Ok(Self { index, data, id })
    }

    fn entry(&self, part: Part) -> Result<&Entry, PartsError> {
        let entry = self.index.parts.iter().find(|entry| entry.part == part);
        entry.ok_or(PartsError::Damaged { what: part.file() })
    }

    /// A part's content.
    ///
    /// # Errors
    /// The program's file was damaged.
    pub fn content(&self, part: Part) -> Result<Vec<u8>, PartsError> {
        let damaged = || PartsError::Damaged { what: part.file() };
        let entry = self.entry(part)?;
        let end = entry.at.checked_add(entry.packed).ok_or_else(damaged)?;
        let packed = self.data.get(entry.at..end).ok_or_else(damaged)?;
        let mut content = Vec::new();
        // A byte more than there ought to be is enough to see that it is not the part.
        let mut reader = DeflateDecoder::new(packed).take(entry.bytes as u64 + 1);
        reader.read_to_end(&mut content).map_err(|_| damaged())?;
        if hash(&content) == entry.hash { Ok(content) } else { Err(damaged()) }
    }

    /// Bytes of a part's file.
    ///
    /// # Errors
    /// There is no such part.
    pub fn size(&self, part: Part) -> Result<usize, PartsError> {
        Ok(self.entry(part)?.bytes)
    }

    /// The checkout that they were built in.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.index.source
    }
}

static INSTALLED: OnceLock<Parts> = OnceLock::new();

/// Makes this program the installed one, which takes what it needs from `archive`.
///
/// # Errors
/// As for [`Parts::read`].
pub fn install(archive: &'static [u8]) -> Result<(), PartsError> {
    let parts = Parts::read(archive)?;
    // A second call would be with the same archive.
    let _ = INSTALLED.set(parts);
    Ok(())
}

/// The parts, if this is the installed program.
#[must_use]
pub fn installed() -> Option<&'static Parts> {
    INSTALLED.get()
}

#[cfg(test)]
mod tests;
