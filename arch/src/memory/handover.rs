//! The boot loader's page tables, as far as they are needed to get away from them.
//!
//! A map of all physical memory would make this simpler, and is what most kernels request; the boot loader
//! makes it one 2 MiB page at a time, which under emulation takes longer than everything else that
//! barecount does at its start. The recursive entry costs nothing.

use super::space::{DATA, MapError, Window};
use super::{Frames, OutOfMemory, Region, layout};
use x86_64::structures::paging::mapper::{MapToError, RecursivePageTable};
use x86_64::structures::paging::{
    Mapper, Page, PageSize, PageTable, PageTableIndex, PhysFrame, Size2MiB, Translate,
};
use x86_64::{PhysAddr, VirtAddr};

/// Bytes of the pool for the new tables: 512 of them.
const POOL_BYTES: u64 = Size2MiB::SIZE;

/// The boot loader's page tables, through their recursive entry.
pub struct Handover(RecursivePageTable<'static>);

impl Handover {
    /// Takes them up.
    ///
    /// # Safety
    /// The level 4 table in use must have its own frame in the entry of [`layout::RECURSIVE`], and nobody
    /// else may change it.
    #[must_use]
    pub unsafe fn new() -> Self {
        let index = VirtAddr::new(layout::RECURSIVE).p4_index();
        let at = VirtAddr::new(table_address(index));
        // SAFETY: the caller's promise: through a recursive entry the table appears there.
        let table: &'static mut PageTable = unsafe { &mut *at.as_mut_ptr() };
        // SAFETY: as above.
        Self(unsafe { RecursivePageTable::new_unchecked(table, index) })
    }

    /// The physical address of a mapped one.
    #[must_use]
    pub fn physical(&self, address: VirtAddr) -> Option<PhysAddr> {
        self.0.translate_addr(address)
    }

    /// Takes a pool for new page tables out of `frames` and maps it at [`layout::TABLE_POOL`].
    ///
    /// # Errors
    /// Out of memory.
    pub fn map_pool(&mut self, frames: &mut Frames) -> Result<(Frames, Window), MapError> {
        let pool = frames.allocate(POOL_BYTES, Size2MiB::SIZE)?;
        let page = Page::<Size2MiB>::containing_address(VirtAddr::new(layout::TABLE_POOL));
        // SAFETY: fresh memory at a place where nothing is.
        let mapped =
            unsafe { self.0.map_to(page, PhysFrame::containing_address(pool), DATA, frames) };
        match mapped {
            Ok(flush) => flush.flush(),
            Err(MapToError::FrameAllocationFailed) => {
                let largest = frames.largest_bytes();
                return Err(OutOfMemory { bytes: 4096, largest }.into());
            }
            Err(_) => return Err(MapError::Occupied(layout::TABLE_POOL)),
        }
        let region = Region { start: pool.as_u64(), end: pool.as_u64() + POOL_BYTES };
        let offset = layout::TABLE_POOL.wrapping_sub(pool.as_u64());
        Ok((Frames::new([region].into_iter()), Window { offset }))
    }
}

/// Where the level 4 table appears when entry `index` is recursive: the index in all four places.
fn table_address(index: PageTableIndex) -> u64 {
    let index = u64::from(index);
    let address = index << 39 | index << 30 | index << 21 | index << 12;
    VirtAddr::new_truncate(address).as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_appears_at_four_times_its_index() {
        assert_eq!(table_address(PageTableIndex::new(511)), 0xffff_ffff_ffff_f000);
        assert_eq!(VirtAddr::new(layout::RECURSIVE).p4_index(), PageTableIndex::new(510));
    }
}
