//! Starting the next boot loader.

use alloc::vec::Vec;
use boot_entry::{Device, Entry};
use thiserror::Error;
use uefi::boot::{self, LoadImageSource, SearchType};
use uefi::proto::BootPolicy;
use uefi::proto::device_path::DevicePath;
use uefi::proto::device_path::build::media::FilePath;
use uefi::proto::device_path::build::{BuildError, DevicePathBuilder};
use uefi::proto::loaded_image::LoadedImage;
use uefi::proto::media::file::{File, FileAttribute, FileMode};
use uefi::proto::media::fs::SimpleFileSystem;
use uefi::{CStr16, CString16, Handle};

/// The least watchdog code that is not the firmware's own.
const LOADER_CODE: u64 = 0x1_0000;

/// Why it does not start.
#[derive(Debug, Error)]
pub enum NextError {
    /// The firmware's error.
    #[error("{0}")]
    Firmware(#[from] uefi::Error),
    /// Its file's name has characters that UEFI has not, or is too long for a device path.
    #[error("its name is no file name")]
    Name,
    /// Its command line has characters that UEFI has not.
    #[error("its command line has characters beyond UCS-2")]
    Options,
    /// The firmware does not say from which device this program came.
    #[error("this program's own device is unknown")]
    NoDevice,
    /// No other device has a file system with it.
    #[error("no other device has it")]
    NoOther,
}

impl From<BuildError> for NextError {
    fn from(_: BuildError) -> Self {
        Self::Name
    }
}

/// Starts the program that `entry` names, from the partition of this program or from another device. Comes back only when that program does.
pub fn start(entry: &Entry) -> Result<(), NextError> {
    let name = CString16::try_from(entry.next.as_str()).map_err(|_| NextError::Name)?;
    let device = match entry.device {
        Device::Own => own_device()?,
        Device::Other => other_device(&name)?,
    };
    let image = load(device, &name)?;
    // The program reads it for as long as it runs.
    let options = entry.options.as_deref().map(CString16::try_from);
    let options = options.transpose().map_err(|_| NextError::Options)?;
    if let Some(options) = &options {
        let mut loaded = boot::open_protocol_exclusive::<LoadedImage>(image)?;
        // SAFETY: `options` lives until the program comes back.
        unsafe { loaded.set_load_options(options.as_ptr().cast(), options.num_bytes() as u32) };
    }
    // Firmware resets the machine when a boot loader takes more than five minutes (UEFI specification 3.1.2). Under
    // icount a kernel that unpacks itself can take longer by the machine's clock. Without that watchdog it lives as
    // well.
    let _ = boot::set_watchdog_timer(0, LOADER_CODE, None);
    Ok(boot::start_image(image)?)
}

/// The partition of this program.
fn own_device() -> Result<Handle, NextError> {
    let own = boot::open_protocol_exclusive::<LoadedImage>(boot::image_handle())?;
    own.device().ok_or(NextError::NoDevice)
}

/// The first file system, besides this program's own, that has the file `name`.
fn other_device(name: &CStr16) -> Result<Handle, NextError> {
    // Firmware that was told what to boot from leaves the other devices without their drivers. Those that have none, or fail,
    // have no file either.
    for handle in boot::locate_handle_buffer(SearchType::AllHandles)?.iter() {
        let _ = boot::connect_controller(*handle, &[], None, true);
    }
    let own = own_device()?;
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

/// By its device path, so that it finds the partition as if the firmware had started it.
fn load(device: Handle, name: &CStr16) -> Result<Handle, NextError> {
    let device = boot::open_protocol_exclusive::<DevicePath>(device)?;
    let mut bytes = Vec::new();
    let mut builder = DevicePathBuilder::with_vec(&mut bytes);
    for node in device.node_iter() {
        builder = builder.push(&node)?;
    }
    let path = builder.push(&FilePath { path_name: name })?.finalize()?;
    let source =
        LoadImageSource::FromDevicePath { device_path: path, boot_policy: BootPolicy::ExactMatch };
    Ok(boot::load_image(boot::image_handle(), source)?)
}
