//! A stick, or an image of one, with the reports that were saved on it.

use fatfs::{FileSystem, FsOptions};
use mbrman::MBR;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use stick::FOLDER;
use stick::names::{self, Kind, Name};
use thiserror::Error;

/// Bytes of a sector: images and sticks of other sizes are not made here.
const SECTOR: u32 = 512;

/// Why a stick cannot be read.
#[derive(Debug, Error)]
pub enum StickError {
    /// The system's reason.
    #[error("cannot read {}: {error}", path.display())]
    File {
        /// The image or device.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Something else is on it.
    #[error("{} is not a stick of `image --save on`: {what}", path.display())]
    Other {
        /// The image or device.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
}

/// A file that was saved.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Saved {
    /// Its name.
    pub name: Name,
    /// What was saved, without what fills the file up.
    pub bytes: Vec<u8>,
}

/// What is on a stick.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stick {
    /// What was saved, by number.
    pub saved: Vec<Saved>,
    /// Bytes of each file with room for another report.
    pub rooms: Vec<u64>,
    /// The packed job.
    pub job: Option<Vec<u8>>,
}

impl Stick {
    /// The newest file of that kind.
    #[must_use]
    pub fn last(&self, kind: Kind) -> Option<&Saved> {
        self.saved.iter().rev().find(|saved| saved.name.kind == kind)
    }
}

/// Reads a stick: an image of one, or the device itself. Nothing is written to it.
///
/// # Errors
/// It cannot be read, or is something else.
pub fn read(path: &Path) -> Result<Stick, StickError> {
    let failed = |error| StickError::File { path: path.to_path_buf(), error };
    let other = |what: String| StickError::Other { path: path.to_path_buf(), what };
    let mut file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let table = MBR::read_from(&mut file, SECTOR);
    let table = table.map_err(|error| other(format!("no partition table ({error})")))?;
    let mut used = table.iter().filter(|(_, entry)| entry.is_used());
    let Some((_, first)) = used.next() else { return Err(other("no partition".to_string())) };
    let start = u64::from(first.starting_lba) * u64::from(SECTOR);
    let partition =
        Partition { file, start, at: 0, bytes: u64::from(first.sectors) * u64::from(SECTOR) };
    let system = FileSystem::new(partition, FsOptions::new());
    let system = system.map_err(|error| other(format!("no FAT file system ({error})")))?;
    let folder = system.root_dir().open_dir(FOLDER);
    let folder = folder.map_err(|error| other(format!("no folder {FOLDER} ({error})")))?;
    let mut stick = Stick { saved: Vec::new(), rooms: Vec::new(), job: None };
    for entry in folder.iter() {
        let entry = entry.map_err(failed)?;
        let title = entry.file_name();
        let content = || {
            let mut content = Vec::new();
            entry.to_file().read_to_end(&mut content).map(|_| content)
        };
        if names::is_room(&title) {
            stick.rooms.push(entry.len());
        } else if title.eq_ignore_ascii_case(stick::JOB) {
            stick.job = Some(content().map_err(failed)?);
        } else if let Some(name) = Name::parse(&title) {
            let content = content().map_err(failed)?;
            let bytes = names::report(&content);
            // What is not a report begins with a line end.
            let start = bytes.iter().position(|byte| *byte != names::FILL).unwrap_or(0);
            stick.saved.push(Saved { name, bytes: bytes[start..].to_vec() });
        }
    }
    stick.saved.sort_by_key(|saved| (saved.name.number, saved.name));
    Ok(stick)
}

/// A part of a file that nobody writes to.
struct Partition {
    file: File,
    start: u64,
    at: u64,
    bytes: u64,
}

impl Read for Partition {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.bytes.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        self.file.seek(SeekFrom::Start(self.start + self.at))?;
        let count = self.file.read(&mut buffer[..wanted])?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Partition {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Write for Partition {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_said_to_be_one() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert_eq!(error, format!("cannot read {}: is a directory", folder.path().display()));
    }
}
