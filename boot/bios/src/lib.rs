//! The parts of the BIOS loader that need no machine: how files are found and read on a FAT volume ([`fat`]), where
//! that volume is ([`table`]), which of the video BIOS's modes to set ([`video`]), and what of a memory map is free ([`map`], which the
//! direct loader uses too). The loader around them is `main.rs`.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

pub mod fat;
pub mod map;
pub mod table;
pub mod video;

/// Bytes of a sector, for the BIOS calls as for the file system.
pub const SECTOR: usize = 512;

/// Something that is read by sectors.
pub trait Disk {
    /// Why it cannot be read.
    type Error;

    /// Reads `to.len() / SECTOR` sectors from `first` on.
    ///
    /// # Errors
    /// The disk's.
    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<(), Self::Error>;
}
