//! The tables that the processor works by, in memory: IDT, GDT, TSS, page tables, and the word above each interrupt stack
//! that says whose it is.
//!
//! Each is in a second copy here, is compared with it after each item, and put back where it differs. So that page tables
//! change only when the firmware changes them, their accessed and dirty bits are set beforehand: the processor sets bits,
//! and never clears one (SDM vol. 3, 4.8). The lowest tables of the memory areas are left out, since
//! [`crate::memory::arena`] reads and clears the dirty bits there, and looks at those tables itself; so are those of memory
//! that an item requests, which are many, and gone after it.

use super::{FIRST_TABLE, note};
use crate::descriptors;
use crate::interrupts;
use crate::memory::space::Window;
use crate::memory::{Space, arena, cache, layout};
use crate::smp;
use alloc::vec::Vec;
use core::arch::asm;
use x86_64::structures::paging::{PageSize, PageTable, PageTableFlags, Size2MiB};
use x86_64::{PhysAddr, VirtAddr};

// Positions in `NAMES`, from `FIRST_TABLE` on.
const IDT: usize = FIRST_TABLE;
const GDT: usize = FIRST_TABLE + 1;
const TSS: usize = FIRST_TABLE + 2;
const STACK_TOP: usize = FIRST_TABLE + 3;
const PAGE_TABLES: usize = FIRST_TABLE + 4;

const ENTRIES: usize = 512;
const TOP_LEVEL: u32 = 4;
/// Set in every entry that leads further.
const USED: u64 = PageTableFlags::ACCESSED.bits();
/// Set in every entry that maps a page.
const WRITTEN: u64 = USED | PageTableFlags::DIRTY.bits();

/// A piece of memory, and its copy.
struct SavedTable {
    name: usize,
    place: *mut u64,
    copy: *const u64,
    words: usize,
}

/// The tables, and their copies.
pub struct Tables {
    saved: Vec<SavedTable>,
    copies: Vec<u64>,
    /// Of the page tables, when they were copied.
    changes: u64,
}

impl Tables {
    /// Copies what is in force. `space` is the address space in use.
    ///
    /// # Safety
    /// Ring 0; the tables are the firmware's.
    pub unsafe fn take(space: &mut Space) -> Self {
        let mut tables = Self { saved: Vec::new(), copies: Vec::new(), changes: 0 };
        // SAFETY: the caller's promise.
        unsafe { tables.copy(space) };
        tables
    }

    /// Copies the tables again if the firmware itself has changed page tables. To be called before foreign code runs.
    ///
    /// # Safety
    /// As for [`Tables::take`].
    pub unsafe fn refresh(&mut self, space: &mut Space) {
        if space.changes() != self.changes {
            // SAFETY: the caller's promise.
            unsafe { self.copy(space) };
        }
    }

    unsafe fn copy(&mut self, space: &mut Space) {
        self.saved.clear();
        // SAFETY: the caller's promise; nothing else holds a reference to the tables.
        unsafe { self.page_tables(space.root(), TOP_LEVEL, 0) };
        for processor in smp::in_use() {
            for (name, words) in [GDT, TSS].into_iter().zip(descriptors::words_of(processor)) {
                self.add(name, words.cast_mut(), words.len());
            }
            for word in descriptors::stack_tops_of(processor) {
                self.add(STACK_TOP, word.cast_mut(), 1);
            }
        }
        let words = self.saved.iter().map(|table| table.words).sum();
        self.copies.clear();
        self.copies.reserve_exact(words);
        for table in &mut self.saved {
            let at = self.copies.len();
            // SAFETY: the pieces are memory of the firmware that is mapped and aligned.
            self.copies.extend((0..table.words).map(|word| unsafe { *table.place.add(word) }));
            table.copy = self.copies[at..].as_ptr();
        }
        if let Some([gates, copy]) = interrupts::gates() {
            let words = gates.len();
            self.saved.push(SavedTable {
                name: IDT,
                place: gates.cast(),
                copy: copy.cast_const().cast(),
                words,
            });
        }
        self.changes = space.changes();
    }

    fn add(&mut self, name: usize, place: *mut [u64], words: usize) {
        self.saved.push(SavedTable { name, place: place.cast(), copy: core::ptr::null(), words });
    }

    /// The used part of a table, and the tables that it leads to. `from`: the first address that it is for.
    ///
    /// # Safety
    /// The table is one of `level` of the space in use.
    unsafe fn page_tables(&mut self, table: PhysAddr, level: u32, from: u64) {
        // Each area has a table of its own, which it need not begin.
        let is_area = |from: u64| {
            (0..arena::AREAS).any(|index| arena::area(index) & !(Size2MiB::SIZE - 1) == from)
        };
        let is_requested =
            layout::REQUESTED.contains(&from) || layout::HIGH_REQUESTED.contains(&from);
        if level == 1 && (is_area(from) || is_requested) {
            return;
        }
        let table = (Window::PHYSICAL.offset + table.as_u64()) as *mut u64;
        let (mut first, mut end) = (ENTRIES, 0);
        for index in 0..ENTRIES {
            // SAFETY: a page table is 512 entries of 8 bytes, reachable through the map of physical memory.
            let entry = unsafe { &mut *table.add(index) };
            if *entry & PageTableFlags::PRESENT.bits() == 0 {
                continue;
            }
            (first, end) = (first.min(index), index + 1);
            let maps = level == 1 || *entry & PageTableFlags::HUGE_PAGE.bits() != 0;
            *entry |= if maps { WRITTEN } else { USED };
            if !maps {
                let address = from | (index as u64) << (12 + 9 * (level - 1));
                let next = PhysAddr::new_truncate(*entry & 0x000f_ffff_ffff_f000);
                // SAFETY: the entry leads to a table of the level below.
                unsafe { self.page_tables(next, level - 1, address) };
            }
        }
        // All of the top table: a new entry there maps what was not mapped.
        let (first, end) = if level == TOP_LEVEL { (0, ENTRIES) } else { (first.min(end), end) };
        // SAFETY: within the table.
        let place = core::ptr::slice_from_raw_parts_mut(unsafe { table.add(first) }, end - first);
        self.add(PAGE_TABLES, place, end - first);
    }

    /// Compares, and restores what differs.
    ///
    /// # Safety
    /// As for [`Tables::take`].
    pub unsafe fn restore(&self) {
        for table in &self.saved {
            // SAFETY: both are memory of the firmware, of so many words.
            unsafe {
                if differs(table.place, table.copy, table.words) {
                    core::ptr::copy_nonoverlapping(table.copy, table.place, table.words);
                    note(table.name);
                    if table.name == PAGE_TABLES {
                        cache::flush_tlb();
                    }
                }
            }
        }
    }
}

/// Notes that a table which is looked at elsewhere was restored.
pub(crate) fn note_page_table(at: VirtAddr) {
    note(PAGE_TABLES);
    x86_64::instructions::tlb::flush(at);
}

/// Whether two pieces of memory differ. One instruction a word: this stands between any two snippets.
///
/// # Safety
/// Both are so many words of memory.
pub(crate) unsafe fn differs(one: *const u64, other: *const u64, words: usize) -> bool {
    let equal: u64;
    // SAFETY: the caller's promise; the direction flag is clear, as the ABI wants it. With no word at all ZF is set before.
    unsafe {
        asm!(
            "xor eax, eax",
            "repe cmpsq",
            "sete al",
            inout("rsi") one => _, inout("rdi") other => _, inout("rcx") words => _,
            out("rax") equal,
            options(nostack, readonly),
        );
    }
    equal == 0
}

const _: () = assert!(size_of::<PageTable>() == ENTRIES * 8 && layout::PHYSICAL != 0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_any_word_that_differs_is_noticed() {
        let one: Vec<u64> = (0..100).collect();
        // SAFETY: both are memory of the given length.
        let differ = |other: &[u64]| unsafe { differs(one.as_ptr(), other.as_ptr(), other.len()) };
        assert!(!differ(&one));
        assert!(!differ(&[]));
        for index in 0..one.len() {
            for bit in [0, 31, 63] {
                let mut other = one.clone();
                other[index] ^= 1 << bit;
                assert!(differ(&other), "{index} {bit}");
            }
        }
    }

    #[test]
    fn x1_names_of_tables_stand_where_the_positions_say() {
        let names = [IDT, GDT, TSS, STACK_TOP, PAGE_TABLES].map(|at| super::super::NAMES[at]);
        assert_eq!(names, ["IDT", "GDT", "TSS", "interrupt stacks", "page tables"]);
    }
}
