//! Files of the partition from which the application was started.

use core::slice;
use thiserror::Error;
use uefi::boot::{self, AllocateType};
use uefi::mem::memory_map::MemoryType;
use uefi::proto::media::file::{File as _, FileAttribute, FileInfo, FileMode};
use uefi::{CStr16, CString16, Status};

/// Why a file is not available.
#[derive(Debug, Error)]
pub enum FileError {
    /// The machine's firmware does not say where the application came from.
    #[error("the partition that this program came from cannot be read: {0}")]
    Partition(uefi::Error),
    /// The file.
    #[error("{name} cannot be read: {error}")]
    Read {
        /// Its name.
        name: CString16,
        /// The firmware's error.
        error: uefi::Error,
    },
    /// A folder, or nothing in it.
    #[error("{0} is no file with content")]
    Empty(CString16),
}

/// Reads a whole file into pages of its own, which is where the kernel maps it.
pub fn read(name: &CStr16) -> Result<&'static [u8], FileError> {
    let failed = |error: uefi::Error| FileError::Read { name: name.into(), error };
    let partition = boot::get_image_file_system(boot::image_handle());
    let mut partition = partition.map_err(FileError::Partition)?;
    let mut root = partition.open_volume().map_err(FileError::Partition)?;
    let file = root.open(name, FileMode::Read, FileAttribute::empty()).map_err(failed)?;
    let mut file = file.into_regular_file().ok_or_else(|| FileError::Empty(name.into()))?;
    let info = file.get_boxed_info::<FileInfo>().map_err(failed)?;
    let length = info.file_size() as usize;
    if length == 0 {
        return Err(FileError::Empty(name.into()));
    }
    let bytes = pages(length).map_err(failed)?;
    let mut done = 0;
    while done < length {
        match file.read(&mut bytes[done..]).map_err(failed)? {
            0 => return Err(failed(Status::END_OF_FILE.into())),
            count => done += count,
        }
    }
    Ok(bytes)
}

/// The same where the file may be missing.
pub fn read_if_there(name: &CStr16) -> Result<Option<&'static [u8]>, FileError> {
    match read(name) {
        Err(FileError::Read { error, .. }) if error.status() == Status::NOT_FOUND => Ok(None),
        other => other.map(Some),
    }
}

/// Pages of zeros for `length` bytes, which are never freed.
pub fn pages(length: usize) -> uefi::Result<&'static mut [u8]> {
    let pages = length.div_ceil(boot::PAGE_SIZE);
    let at = boot::allocate_pages(AllocateType::AnyPages, MemoryType::LOADER_DATA, pages)?;
    // SAFETY: the pages are ours from now on; zeros are bytes.
    unsafe {
        at.write_bytes(0, pages * boot::PAGE_SIZE);
        Ok(slice::from_raw_parts_mut(at.as_ptr(), length))
    }
}
