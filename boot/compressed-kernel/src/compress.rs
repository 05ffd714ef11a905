//! Making the file.

use crate::{CRC, KernelError, MAGIC, MAX_BYTES};
use alloc::vec::Vec;
use miniz_oxide::deflate::compress_to_vec;

/// miniz's default. At 9 the kernel gets 0.4 % smaller, and takes three times as long for each image.
const LEVEL: u8 = 6;

/// `kernel` in compressed form.
///
/// # Errors
/// It is larger than any kernel.
pub fn compress(kernel: &[u8]) -> Result<Vec<u8>, KernelError> {
    if kernel.len() > MAX_BYTES {
        return Err(KernelError::Size { bytes: kernel.len() });
    }
    let stream = compress_to_vec(kernel, LEVEL);
    let mut file = Vec::from(MAGIC);
    for number in [kernel.len() as u32, CRC.checksum(kernel), stream.len() as u32] {
        file.extend(number.to_le_bytes());
    }
    file.extend(stream);
    Ok(file)
}
