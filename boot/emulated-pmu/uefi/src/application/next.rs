//! Starting the next boot loader.

use boot_entry::{Device, Entry};
use thiserror::Error;
use uefi::boot::{self, SearchType};
use uefi::proto::loaded_image::LoadedImage;
use uefi::proto::media::file::{File, FileAttribute, FileMode};
use uefi::proto::media::fs::SimpleFileSystem;
use uefi::{CStr16, CString16, Handle};
use uefi_start::StartError;

/// Why it does not start.
#[derive(Debug, Error)]
pub enum NextError {
    /// It cannot be loaded or started.
    #[error("{0}")]
    Start(#[from] StartError),
    /// Its command line has characters that UEFI has not.
    #[error("its command line has characters beyond UCS-2")]
    Options,
    /// No other device has a file system with it.
    #[error("no other device has it")]
    NoOther,
}

impl From<uefi::Error> for NextError {
    fn from(error: uefi::Error) -> Self {
        Self::Start(error.into())
    }
}

/// Starts the program that `entry` names, from the partition of this program or from another device. Comes back only when that program does.
pub fn start(entry: &Entry) -> Result<(), NextError> {
    let name = CString16::try_from(entry.next.as_str()).map_err(|_| StartError::Name)?;
    let device = match entry.device {
        Device::Own => uefi_start::own_device()?,
        Device::Other => other_device(&name)?,
    };
    let image = uefi_start::load(device, &name)?;
    // The program reads it for as long as it runs.
    let options = entry.options.as_deref().map(CString16::try_from);
    let options = options.transpose().map_err(|_| NextError::Options)?;
    if let Some(options) = &options {
        let mut loaded = boot::open_protocol_exclusive::<LoadedImage>(image)?;
        // SAFETY: `options` lives until the program comes back.
        unsafe { loaded.set_load_options(options.as_ptr().cast(), options.num_bytes() as u32) };
    }
    // Under icount a kernel that unpacks itself can take longer by the machine's clock than the firmware's watchdog waits.
    Ok(uefi_start::start(image)?)
}

/// The first file system, other than this program's own, that has the file `name`.
fn other_device(name: &CStr16) -> Result<Handle, NextError> {
    // Firmware that was told what to boot from leaves the other devices without their drivers. Those that have none, or fail,
    // have no file either.
    for handle in boot::locate_handle_buffer(SearchType::AllHandles)?.iter() {
        let _ = boot::connect_controller(*handle, &[], None, true);
    }
    let own = uefi_start::own_device()?;
    let systems = boot::find_handles::<SimpleFileSystem>()?;
    let mut others = systems.into_iter().filter(|handle| *handle != own);
    others.find(|handle| has_file(*handle, name)).ok_or(NextError::NoOther)
}

fn has_file(device: Handle, name: &CStr16) -> bool {
    let open = || {
        let mut system = boot::open_protocol_exclusive::<SimpleFileSystem>(device).ok()?;
        let mut root = system.open_volume().ok()?;
        root.open(name, FileMode::Read, FileAttribute::empty()).ok()
    };
    open().is_some()
}
