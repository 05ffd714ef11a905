//! The firmware's address space.
//!
//! [`Space::build`] makes new page tables beside those of the boot loader; [`Space::activate`] loads
//! them. No page is both writable and executable. What the tables do not prevent: code of ring 0 can
//! still write through the map of physical memory to any frame, page tables included; only the pages
//! under which nothing lies (guards, address 0) are out of its reach.

use super::{Frames, OutOfMemory, layout};
use crate::memory::image;
use thiserror::Error;
use x86_64::registers::control::{Cr3, Cr3Flags, Cr4, Cr4Flags};
use x86_64::structures::paging::mapper::MapToError;
use x86_64::structures::paging::{
    FrameAllocator, Mapper, OffsetPageTable, Page, PageSize, PageTable, PageTableFlags, PhysFrame,
    Size1GiB, Size2MiB, Size4KiB, Translate,
};
use x86_64::{PhysAddr, VirtAddr};

/// Rights of ordinary data.
pub const DATA: PageTableFlags = PageTableFlags::PRESENT
    .union(PageTableFlags::WRITABLE)
    .union(PageTableFlags::NO_EXECUTE);
/// Rights of code.
pub const CODE: PageTableFlags = PageTableFlags::PRESENT;
/// Rights and memory type of a screen: PAT entry 1, which [`crate::cpu::features`] makes write-combining.
pub const SCREEN: PageTableFlags = DATA.union(PageTableFlags::WRITE_THROUGH);

/// Why something could not be mapped.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum MapError {
    /// No frame left for a page table or for the memory itself.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Two things at the same place.
    #[error("address {0:#x} is mapped already")]
    Occupied(u64),
    /// The boot loader mapped less than it said.
    #[error("the boot loader did not map address {0:#x}")]
    NotMapped(u64),
}

/// Page tables under construction or in use.
pub struct Space {
    mapper: OffsetPageTable<'static>,
    root: PhysFrame,
    giant_pages: bool,
}

/// Gives the table in `frame`, through the map of physical memory.
///
/// # Safety
/// Physical memory must be mapped at [`layout::PHYSICAL`], and nobody else may hold the table.
unsafe fn table(frame: PhysFrame) -> &'static mut PageTable {
    let at = VirtAddr::new(layout::PHYSICAL + frame.start_address().as_u64());
    // SAFETY: the caller promises the mapping and the exclusiveness.
    unsafe { &mut *at.as_mut_ptr() }
}

impl Space {
    /// The boot loader's tables, for looking things up.
    ///
    /// # Safety
    /// Physical memory must be mapped at [`layout::PHYSICAL`], as the kernel's boot configuration asks.
    #[must_use]
    pub unsafe fn current() -> Self {
        let (root, _) = Cr3::read();
        // SAFETY: the tables in use are mapped with all physical memory.
        let mapper = unsafe { OffsetPageTable::new(table(root), VirtAddr::new(layout::PHYSICAL)) };
        Self {
            mapper,
            root,
            giant_pages: false,
        }
    }

    /// Makes an address space with the image and the first `physical_bytes` of physical memory. With
    /// `giant_pages` that map uses 1 GiB pages.
    ///
    /// # Errors
    /// Out of memory, or a page of the image that the boot loader did not map.
    ///
    /// # Safety
    /// As for [`Space::current`].
    pub unsafe fn build(
        frames: &mut Frames,
        physical_bytes: u64,
        giant_pages: bool,
    ) -> Result<Self, MapError> {
        // SAFETY: passed on.
        let old = unsafe { Self::current() };
        let root = frame(frames)?;
        // SAFETY: a fresh frame, zeroed before it becomes a reference to a table.
        let mapper = unsafe {
            let at = layout::PHYSICAL + root.start_address().as_u64();
            core::ptr::write_bytes(at as *mut u8, 0, Size4KiB::SIZE as usize);
            OffsetPageTable::new(table(root), VirtAddr::new(layout::PHYSICAL))
        };
        let mut space = Self {
            mapper,
            root,
            giant_pages,
        };
        space.map_physical(frames, physical_bytes)?;
        // SAFETY: the boot loader loaded the image, its ELF header included.
        for segment in unsafe { image::segments() } {
            space.map_image(frames, &old, &segment)?;
        }
        Ok(space)
    }

    fn map_physical(&mut self, frames: &mut Frames, bytes: u64) -> Result<(), MapError> {
        let flags = DATA | PageTableFlags::GLOBAL;
        let (mut at, step) = (
            0,
            if self.giant_pages {
                Size1GiB::SIZE
            } else {
                Size2MiB::SIZE
            },
        );
        while at < bytes {
            let (from, to) = (VirtAddr::new(layout::PHYSICAL + at), PhysAddr::new(at));
            if self.giant_pages {
                self.map_page::<Size1GiB>(frames, from, to, flags)?;
            } else {
                self.map_page::<Size2MiB>(frames, from, to, flags)?;
            }
            at += step;
        }
        Ok(())
    }

    fn map_image(
        &mut self,
        frames: &mut Frames,
        old: &Self,
        segment: &image::Segment,
    ) -> Result<(), MapError> {
        let mut at = segment.start & !(Size4KiB::SIZE - 1);
        while at < segment.end {
            let from = VirtAddr::new(at);
            let to = old.physical(from).ok_or(MapError::NotMapped(at))?;
            let page = Page::<Size4KiB>::containing_address(from);
            // The relocated read-only part lies inside a writable segment that was mapped before.
            // SAFETY: changes only the tables under construction.
            let known = unsafe { self.mapper.update_flags(page, segment.flags) };
            match known {
                Ok(flush) => flush.ignore(),
                Err(_) => self.map_page::<Size4KiB>(frames, from, to, segment.flags)?,
            }
            at += Size4KiB::SIZE;
        }
        Ok(())
    }

    /// Maps one page. The caller keeps W^X by using [`DATA`], [`CODE`] or [`SCREEN`].
    ///
    /// # Errors
    /// Out of memory, or something is mapped there already.
    pub fn map_page<S>(
        &mut self,
        frames: &mut Frames,
        from: VirtAddr,
        to: PhysAddr,
        flags: PageTableFlags,
    ) -> Result<(), MapError>
    where
        S: PageSize + core::fmt::Debug,
        OffsetPageTable<'static>: Mapper<S>,
    {
        let page = Page::<S>::containing_address(from);
        // SAFETY: every caller in this crate maps either fresh frames or memory that it owns (image,
        // screen, device registers), and `map_to` refuses a page that is mapped already.
        let mapped = unsafe {
            self.mapper
                .map_to(page, PhysFrame::containing_address(to), flags, frames)
        };
        match mapped {
            // A page that was not present before cannot be in the TLB.
            Ok(flush) => flush.ignore(),
            Err(MapToError::FrameAllocationFailed) => return Err(out_of_frames(frames).into()),
            Err(_) => return Err(MapError::Occupied(from.as_u64())),
        }
        Ok(())
    }

    /// Maps fresh zeroed memory in 4 KiB pages.
    ///
    /// # Errors
    /// Out of memory, or something is mapped there already.
    pub fn map_fresh(
        &mut self,
        frames: &mut Frames,
        from: VirtAddr,
        bytes: u64,
        flags: PageTableFlags,
    ) -> Result<PhysAddr, MapError> {
        let to = frames.allocate(bytes, Size4KiB::SIZE)?;
        // SAFETY: fresh frames, reachable through the map of physical memory, used by nobody yet.
        unsafe {
            let at = (layout::PHYSICAL + to.as_u64()) as *mut u8;
            core::ptr::write_bytes(at, 0, bytes.next_multiple_of(Size4KiB::SIZE) as usize);
        }
        for offset in (0..bytes).step_by(Size4KiB::SIZE as usize) {
            self.map_page::<Size4KiB>(frames, from + offset, to + offset, flags)?;
        }
        Ok(to)
    }

    /// The physical address behind a mapped one.
    #[must_use]
    pub fn physical(&self, address: VirtAddr) -> Option<PhysAddr> {
        self.mapper.translate_addr(address)
    }

    /// Calls `each` with the address of every 4 KiB page that was written to since the last call, in a
    /// range that one page table covers (2 MiB, aligned), and marks those pages clean afterwards.
    pub fn take_dirty(&mut self, from: VirtAddr, bytes: u64, mut each: impl FnMut(VirtAddr)) {
        let Some(table) = self.leaf_table(from) else {
            return;
        };
        let first = usize::from(from.p1_index());
        let count = (bytes / Size4KiB::SIZE) as usize;
        for (index, entry) in table.iter_mut().skip(first).take(count).enumerate() {
            if !entry.flags().contains(PageTableFlags::DIRTY) {
                continue;
            }
            let page = from + index as u64 * Size4KiB::SIZE;
            each(page);
            entry.set_flags(entry.flags() - PageTableFlags::DIRTY);
            // The processor sets the bit again only after the TLB forgot it (SDM vol. 3, 4.8).
            x86_64::instructions::tlb::flush(page);
        }
    }

    /// The lowest-level table of `address`, if it is mapped in 4 KiB pages.
    fn leaf_table(&mut self, address: VirtAddr) -> Option<&mut PageTable> {
        let mut level = self.root;
        for index in [address.p4_index(), address.p3_index(), address.p2_index()] {
            // SAFETY: a table of this space, reachable only through `self`, which is borrowed mutably.
            let entry = unsafe { &table(level)[index] };
            level = entry.frame().ok()?;
        }
        // SAFETY: as above.
        Some(unsafe { table(level) })
    }

    /// Loads the tables.
    ///
    /// # Safety
    /// The stack in use and everything that the code after this call touches must be mapped in them.
    pub unsafe fn activate(&self) {
        // SAFETY: the caller promises that the code can go on; clearing and setting PGE flushes the global
        // entries of the old tables (SDM vol. 3, 4.10.4.1).
        unsafe {
            Cr3::write(self.root, Cr3Flags::empty());
            Cr4::update(|cr4| cr4.remove(Cr4Flags::PAGE_GLOBAL));
            Cr4::update(|cr4| cr4.insert(Cr4Flags::PAGE_GLOBAL));
        }
    }

    /// The physical address of the top table, as CR3 wants it.
    #[must_use]
    pub fn root(&self) -> PhysAddr {
        self.root.start_address()
    }
}

fn frame(frames: &mut Frames) -> Result<PhysFrame, OutOfMemory> {
    frames.allocate_frame().ok_or_else(|| out_of_frames(frames))
}

fn out_of_frames(frames: &Frames) -> OutOfMemory {
    OutOfMemory {
        bytes: Size4KiB::SIZE,
        largest: frames.largest_bytes(),
    }
}
