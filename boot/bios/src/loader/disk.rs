//! The disk, by the BIOS's calls that take numbers of sectors: Enhanced Disk Drive specification 3.0, 6.2.

use super::buffer;
use super::call::{Registers, bios};
use bios::{Disk, SECTOR};
use thiserror::Error;

const DISK: u8 = 0x13;
const RESET: u32 = 0;
const READ: u32 = 0x4200;
/// Most sectors that all BIOSes read at a time.
const MOST: usize = 127;
/// Where the packet lies, which tells a call what to read: after the sectors.
const PACKET: usize = MOST * SECTOR;
/// Old drives fail now and then.
const ATTEMPTS: u32 = 3;

/// The disk that was booted from.
pub struct Drive {
    number: u8,
}

/// It cannot be read.
#[derive(Clone, Copy, Debug, Error)]
#[error("the disk cannot be read at sector {sector}: the BIOS says {code:#x} (INT 13h, 42h)")]
pub struct DiskError {
    sector: u64,
    code: u8,
}

impl Drive {
    /// The drive with the BIOS's `number`.
    pub fn new(number: u8) -> Self {
        Self { number }
    }

    fn call(&self, eax: u32) -> Registers {
        let registers = Registers {
            eax,
            edx: self.number.into(),
            esi: PACKET as u32,
            ds: buffer::SEGMENT,
            ..Registers::default()
        };
        // SAFETY: the BIOS reads the packet, and writes to the buffer alone.
        unsafe { bios(DISK, registers) }
    }

    fn read_some(&self, first: u64, to: &mut [u8]) -> Result<(), DiskError> {
        let sectors = (to.len() / SECTOR) as u16;
        // Its own length, the number of sectors, offset and segment of the buffer, the first sector.
        let head = [16, sectors, 0, buffer::SEGMENT];
        let mut code = 0;
        for _ in 0..ATTEMPTS {
            // A failed call leaves in it how much was read.
            for (at, word) in head.iter().enumerate() {
                buffer::write(PACKET + 2 * at, &word.to_le_bytes());
            }
            buffer::write(PACKET + 8, &first.to_le_bytes());
            let done = self.call(READ);
            if !done.failed() {
                buffer::read(0, to);
                return Ok(());
            }
            code = done.ah();
            self.call(RESET);
        }
        Err(DiskError { sector: first, code })
    }
}

impl Disk for Drive {
    type Error = DiskError;

    fn read(&mut self, first: u64, to: &mut [u8]) -> Result<(), DiskError> {
        let mut next = first;
        for part in to.chunks_mut(MOST * SECTOR) {
            self.read_some(next, part)?;
            next += MOST as u64;
        }
        Ok(())
    }
}
