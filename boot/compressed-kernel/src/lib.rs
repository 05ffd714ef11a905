//! The kernel's file as images have it: compressed, because a BIOS reads a disk at half a megabyte a second.
//!
//! All numbers are little-endian:
//!
//! | bytes | |
//! | --- | --- |
//! | 0 to 7 | [`MAGIC`] |
//! | 8 to 11 | length of the unpacked file |
//! | 12 to 15 | CRC-32 of the unpacked file (CRC-32/ISO-HDLC, as in gzip) |
//! | 16 to 19 | length of the stream |
//! | from 20 on | the stream: DEFLATE (RFC 1951), up to the end of the file |
//!
//! A loader starts a plain ELF file, too. That is what `qemu -kernel` loads, where bytes cost nothing and unpacking does.
#![no_std]
#![warn(missing_docs)]

#[cfg(feature = "compress")]
extern crate alloc;

#[cfg(feature = "compress")]
mod compress;
mod error;

#[cfg(feature = "compress")]
pub use compress::compress;
pub use error::KernelError;

use core::iter::once;
use crc::{CRC_32_ISO_HDLC, Crc};
use miniz_oxide::inflate::decompress_slice_iter_to_slice;

/// The first bytes of a compressed kernel.
pub const MAGIC: [u8; 8] = *b"BCKERNEL";
/// Those of a plain one (ELF specification, 1.2, "ELF Identification").
const ELF: [u8; 4] = *b"\x7fELF";
const HEADER_BYTES: usize = 20;
/// No kernel comes near: a damaged length must not request all memory.
pub const MAX_BYTES: usize = 64 << 20;

/// One table of 1 KiB: it is in each loader.
static CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

/// A kernel's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KernelFile<'a> {
    /// An ELF file, which starts as it is.
    Plain(&'a [u8]),
    /// A compressed one.
    Compressed(Compressed<'a>),
}

/// A compressed kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Compressed<'a> {
    bytes: usize,
    checksum: u32,
    stream: &'a [u8],
}

impl<'a> KernelFile<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// It is no kernel, or its lengths cannot be right.
    pub fn parse(file: &'a [u8]) -> Result<Self, KernelError> {
        if file.starts_with(&ELF) {
            return Ok(Self::Plain(file));
        }
        let Some((header, stream)) = file.split_first_chunk::<HEADER_BYTES>() else {
            return Err(KernelError::Short { bytes: file.len() });
        };
        let (magic, numbers) =
            header.split_first_chunk().expect("a header is longer than its magic");
        if *magic != MAGIC {
            return Err(KernelError::NoKernel { found: u64::from_be_bytes(*magic) });
        }
        let number = |index: usize| u32::from_le_bytes(numbers.as_chunks().0[index]);
        let (bytes, checksum, length) = (number(0) as usize, number(1), number(2) as usize);
        if bytes == 0 || bytes > MAX_BYTES {
            return Err(KernelError::Size { bytes });
        }
        if length != stream.len() {
            return Err(KernelError::Length { stated: length, found: stream.len() });
        }
        Ok(Self::Compressed(Compressed { bytes, checksum, stream }))
    }
}

impl Compressed<'_> {
    /// Length of the unpacked file.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Unpacks it to the beginning of `to`.
    ///
    /// # Errors
    /// The stream is damaged.
    ///
    /// # Panics
    /// If `to` is shorter than [`Compressed::bytes`].
    pub fn unpack(&self, to: &mut [u8]) -> Result<(), KernelError> {
        let to = &mut to[..self.bytes];
        let unpacked = decompress_slice_iter_to_slice(to, once(self.stream), false, true);
        let found = unpacked.map_err(|status| KernelError::Stream { status: status as i8 })?;
        if found != self.bytes {
            return Err(KernelError::Unpacked { stated: self.bytes, found });
        }
        let found = CRC.checksum(to);
        if found != self.checksum {
            return Err(KernelError::Checksum { stated: self.checksum, found });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
