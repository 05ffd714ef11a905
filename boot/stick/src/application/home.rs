//! Where the application's files are: on the device that it came from; or, when a boot server gave it out, on the volume that it
//! carries within itself.

use super::disk;
use thiserror::Error;
use uefi::proto::loaded_image::LoadedImage;
use uefi::{Handle, boot};
use uefi_start::StartError;

/// Why they are nowhere.
#[derive(Debug, Error)]
pub enum HomeError {
    /// The firmware does not say what it has loaded, and from where.
    #[error("{0}")]
    Own(#[from] StartError),
    /// The firmware makes no file system of the volume.
    #[error("the volume that this program carries cannot be read: {0}")]
    Volume(uefi::Error),
}

/// Finds the device with them.
pub fn find() -> Result<Handle, HomeError> {
    match carried()? {
        Some(volume) => disk::install(volume).map_err(HomeError::Volume),
        None => Ok(uefi_start::own_device()?),
    }
}

fn carried() -> Result<Option<&'static [u8]>, StartError> {
    let own = boot::open_protocol_exclusive::<LoadedImage>(boot::image_handle())?;
    let (base, bytes) = own.info();
    // SAFETY: the firmware loaded this program there, and it stays as long as the program runs. Of the image, headers and the
    // section with the volume are read, which nothing writes to.
    let image = unsafe { core::slice::from_raw_parts(base.cast::<u8>(), bytes as usize) };
    Ok(stick::carried::volume(image))
}
