//! The buffer that the kernel fills with samples: `struct perf_event_mmap_page` and what lies behind it.

use crate::perf::Counter;
use core::ptr;
use syscalls::{Errno, Sysno, syscall};

const PAGE: usize = 4096;
/// Pages of the buffer: a power of two. Nobody reads while it is filled, so all samples have to fit.
const PAGES: usize = 128;
/// Offset of `data_head`.
const HEAD: usize = 1024;
/// Record types.
const LOST: u32 = 2;
const THROTTLE: u32 = 5;
const SAMPLE: u32 = 9;

/// A mapped buffer.
pub struct Buffer(*const u8);

/// Its records by type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records {
    pub samples: u64,
    pub throttled: u64,
    pub lost: u64,
    /// Samples whose address is within the bounds that were given.
    pub inside: u64,
}

impl Buffer {
    /// The buffer of `counter`.
    pub fn of(counter: &Counter) -> Result<Self, Errno> {
        const READ_WRITE: u32 = 3;
        const SHARED: u32 = 1;
        let bytes = (1 + PAGES) * PAGE;
        // SAFETY: a mapping at an address of the kernel's choice.
        let mapped = unsafe {
            syscall!(Sysno::mmap, 0, bytes, READ_WRITE, SHARED, counter.descriptor(), 0)
        }?;
        Ok(Self(mapped as *const u8))
    }

    /// Counts the records. `bounds`: an address and the one after the last.
    pub fn records(&self, bounds: (u64, u64)) -> Records {
        // SAFETY: the first page is mapped; the kernel has stopped writing.
        let head = unsafe { ptr::read_volatile(self.0.add(HEAD).cast::<u64>()) } as usize;
        let mut records = Records::default();
        let mut at = 0;
        while at + 16 <= head.min(PAGES * PAGE) {
            // SAFETY: below the head there are whole records, each of a multiple of eight bytes: type, other bits, size.
            let (kind, size, address) = unsafe {
                let record = self.0.add(PAGE + at);
                let sizes = ptr::read_volatile(record.add(4).cast::<u32>());
                let address = ptr::read_volatile(record.add(8).cast::<u64>());
                (ptr::read_volatile(record.cast::<u32>()), sizes >> 16, address)
            };
            match kind {
                SAMPLE => {
                    records.samples += 1;
                    records.inside += u64::from((bounds.0..bounds.1).contains(&address));
                }
                THROTTLE => records.throttled += 1,
                LOST => records.lost += 1,
                _ => {}
            }
            if size < 8 {
                break;
            }
            at += size as usize;
        }
        records
    }
}
