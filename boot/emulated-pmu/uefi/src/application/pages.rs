//! Memory that no operating system will use, given back unless it is kept.

use core::ptr::NonNull;
use core::slice;
use handover::{Refusal, image};
use uefi::boot::{self, AllocateType, MemoryType, PAGE_SIZE};
use uefi::mem::memory_map::MemoryAttribute;
use uefi::proto::security::MemoryProtection;

/// Pages from one multiple of the images' alignment to the next.
const ALIGN_PAGES: usize = image::ALIGN as usize / PAGE_SIZE;

/// Reserved pages.
pub struct Pages {
    first: NonNull<u8>,
    count: usize,
}

impl Pages {
    /// Enough for `bytes`, none of them beyond `last`, at a multiple of `align` pages. Firmware aligns to pages alone: more
    /// are requested, and those around are given back.
    fn allocate(bytes: usize, last: u64, align: usize) -> Result<Self, Refusal> {
        let count = bytes.div_ceil(PAGE_SIZE);
        let asked = count + align - 1;
        let kind = AllocateType::MaxAddress(last);
        let first = boot::allocate_pages(kind, MemoryType::RESERVED, asked);
        let first = first.map_err(|_| Refusal::NoMemory)?;
        let skipped = first.as_ptr().align_offset(align * PAGE_SIZE) / PAGE_SIZE;
        let at = |page: usize| {
            // SAFETY: within the allocation, or just after it.
            unsafe { first.add(page * PAGE_SIZE) }
        };
        let end = skipped + count;
        for (from, count) in [(0, skipped), (end, asked - end)] {
            if count > 0 {
                // SAFETY: a part of the allocation that nothing uses. If the firmware keeps it, it is lost and no more.
                let _ = unsafe { boot::free_pages(at(from), count) };
            }
        }
        Ok(Self { first: at(skipped), count })
    }

    /// For an image of the hypervisor.
    pub fn for_image(bytes: u64) -> Result<Self, Refusal> {
        /// Below 4 GiB, as with the direct loader, which maps no more.
        const LAST: u64 = u32::MAX as u64;
        let pages = Self::allocate(bytes as usize, LAST, ALIGN_PAGES)?;
        pages.make_executable();
        Ok(pages)
    }

    /// Anywhere below `end`, for `bytes`.
    pub fn below(end: u64, bytes: usize) -> Result<Self, Refusal> {
        Self::allocate(bytes, end - 1, 1)
    }

    /// Where they begin.
    pub fn address(&self) -> u64 {
        self.first.as_ptr() as u64
    }

    /// Their content.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: pages that were allocated for this; firmware maps memory one to one.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.count * PAGE_SIZE) }
    }

    /// They are in use for good.
    pub fn keep(self) {
        core::mem::forget(self);
    }

    /// Firmware that protects memory makes what holds no program not executable; it then has a protocol to say otherwise.
    fn make_executable(&self) {
        let Ok(handle) = boot::get_handle_for_protocol::<MemoryProtection>() else { return };
        let Ok(protection) = boot::open_protocol_exclusive::<MemoryProtection>(handle) else {
            return;
        };
        let range = self.address()..self.address() + (self.count * PAGE_SIZE) as u64;
        let forbidden = MemoryAttribute::EXECUTE_PROTECT | MemoryAttribute::READ_ONLY;
        // If it refuses, there is nothing else to be tried.
        let _ = protection.clear_memory_attributes(range, forbidden);
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nobody else knows of them, unless they were kept, and then this does not run.
        let freed = unsafe { boot::free_pages(self.first, self.count) };
        debug_assert!(freed.is_ok(), "pages that were allocated");
    }
}
