//! The kernel's file, unpacked.

use super::LoadError;
use super::files;
use compressed_kernel::KernelFile;
use uefi::CStr16;

/// Reads the kernel, and unpacks it if it is compressed, into pages of its own, which is where it is mapped.
pub fn read(name: &CStr16) -> Result<&'static [u8], LoadError> {
    let file = files::read(name)?;
    let KernelFile::Compressed(compressed) = KernelFile::parse(file)? else { return Ok(file) };
    let bytes = compressed.bytes();
    let to = files::pages(bytes).map_err(|error| LoadError::Memory { bytes, error })?;
    compressed.unpack(to)?;
    Ok(to)
}
