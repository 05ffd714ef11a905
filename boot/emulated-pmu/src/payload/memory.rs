//! The guest's memory, by its own linear addresses.

use super::guest::Guest;
use super::maps::{Maps, PAGE};
use super::processors::guard;
use pmu_model::PageSize;

impl Guest {
    /// The physical address of a linear one, by the guest's page tables.
    pub fn physical(&self, linear: u64) -> Option<u64> {
        self.translation().translate(linear, read_physical)
    }

    /// The same, and the size of the page.
    pub fn page(&self, linear: u64) -> Option<(u64, PageSize)> {
        let (physical, bits) = self.translation().page(linear, read_physical)?;
        Some((physical, PageSize::of_offset_bits(bits)))
    }

    /// Reads as many bytes as are mapped; returns how many.
    pub fn read(&self, linear: u64, bytes: &mut [u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            let at = linear.wrapping_add(done as u64);
            let Some(physical) = self.physical(at) else { break };
            let count = (bytes.len() - done).min((PAGE - at % PAGE) as usize);
            let from = physical as *const u8;
            // SAFETY: memory of the guest, identity mapped, which does not change while the guest is not running.
            unsafe { from.copy_to_nonoverlapping(bytes[done..].as_mut_ptr(), count) };
            done += count;
        }
        done
    }

    /// Reads a word of 8 bytes, if all of it is mapped.
    pub fn read_word(&self, linear: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.read(linear, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
    }

    /// Writes a word of 8 bytes that is in one page, if that is mapped.
    pub fn write_word(&self, linear: u64, value: u64) -> Option<()> {
        let physical = self.physical(linear).filter(|_| linear % PAGE <= PAGE - 8)?;
        // SAFETY: memory that the guest has named for the processor to write to; identity mapped.
        unsafe { (physical as *mut u64).write_unaligned(value) };
        Some(())
    }

    /// Clears a bit of what the processor has just stored at an address, whose bytes may lie in two pages.
    pub fn clear_stored_bit(&self, linear: u64, bit: u64) {
        let number = bit.trailing_zeros();
        let Some(physical) = self.physical(linear.wrapping_add(u64::from(number / 8))) else {
            return;
        };
        // SAFETY: memory of the guest, which it has just written to itself; identity mapped.
        unsafe { *(physical as *mut u8) &= !(1 << (number % 8)) };
    }
}

/// Writes 8 bytes of physical memory, which do not cross a page, if the guest can have memory there.
pub fn write_physical(address: u64, value: u64) -> Option<()> {
    if !Maps::covers(address) || guard::page() == Some(address & !(PAGE - 1)) {
        return None;
    }
    // SAFETY: memory that the guest has named for the processor to write to, mapped one to one and none of a device that the
    // hypervisor watches; the guest is not running.
    unsafe { (address as *mut u64).write_unaligned(value) };
    Some(())
}

/// Reads 8 bytes of physical memory.
pub fn read_physical(address: u64) -> u64 {
    // SAFETY: all memory is mapped one to one; addresses come from the guest's page tables, and reading memory that
    // does not exist gives ones.
    unsafe { (address as *const u64).read_unaligned() }
}
