//! The stick, through the firmware's own file system.

use alloc::format;
use alloc::string::{FromUtf8Error, String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use protocol::stream::{Event, Reader};
use stick::names::{self, FILL, Kind, Name};
use stick::settings::{self, Settings, SettingsError};
use stick::{FOLDER, SETTINGS};
use thiserror::Error;
use uefi::fs::{self, FileSystem};
use uefi::proto::media::file::{
    Directory, File, FileAttribute, FileInfo, FileMode, FileType, RegularFile,
};
use uefi::proto::media::fs::SimpleFileSystem;
use uefi::runtime::{self, Time};
use uefi::{CString16, Handle, boot, println};

/// Why something cannot be read or written.
#[derive(Debug, Error)]
pub enum VolumeError {
    /// The firmware does not say where the application came from.
    #[error("the partition that this program came from cannot be read: {0}")]
    NoPartition(uefi::Error),
    /// The settings cannot be read.
    #[error("{SETTINGS}: {0}")]
    Read(fs::Error),
    /// They are not UTF-8.
    #[error("{SETTINGS}: {0}")]
    Text(FromUtf8Error),
    /// They are wrong.
    #[error("{SETTINGS}: {0}")]
    Settings(SettingsError),
    /// The firmware's error with a file.
    #[error("{0}: {1}")]
    File(String, uefi::Error),
    /// The stick has no place of that size left.
    #[error(
        "no file with room for {bytes} bytes is left in {FOLDER} ({left} are left, the largest of {most} bytes)"
    )]
    Full {
        /// Of the report.
        bytes: usize,
        /// Files.
        left: usize,
        /// Bytes of the largest.
        most: u64,
    },
    /// What was read back is something else in each of the files that were tried.
    #[error("the data written to {0} files reads back differently")]
    ReadsBack(usize),
}

/// Reads what is to be done.
pub fn settings(home: Handle) -> Result<Settings, VolumeError> {
    let name = CString16::try_from(SETTINGS).expect("a plain name");
    let partition = boot::open_protocol_exclusive::<SimpleFileSystem>(home);
    let mut system = FileSystem::new(partition.map_err(VolumeError::NoPartition)?);
    let bytes = system.read(name.as_ref()).map_err(VolumeError::Read)?;
    let text = String::from_utf8(bytes).map_err(VolumeError::Text)?;
    settings::parse(&text).map_err(VolumeError::Settings)
}

/// Year, month and day by the machine's clock. A machine without a clock has a date all the same.
pub fn date() -> (u16, u8, u8) {
    let time = runtime::get_time().ok().filter(|time| time.is_valid().is_ok());
    time.map_or((0, 0, 0), |time| (time.year(), time.month(), time.day()))
}

/// A file of the folder.
struct Entry {
    name: String,
    bytes: u64,
}

/// The folder of the reports.
struct Folder {
    directory: Directory,
}

fn at<T>(name: &str, result: uefi::Result<T>) -> Result<T, VolumeError> {
    result.map_err(|error| VolumeError::File(name.to_string(), error))
}

fn wide(name: &str) -> CString16 {
    CString16::try_from(name).expect("names of this folder are plain")
}

impl Folder {
    fn open(home: Handle) -> Result<Self, VolumeError> {
        let partition = boot::open_protocol_exclusive::<SimpleFileSystem>(home);
        let mut partition = partition.map_err(VolumeError::NoPartition)?;
        let mut root = partition.open_volume().map_err(VolumeError::NoPartition)?;
        let folder = at(FOLDER, root.open(&wide(FOLDER), FileMode::Read, FileAttribute::empty()))?;
        match at(FOLDER, folder.into_type())? {
            FileType::Dir(directory) => Ok(Self { directory }),
            FileType::Regular(_) => {
                Err(VolumeError::File(FOLDER.to_string(), uefi::Status::UNSUPPORTED.into()))
            }
        }
    }

    fn entries(&mut self) -> Result<Vec<Entry>, VolumeError> {
        at(FOLDER, self.directory.reset_entry_readout())?;
        let mut entries = Vec::new();
        while let Some(info) = at(FOLDER, self.directory.read_entry_boxed())? {
            if !info.attribute().contains(FileAttribute::DIRECTORY) {
                entries.push(Entry { name: info.file_name().to_string(), bytes: info.file_size() });
            }
        }
        Ok(entries)
    }

    fn file(&mut self, name: &str, mode: FileMode) -> Result<RegularFile, VolumeError> {
        let file = at(name, self.directory.open(&wide(name), mode, FileAttribute::empty()))?;
        match at(name, file.into_type())? {
            FileType::Regular(file) => Ok(file),
            FileType::Dir(_) => {
                Err(VolumeError::File(name.to_string(), uefi::Status::UNSUPPORTED.into()))
            }
        }
    }

    /// The first `bytes` of a file.
    fn read(&mut self, name: &str, bytes: u64) -> Result<Vec<u8>, VolumeError> {
        let mut file = self.file(name, FileMode::Read)?;
        let mut content = vec![0; bytes as usize];
        let mut done = 0;
        while done < content.len() {
            match at(name, file.read(&mut content[done..]))? {
                0 => break,
                count => done += count,
            }
        }
        content.truncate(done);
        Ok(content)
    }

    /// Writes over the whole content of a file, whose length stays.
    fn overwrite(&mut self, name: &str, content: &[u8]) -> Result<(), VolumeError> {
        let mut file = self.file(name, FileMode::ReadWrite)?;
        let wrote = file.write(content).map_err(|error| error.to_err_without_payload());
        at(name, wrote)?;
        at(name, file.flush())
    }

    /// Gives a file another name.
    fn rename(&mut self, from: &str, to: &str) -> Result<(), VolumeError> {
        let mut file = self.file(from, FileMode::ReadWrite)?;
        let now = at(from, file.get_boxed_info::<FileInfo>())?;
        let mut storage = vec![0_u8; 512];
        // Times of zero stay as they are (UEFI specification 13.5.16).
        let renamed = FileInfo::new(
            &mut storage,
            now.file_size(),
            now.physical_size(),
            Time::invalid(),
            Time::invalid(),
            Time::invalid(),
            now.attribute(),
            &wide(to),
        );
        let renamed = renamed.expect("names of this folder are short");
        at(from, file.set_info(renamed))?;
        at(to, file.flush())
    }

    /// The name of the next file of that kind.
    fn name(&mut self, kind: Kind) -> Result<String, VolumeError> {
        let entries = self.entries()?;
        let number = names::next_number(entries.iter().map(|entry| entry.name.as_str()));
        Ok(Name { kind, date: date(), number }.to_string())
    }
}

/// What is written for a report: something else than a report must not be taken for one if the power is cut before the file
/// has its name.
fn content(report: &[u8], kind: Kind, bytes: u64) -> Vec<u8> {
    let mut content = Vec::with_capacity(bytes as usize);
    if kind != Kind::Report {
        content.push(FILL);
    }
    content.extend_from_slice(report);
    content.resize(bytes as usize, FILL);
    content
}

/// Whether it is the whole content of a file that was about to get a report's name.
fn is_whole(content: &[u8]) -> bool {
    let report = names::report(content);
    if content.first() == Some(&FILL) || report.is_empty() {
        return false;
    }
    let mut reader = Reader::new();
    let mut events = reader.feed(report);
    let ended = reader.ended();
    events.extend(reader.finish());
    ended && events.iter().all(|event| matches!(event, Event::Record { .. }))
}

/// Saves a report in the first file with room that reads back as it was written; returns the file's name.
pub fn save(home: Handle, report: &[u8], kind: Kind) -> Result<String, VolumeError> {
    let mut folder = Folder::open(home)?;
    let mut rooms = folder.entries()?;
    rooms.retain(|entry| names::is_room(&entry.name));
    rooms.sort_by(|a, b| (a.bytes, &a.name).cmp(&(b.bytes, &b.name)));
    let (mut left, mut most, mut bad) = (0, 0, 0);
    for room in &rooms {
        let first = folder.read(&room.name, 1)?;
        if first.first() != Some(&0) {
            // Used: the power was cut before it had its name.
            let now = folder.read(&room.name, room.bytes)?;
            if now == content(report, kind, room.bytes) {
                return finish(&mut folder, &room.name, kind);
            }
            set_aside(&mut folder, &room.name, &now)?;
            continue;
        }
        left += 1;
        most = most.max(room.bytes);
        if (report.len() as u64) >= room.bytes {
            continue;
        }
        let content = content(report, kind, room.bytes);
        folder.overwrite(&room.name, &content)?;
        if folder.read(&room.name, room.bytes)? == content {
            return finish(&mut folder, &room.name, kind);
        }
        bad += 1;
        println!("barecount: {} reads back differently", room.name);
        let name = folder.name(Kind::Damaged)?;
        folder.rename(&room.name, &name)?;
    }
    if bad > 0 {
        return Err(VolumeError::ReadsBack(bad));
    }
    Err(VolumeError::Full { bytes: report.len(), left, most })
}

fn finish(folder: &mut Folder, room: &str, kind: Kind) -> Result<String, VolumeError> {
    let name = folder.name(kind)?;
    folder.rename(room, &name)?;
    // By its new name it is there.
    folder.read(&name, 1)?;
    Ok(name)
}

/// Gives a file whose writing was cut off its own name.
fn set_aside(folder: &mut Folder, room: &str, content: &[u8]) -> Result<(), VolumeError> {
    let kind = if is_whole(content) { Kind::Report } else { Kind::Damaged };
    let name = folder.name(kind)?;
    folder.rename(room, &name)?;
    println!("barecount: from a boot whose power was cut: {}", format!("{FOLDER}/{name}"));
    Ok(())
}

/// Sets aside what a power cut has left half-written.
pub fn sweep(home: Handle) -> Result<(), VolumeError> {
    let mut folder = Folder::open(home)?;
    let mut rooms = folder.entries()?;
    rooms.retain(|entry| names::is_room(&entry.name));
    for room in rooms {
        if folder.read(&room.name, 1)?.first() != Some(&0) {
            let content = folder.read(&room.name, room.bytes)?;
            set_aside(&mut folder, &room.name, &content)?;
        }
    }
    Ok(())
}
