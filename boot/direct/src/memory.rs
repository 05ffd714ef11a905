//! The memory map and the page tables, as `bootloader-x86_64-common` wants them.

use bios::map;
use bootloader_api::info::MemoryRegionKind;
use bootloader_x86_64_common::PageTables;
use bootloader_x86_64_common::legacy_memory_region::{LegacyFrameAllocator, LegacyMemoryRegion};
use core::iter::Copied;
use core::ops::Range;
use core::slice::Iter;
use multiboot::information::{MemoryType, Multiboot};
use spin::{Mutex, MutexGuard};
use x86_64::registers::control::Cr3;
use x86_64::structures::paging::{FrameAllocator, OffsetPageTable, PageTable, PhysFrame};
use x86_64::{PhysAddr, VirtAddr};

/// One entry of the multiboot loader's memory map, which has the form of BIOS call E820.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    start: u64,
    length: u64,
    kind: MemoryRegionKind,
}

impl Region {
    const NONE: Self = Self { start: 0, length: 0, kind: MemoryRegionKind::Bootloader };

    /// Memory that the kernel must not touch.
    pub fn reserved(start: u64, length: u64) -> Self {
        Self { start, length, kind: MemoryRegionKind::UnknownBios(RESERVED) }
    }

    fn new(range: Range<u64>, kind: MemoryRegionKind) -> Self {
        Self { start: range.start, length: range.end.saturating_sub(range.start), kind }
    }

    /// The byte after the last.
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

impl LegacyMemoryRegion for Region {
    fn start(&self) -> PhysAddr {
        PhysAddr::new(self.start)
    }

    fn len(&self) -> u64 {
        self.length
    }

    fn kind(&self) -> MemoryRegionKind {
        self.kind
    }

    fn usable_after_bootloader_exit(&self) -> bool {
        self.kind == MemoryRegionKind::Usable
    }
}

/// Most entries that are taken; E820 maps have some ten to sixty.
const MAX_REGIONS: usize = 256;
/// E820's numbers: 1 is usable memory, everything else is not for us.
const RESERVED: u32 = 2;

/// The memory map.
pub struct Memory {
    regions: [Region; MAX_REGIONS],
    count: usize,
}

impl Memory {
    /// Reads the multiboot loader's map. Where entries overlap, those that are not usable count; they come first, so that there is
    /// room for them.
    pub fn read(information: &Multiboot) -> Self {
        let mut memory = Self { regions: [Region::NONE; MAX_REGIONS], count: 0 };
        let found = || {
            let regions = information.memory_regions();
            regions.expect("the multiboot loader gives no memory map").map(|region| {
                let usable = matches!(region.memory_type(), MemoryType::Available);
                (usable, region.base_address(), region.length())
            })
        };
        for (_, start, bytes) in found().filter(|&(usable, _, bytes)| !usable && bytes > 0) {
            let kind = MemoryRegionKind::UnknownBios(RESERVED);
            memory.add(Region::new(map::touched_pages(start, bytes), kind));
        }
        for (_, start, bytes) in found().filter(|(usable, ..)| *usable) {
            let mut rest = map::whole_pages(start, bytes);
            while let Some(free) = map::first_uncovered(rest.clone(), memory.ranges()) {
                rest.start = free.end;
                memory.add(Region::new(free, MemoryRegionKind::Usable));
            }
        }
        memory
    }

    fn ranges(&self) -> impl Iterator<Item = Range<u64>> + Clone {
        self.regions[..self.count].iter().map(|region| region.start..region.end())
    }

    fn add(&mut self, region: Region) {
        if region.length > 0 && self.count < MAX_REGIONS {
            self.regions[self.count] = region;
            self.count += 1;
        }
    }

    /// Whether all of a range is usable memory.
    pub fn is_free(&self, start: u64, bytes: u64) -> bool {
        self.regions[..self.count].iter().any(|region| {
            region.kind == MemoryRegionKind::Usable
                && region.start <= start
                && start + bytes <= region.end()
        })
    }

    /// The first page from `from` on after which so many bytes of usable memory lie, all below `end`.
    pub fn first_free(&self, from: u64, bytes: u64, end: u64) -> Option<u64> {
        let start = |region: &Region| {
            let start = region.start.max(from).next_multiple_of(4096);
            (region.kind == MemoryRegionKind::Usable && start + bytes <= region.end().min(end))
                .then_some(start)
        };
        self.regions[..self.count].iter().filter_map(start).min()
    }

    /// The last whole page of usable memory below `end`.
    pub fn last_page_below(&self, end: u64) -> Option<u64> {
        const PAGE: u64 = 4096;
        let last = |region: &Region| {
            let page = (region.end().min(end) & !(PAGE - 1)).checked_sub(PAGE)?;
            (region.kind == MemoryRegionKind::Usable && page >= region.start).then_some(page)
        };
        self.regions[..self.count].iter().filter_map(last).max()
    }

    /// Takes a range out of the usable memory.
    pub fn reserve(&mut self, range: Region) {
        let inside = |r: &Region| r.start <= range.start && range.end() <= r.end();
        let Some(index) = self.regions[..self.count].iter().position(inside) else { return };
        let whole = self.regions[index];
        self.regions[index].length = range.start - whole.start;
        self.add(range);
        self.add(Region { start: range.end(), length: whole.end() - range.end(), ..whole });
    }

    /// The map, for as long as the loader runs.
    pub fn leak(self) -> Copied<Iter<'static, Region>> {
        static REGIONS: Mutex<[Region; MAX_REGIONS]> = Mutex::new([Region::NONE; MAX_REGIONS]);
        // Never unlocked again: the list is the frame allocator's.
        let list = MutexGuard::leak(REGIONS.lock());
        *list = self.regions;
        list[..self.count].sort_unstable_by_key(|region| region.start);
        let list: &'static [Region] = list;
        list[..self.count].iter().copied()
    }
}

/// The tables in use, and empty ones for the kernel.
pub fn page_tables<I>(frames: &mut LegacyFrameAllocator<I, Region>) -> PageTables
where
    I: ExactSizeIterator<Item = Region> + Clone,
{
    let kernel_level_4_frame = frames.allocate_frame().expect("no memory for page tables");
    // SAFETY: a fresh frame, identity mapped, becomes an empty table.
    let kernel = unsafe {
        let at = kernel_level_4_frame.start_address().as_u64() as *mut PageTable;
        at.write(PageTable::new());
        &mut *at
    };
    // SAFETY: everything below 4 GiB is mapped one to one.
    unsafe {
        PageTables {
            bootloader: OffsetPageTable::new(active(Cr3::read().0), VirtAddr::new(0)),
            kernel: OffsetPageTable::new(kernel, VirtAddr::new(0)),
            kernel_level_4_frame,
        }
    }
}

/// # Safety
/// `frame` must hold the table in use, identity mapped, and nobody else may have borrowed it.
unsafe fn active(frame: PhysFrame) -> &'static mut PageTable {
    // SAFETY: passed on.
    unsafe { &mut *(frame.start_address().as_u64() as *mut PageTable) }
}
