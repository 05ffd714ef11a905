//! The pool of frames, and the window that shows them.

use crate::apic;
use bootloader_api::info::{MemoryRegion, MemoryRegionKind};
use core::slice;
use program_format::layout::{FRAMES_BYTES, LARGE, PAGE, PAGES, WINDOW, flag, frame, page};
use program_format::{Content, Program};
use x86_64::registers::control::Cr3;

/// Where the boot loader maps physical memory.
pub const PHYSICAL: u64 = 0xffff_a000_0000_0000;

const ADDRESS: u64 = 0x000f_ffff_ffff_f000;
const PRESENT: u64 = flag::PRESENT as u64;
const WRITE: u64 = flag::WRITE as u64;
const USER: u64 = flag::USER as u64;
/// PCD: not cached.
const UNCACHED: u64 = 1 << 4;
/// In an entry of the page directory: a page of 2 MiB.
const IS_LARGE: u64 = 1 << 7;

/// The pool.
pub struct Memory {
    pool: u64,
}

#[repr(C, align(4096))]
struct Table([u64; 512]);
/// Page directory and page directory pointer table of the window.
static mut TABLES: [Table; 2] = [const { Table([0; 512]) }; 2];

impl Memory {
    /// Finds a pool among `regions` and lays the window over it.
    ///
    /// # Safety
    /// Once, with the boot loader's page tables.
    ///
    /// # Panics
    /// If there is no room.
    pub unsafe fn set_up(regions: &[MemoryRegion]) -> Self {
        let usable = |region: &&MemoryRegion| region.kind == MemoryRegionKind::Usable;
        let pool = regions.iter().filter(usable).find_map(|region| {
            let start = region.start.next_multiple_of(FRAMES_BYTES);
            (start + FRAMES_BYTES <= region.end).then_some(start)
        });
        let memory = Self { pool: pool.expect("no 2 MiB of usable memory in one piece") };
        memory.map();
        memory
    }

    /// Physical address of the pool.
    pub fn pool(&self) -> u64 {
        self.pool
    }

    fn map(&self) {
        let table = self.pool + u64::from(frame::TABLE) * PAGE;
        let [directory, pointers] = [0, 1].map(|index| (&raw mut TABLES) as u64 + index * PAGE);
        let all = PRESENT | WRITE | USER;
        // SAFETY: tables of ours, and the boot loader's highest one, whose first entry leads to what it maps below 512 GiB.
        unsafe {
            set(directory, 0, table | all);
            set(directory, 1, self.pool | all | IS_LARGE);
            let root = PHYSICAL + Cr3::read().0.start_address().as_u64();
            let first = *(root as *const u64);
            let pointers = if first & PRESENT == 0 {
                set(root, 0, physical(pointers) | all);
                pointers
            } else {
                set(root, 0, first | all);
                PHYSICAL + (first & ADDRESS)
            };
            let index = WINDOW >> 30;
            let entry = ((pointers + 8 * index) as *const u64).read_volatile();
            assert_eq!(entry & PRESENT, 0, "the window is taken");
            set(pointers, index, physical(directory) | all);
        }
        const { assert!(LARGE == WINDOW + FRAMES_BYTES && FRAMES_BYTES == PAGE * PAGES as u64) };
        self.map_own_pages();
        x86_64::instructions::tlb::flush_all();
    }

    fn entry(&self, page: u16) -> *mut u64 {
        (PHYSICAL + self.pool + u64::from(frame::TABLE) * PAGE + 8 * u64::from(page)) as *mut u64
    }

    fn map_own_pages(&self) {
        let own = |frame: u16| self.pool + u64::from(frame) * PAGE;
        for (page, value) in [
            (page::TABLE, own(frame::TABLE)),
            (page::SLOTS, own(frame::SLOTS)),
            (page::APIC, apic::PHYSICAL | UNCACHED),
        ] {
            // SAFETY: the window's page table.
            unsafe { self.entry(page).write_volatile(value | PRESENT | WRITE) };
        }
    }

    /// A frame's bytes.
    pub fn frame(&self, number: u16) -> &[u8] {
        let at = PHYSICAL + self.pool + u64::from(number) * PAGE;
        // SAFETY: within the pool, which nobody writes while this is looked at.
        unsafe { slice::from_raw_parts(at as *const u8, PAGE as usize) }
    }

    /// Makes memory what `program` wants to find.
    pub fn reset(&self, program: &Program) {
        for number in 0..PAGES {
            // SAFETY: the window's page table.
            unsafe { self.entry(number).write_volatile(0) };
        }
        self.map_own_pages();
        let slots = self.words(frame::SLOTS);
        slots.fill(0);
        for frame in &program.frames {
            assert!(frame.number < frame::END, "frame {} is not the program's", frame.number);
            let words = self.words(frame.number);
            match &frame.content {
                Content::Random(seed) => fill(words, *seed),
                Content::Bytes(bytes) => {
                    words.fill(0);
                    for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
                        let mut whole = [0; 8];
                        whole[..bytes.len()].copy_from_slice(bytes);
                        *word = u64::from_le_bytes(whole);
                    }
                }
            }
        }
        for mapping in &program.pages {
            assert!(mapping.page < page::END, "page {} is not the program's", mapping.page);
            let frame = self.pool + u64::from(mapping.frame) * PAGE;
            // SAFETY: the window's page table.
            unsafe { self.entry(mapping.page).write_volatile(frame | u64::from(mapping.flags)) };
        }
        x86_64::instructions::tlb::flush_all();
    }

    #[allow(clippy::mut_from_ref, reason = "one at a time, while no program runs")]
    fn words(&self, number: u16) -> &mut [u64] {
        let at = PHYSICAL + self.pool + u64::from(number) * PAGE;
        // SAFETY: within the pool, and no other reference to it is alive.
        unsafe { slice::from_raw_parts_mut(at as *mut u64, PAGE as usize / 8) }
    }
}

/// SplitMix64.
fn fill(words: &mut [u64], seed: u64) {
    let mut state = seed;
    for word in words {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *word = mixed ^ mixed >> 31;
    }
}

/// # Safety
/// `table` is a page table that may be changed so.
unsafe fn set(table: u64, index: u64, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { ((table + 8 * index) as *mut u64).write_volatile(value) };
}

/// The physical address of `linear`, which is mapped with pages of 4 KiB.
fn physical(linear: u64) -> u64 {
    let mut table = Cr3::read().0.start_address().as_u64();
    for shift in [39, 30, 21, 12] {
        // SAFETY: the page tables in use, after the map of physical memory.
        let entry = unsafe { *((PHYSICAL + table + 8 * (linear >> shift & 0x1ff)) as *const u64) };
        table = entry & ADDRESS;
    }
    table | linear & 0xfff
}
