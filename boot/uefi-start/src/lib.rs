//! What the UEFI applications have in common: starting the next program, [`levels`] of paging, and the
//! firmware's [`timer`].
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

extern crate alloc;

pub mod levels;
pub mod timer;

use alloc::vec::Vec;
use thiserror::Error;
use uefi::boot::{self, LoadImageSource};
use uefi::proto::BootPolicy;
use uefi::proto::device_path::DevicePath;
use uefi::proto::device_path::build::media::FilePath;
use uefi::proto::device_path::build::{BuildError, DevicePathBuilder};
use uefi::proto::loaded_image::LoadedImage;
use uefi::{CStr16, Handle};

/// Why a program does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The firmware's error.
    #[error("{0}")]
    Firmware(#[from] uefi::Error),
    /// Its file's name has characters that UEFI has not, or is too long for a device path.
    #[error("its name is not a file name")]
    Name,
    /// The firmware does not say from which device this program came.
    #[error("this program's own device is unknown")]
    NoDevice,
}

impl From<BuildError> for StartError {
    fn from(_: BuildError) -> Self {
        Self::Name
    }
}

/// The device that this program came from.
///
/// # Errors
/// The firmware does not say.
pub fn own_device() -> Result<Handle, StartError> {
    let own = boot::open_protocol_exclusive::<LoadedImage>(boot::image_handle())?;
    own.device().ok_or(StartError::NoDevice)
}

/// Loads the program `name` of a device: by its device path, so that it finds the partition as if the firmware had started it.
///
/// # Errors
/// The firmware's, or the name is none.
pub fn load(device: Handle, name: &CStr16) -> Result<Handle, StartError> {
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

/// Firmware resets the machine when a boot loader takes more than five minutes (UEFI specification 3.1.2). Not from here on.
pub fn stop_watchdog() {
    /// The least watchdog code that is not the firmware's own.
    const CODE: u64 = 0x1_0000;
    // Without that watchdog a program lives as well.
    let _ = boot::set_watchdog_timer(0, CODE, None);
}

/// Switches no-execute pages on where an Intel processor's set-up has switched them off (IA32_MISC_ENABLE bit 34; SDM vol. 4): boot
/// loaders take them for granted, and the processor raises an exception.
#[cfg(target_os = "uefi")]
pub fn allow_no_execute() {
    use core::arch::asm;
    use core::arch::x86_64::__cpuid;
    const MISC_ENABLE: u32 = 0x1a0;
    const OFF: u32 = 1 << (34 - 32);
    let lacks = __cpuid(0x8000_0001).edx & 1 << 20 == 0;
    if !lacks || __cpuid(0).ebx != u32::from_le_bytes(*b"Genu") {
        return;
    }
    // SAFETY: all of Intel's 64-bit processors have the register, applications run in ring 0, and nobody counts on pages that
    // cannot be had.
    unsafe {
        let (low, high): (u32, u32);
        asm!("rdmsr", in("ecx") MISC_ENABLE, out("eax") low, out("edx") high, options(nomem, nostack));
        if high & OFF != 0 {
            asm!("wrmsr", in("ecx") MISC_ENABLE, in("eax") low, in("edx") high & !OFF, options(nostack));
        }
    }
}

/// Starts a loaded program, which may take as long as it likes. Comes back only when that program does.
///
/// # Errors
/// The firmware's, or what the program came back with.
pub fn start(image: Handle) -> Result<(), StartError> {
    stop_watchdog();
    #[cfg(target_os = "uefi")]
    allow_no_execute();
    Ok(boot::start_image(image)?)
}
