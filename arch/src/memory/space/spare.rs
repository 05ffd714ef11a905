//! A page whose entry somebody else fills in.

use super::{Frames, MapError, Space};
use x86_64::structures::paging::{PageTableFlags, Size4KiB};
use x86_64::{PhysAddr, VirtAddr};

impl Space {
    /// The entry of a page, with the tables that lead to it, which allow what `flags` have. It is empty.
    ///
    /// # Errors
    /// Out of memory, or something is mapped there already.
    pub fn spare_page(
        &mut self,
        frames: &mut Frames,
        page: VirtAddr,
        flags: PageTableFlags,
    ) -> Result<*mut u64, MapError> {
        self.map_page::<Size4KiB>(frames, page, PhysAddr::zero(), flags)?;
        let table = self.leaf_table(page).ok_or(MapError::NotMapped(page.as_u64()))?;
        let entry = &mut table[page.p1_index()];
        entry.set_unused();
        let entry = core::ptr::from_mut(entry).cast();
        x86_64::instructions::tlb::flush(page);
        Ok(entry)
    }
}
