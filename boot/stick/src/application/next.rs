//! Starting the next boot loader.

use uefi::{CString16, Handle};
use uefi_start::StartError;

/// Starts the program of that name, from the device `home`. Comes back only when that program does.
pub fn start(home: Handle, name: &str) -> Result<(), StartError> {
    let name = CString16::try_from(name).map_err(|_| StartError::Name)?;
    uefi_start::start(uefi_start::load(home, &name)?)
}
