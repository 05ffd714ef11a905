//! Starting the next boot loader.

use alloc::vec::Vec;
use thiserror::Error;
use uefi::boot::{self, LoadImageSource};
use uefi::proto::BootPolicy;
use uefi::proto::device_path::DevicePath;
use uefi::proto::device_path::build::media::FilePath;
use uefi::proto::device_path::build::{BuildError, DevicePathBuilder};
use uefi::proto::loaded_image::LoadedImage;
use uefi::{CString16, Handle};

/// Why it does not start.
#[derive(Debug, Error)]
pub enum NextError {
    /// The firmware's error.
    #[error("{0}")]
    Firmware(#[from] uefi::Error),
    /// Its file's name has characters that UEFI has not, or is too long for a device path.
    #[error("its name is no file name")]
    Name,
    /// The firmware does not say from which device this program came.
    #[error("this program's own device is unknown")]
    NoDevice,
}

impl From<BuildError> for NextError {
    fn from(_: BuildError) -> Self {
        Self::Name
    }
}

/// Starts the program of that name, from the partition of this program. Comes back only when that program does.
pub fn start(name: &str) -> Result<(), NextError> {
    /// The least watchdog code that is not the firmware's own.
    const LOADER_CODE: u64 = 0x1_0000;
    let name = CString16::try_from(name).map_err(|_| NextError::Name)?;
    let image = load(own_device()?, &name)?;
    // Firmware resets the machine when a boot loader takes more than five minutes (UEFI specification 3.1.2).
    let _ = boot::set_watchdog_timer(0, LOADER_CODE, None);
    Ok(boot::start_image(image)?)
}

/// The device of this program.
pub fn own_device() -> Result<Handle, NextError> {
    let own = boot::open_protocol_exclusive::<LoadedImage>(boot::image_handle())?;
    own.device().ok_or(NextError::NoDevice)
}

/// By its device path, so that it finds the partition as if the firmware had started it.
fn load(device: Handle, name: &CString16) -> Result<Handle, NextError> {
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
