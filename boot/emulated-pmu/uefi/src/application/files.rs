//! Files of the partition from which the application was started.

use alloc::string::{FromUtf8Error, String, ToString};
use alloc::vec::Vec;
use boot_entry::{Entry, EntryError, FILE};
use thiserror::Error;
use uefi::fs::{self, FileSystem};
use uefi::{CString16, boot};

/// Why a file is not available.
#[derive(Debug, Error)]
pub enum FileError {
    /// The firmware does not say where the application came from.
    #[error("the partition that this program came from cannot be read: {0}")]
    NoPartition(uefi::Error),
    /// A name with characters that UEFI has not.
    #[error("`{0}` is not a file name")]
    Name(String),
    /// The file system's error, which names the file.
    #[error("{0}")]
    Read(fs::Error),
    /// The entry is not UTF-8.
    #[error("{FILE}: {0}")]
    Text(FromUtf8Error),
    /// The entry is wrong.
    #[error("{FILE}: {0}")]
    Entry(EntryError),
}

/// Reads a whole file.
pub fn read(path: &str) -> Result<Vec<u8>, FileError> {
    let name = CString16::try_from(path).map_err(|_| FileError::Name(path.to_string()))?;
    // Closed again at the end of the call: the next boot loader may want it for itself.
    let partition = boot::get_image_file_system(boot::image_handle());
    let mut system = FileSystem::new(partition.map_err(FileError::NoPartition)?);
    system.read(name.as_ref()).map_err(FileError::Read)
}

/// Reads what is to be done.
pub fn read_entry() -> Result<Entry, FileError> {
    let text = String::from_utf8(read(FILE)?).map_err(FileError::Text)?;
    boot_entry::parse(&text).map_err(FileError::Entry)
}
