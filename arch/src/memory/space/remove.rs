//! Taking pages out of an address space, and the tables that nothing needs any more.

use super::{Frames, Space, Window};
use crate::memory::Region;
use core::ops::Range;
use x86_64::structures::paging::page_table::PageTableEntry;
use x86_64::structures::paging::{PageSize, PageTable, PageTableFlags, PhysFrame, Size4KiB};

/// Entries of a table, and the level of the top one.
const ENTRIES: u64 = 512;
const TOP_LEVEL: u32 = 4;

impl Space {
    /// Unmaps what is in `range`, which begins and ends where no other thing's page table reaches, and gives the tables that
    /// become empty to `frames`. The memory itself is the caller's. TLBs are the caller's business, on every processor that
    /// uses the space.
    pub fn remove(&mut self, range: &Range<u64>, frames: &mut Frames) {
        self.changes += 1;
        let root = self.root;
        // SAFETY: the space's own tables, reachable only through `self`, which is borrowed mutably.
        unsafe { remove(self.window, root, TOP_LEVEL, 0, range, frames) };
    }
}

/// The same below one table, whose first entry is for the address `from`. Returns whether the table is empty.
///
/// # Safety
/// The table is one of `level`, reachable through `window`, and nobody else holds it.
unsafe fn remove(
    window: Window,
    table: PhysFrame,
    level: u32,
    from: u64,
    range: &Range<u64>,
    frames: &mut Frames,
) -> bool {
    let bytes = Size4KiB::SIZE << (9 * (level - 1));
    let at = window.at(table.start_address()) as *mut PageTable;
    // SAFETY: the caller's promise.
    let table = unsafe { &mut *at };
    let first = range.start.saturating_sub(from) / bytes;
    let end = range.end.saturating_sub(from).div_ceil(bytes).min(ENTRIES);
    for index in first..end {
        let entry = &mut table[index as usize];
        let leads = level > 1 && !entry.flags().contains(PageTableFlags::HUGE_PAGE);
        if let (true, Ok(next)) = (leads, entry.frame()) {
            // SAFETY: the entry leads to a table of the level below.
            let empty =
                unsafe { remove(window, next, level - 1, from + index * bytes, range, frames) };
            if !empty {
                continue;
            }
            let start = next.start_address().as_u64();
            frames.free(Region { start, end: start + Size4KiB::SIZE });
        }
        entry.set_unused();
    }
    table.iter().all(PageTableEntry::is_unused)
}

#[cfg(test)]
mod tests {
    use super::super::{DATA, USER};
    use super::*;
    use crate::memory::layout;
    use x86_64::structures::paging::{Size1GiB, Size2MiB};
    use x86_64::{PhysAddr, VirtAddr};

    /// Made-up physical memory from 1 MiB on, with a space without pages in its first frame.
    fn space(pool: &mut [PageTable]) -> (Space, Frames) {
        const MIB: u64 = 1 << 20;
        let bytes = size_of_val(pool) as u64;
        let mut frames = Frames::new([Region { start: MIB, end: MIB + bytes }].into_iter());
        let window = Window { offset: (pool.as_mut_ptr() as u64).wrapping_sub(MIB) };
        let root = super::super::frame(&mut frames).unwrap();
        // SAFETY: the frames are those of the pool, which is zero.
        (unsafe { Space::open(root, window, true) }, frames)
    }

    #[test]
    fn n5_what_is_removed_leaves_no_table_and_what_stands_beside_stays() {
        let mut pool = vec![const { PageTable::new() }; 64];
        let (mut space, mut frames) = space(&mut pool);
        let neighbour = VirtAddr::new(layout::ARENA);
        let to = PhysAddr::new(4 << 30);
        space.map_page::<Size4KiB>(&mut frames, neighbour, to, DATA).unwrap();
        let before = frames.free_bytes();
        let [low, high] = [layout::REQUESTED.start, layout::HIGH_REQUESTED.start];
        for (from, size) in
            [(low + (2 << 20), 4 << 10), (low + (2 << 20), 2 << 20), (high, 1 << 30)]
        {
            for user in [DATA, DATA | USER] {
                let range = from..from + 3 * size;
                for page in (range.start..range.end).step_by(size as usize).map(VirtAddr::new) {
                    match size {
                        0x1000 => space.map_page::<Size4KiB>(&mut frames, page, to, user),
                        0x20_0000 => space.map_page::<Size2MiB>(&mut frames, page, to, user),
                        _ => space.map_page::<Size1GiB>(&mut frames, page, to, user),
                    }
                    .unwrap();
                }
                assert!(frames.free_bytes() < before || size == 2 << 20);
                space.remove(&range, &mut frames);
                // The directory below 2 GiB is the arena's as well, and stays.
                assert_eq!(frames.free_bytes(), before);
            }
        }
        let beside = space.map_page::<Size4KiB>(&mut frames, neighbour, to, DATA);
        assert!(beside.is_err(), "the neighbour is gone");
    }
}
