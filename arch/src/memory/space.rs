//! The firmware's address space.
//!
//! [`Space::build`] makes new page tables next to those of the boot loader, in a pool of frames that is mapped in both;
//! once they are loaded, [`Space::in_use`] continues with them. No page is both writable and executable. What the
//! tables do not prevent: code of ring 0 can still write through the map of physical memory to any frame, page tables
//! included; only the pages under which nothing lies (guards, address 0) are out of its reach.

mod remove;
mod spare;

use super::{Frames, Mapped, OutOfMemory, layout};
use crate::memory::image;
use crate::state::{differs, note_page_table};
use alloc::vec::Vec;
use thiserror::Error;
use x86_64::structures::paging::mapper::{MapToError, MappedPageTable, PageTableFrameMapping};
use x86_64::structures::paging::page_table::PageTableEntry;
use x86_64::structures::paging::{
    FrameAllocator, Mapper, Page, PageSize, PageTable, PageTableFlags, PhysFrame, Size1GiB,
    Size2MiB, Size4KiB,
};
use x86_64::{PhysAddr, VirtAddr};

/// Rights of ordinary data.
pub const DATA: PageTableFlags =
    PageTableFlags::PRESENT.union(PageTableFlags::WRITABLE).union(PageTableFlags::NO_EXECUTE);
/// Rights of code.
pub const CODE: PageTableFlags = PageTableFlags::PRESENT;
/// To be added to [`DATA`] or [`CODE`]: ring 3 may use the page as well.
pub const USER: PageTableFlags = PageTableFlags::USER_ACCESSIBLE;
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

/// How tables are reached: physical address plus `offset`.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// What to add.
    pub offset: u64,
}

impl Window {
    /// The map of physical memory, in every address space that [`Space::build`] made.
    pub const PHYSICAL: Self = Self { offset: layout::PHYSICAL };

    fn at(self, address: PhysAddr) -> u64 {
        self.offset.wrapping_add(address.as_u64())
    }
}

// SAFETY: whoever makes a space promises that its tables are mapped after its window.
unsafe impl PageTableFrameMapping for Window {
    fn frame_to_pointer(&self, frame: PhysFrame) -> *mut PageTable {
        self.at(frame.start_address()) as *mut PageTable
    }
}

/// Page tables under construction or in use.
pub struct Space {
    mapper: MappedPageTable<'static, Window>,
    root: PhysFrame,
    window: Window,
    giant_pages: bool,
    changes: u64,
}

impl Space {
    /// Takes up the tables below `root`.
    ///
    /// # Safety
    /// They must be reachable through `window`, and nobody else may hold them.
    pub(crate) unsafe fn open(root: PhysFrame, window: Window, giant_pages: bool) -> Self {
        // SAFETY: the caller's promise.
        let mapper = unsafe { MappedPageTable::new(&mut *window.frame_to_pointer(root), window) };
        Self { mapper, root, window, giant_pages, changes: 0 }
    }

    /// Makes an address space with the image and the physical memory that `mapped` has. With
    /// `giant_pages` that map uses 1 GiB pages. The tables come out of `pool`, which is mapped after
    /// `window`; `physical` states where the boot loader put a page of the image.
    ///
    /// # Errors
    /// The pool is too small, or a page of the image is not mapped.
    ///
    /// # Safety
    /// The pool must be mapped writable after the window and used for nothing else.
    pub unsafe fn build(
        pool: &mut Frames,
        window: Window,
        mapped: &Mapped,
        giant_pages: bool,
        physical: impl Fn(VirtAddr) -> Option<PhysAddr>,
    ) -> Result<Self, MapError> {
        let root = frame(pool)?;
        // SAFETY: a fresh frame of the pool, zeroed before it becomes a reference to a table.
        let mut space = unsafe {
            window.frame_to_pointer(root).write(PageTable::new());
            Self::open(root, window, giant_pages)
        };
        space.map_physical(pool, mapped)?;
        // SAFETY: the boot loader loaded the image, its ELF header included.
        for segment in unsafe { image::segments() } {
            space.map_image(pool, &physical, &segment)?;
        }
        Ok(space)
    }

    /// The same tables, reached through the map of physical memory.
    ///
    /// # Safety
    /// They must be the ones in use.
    #[must_use]
    pub unsafe fn in_use(self) -> Self {
        // SAFETY: every space made by `build` has that map, and `self` is given up.
        unsafe { Self::open(self.root, Window::PHYSICAL, self.giant_pages) }
    }

    /// Another address space with the same content, apart from what shares the level 4 entry of `without`, and memory that an
    /// item requests: there it is empty. The tables below level 4 are common to both.
    ///
    /// # Errors
    /// Out of memory.
    pub fn fork(&self, frames: &mut Frames, without: VirtAddr) -> Result<Self, MapError> {
        let root = frame(frames)?;
        // SAFETY: a fresh frame, reachable through the map of physical memory as `self`'s tables are; it becomes a table
        // of its own.
        unsafe {
            let (from, to) = (self.window.frame_to_pointer(self.root), Window::PHYSICAL);
            let to = to.frame_to_pointer(root);
            core::ptr::copy_nonoverlapping(from, to, 1);
            (&mut *to)[without.p4_index()].set_unused();
            (&mut *to)[VirtAddr::new(layout::HIGH_REQUESTED.start).p4_index()].set_unused();
            Ok(Self::open(root, Window::PHYSICAL, self.giant_pages))
        }
    }

    /// Maps the first `count` GiB one to one, writable and executable: for a call of foreign code that wants it so, in a
    /// space of its own. Takes 1 GiB pages.
    ///
    /// # Errors
    /// Out of memory, or something is mapped there already.
    pub fn map_first_gib(&mut self, frames: &mut Frames, count: u64) -> Result<(), MapError> {
        for at in (0..count).map(|index| index << 30) {
            let flags = PageTableFlags::PRESENT | PageTableFlags::WRITABLE;
            self.map_page::<Size1GiB>(frames, VirtAddr::new(at), PhysAddr::new(at), flags)?;
        }
        Ok(())
    }

    fn map_physical(&mut self, frames: &mut Frames, mapped: &Mapped) -> Result<(), MapError> {
        let flags = DATA | PageTableFlags::GLOBAL;
        let step = if self.giant_pages { Size1GiB::SIZE } else { Size2MiB::SIZE };
        mapped.each_page(step, |at| {
            let (from, to) = (VirtAddr::new(layout::PHYSICAL + at), PhysAddr::new(at));
            if self.giant_pages {
                self.map_page::<Size1GiB>(frames, from, to, flags)
            } else {
                self.map_page::<Size2MiB>(frames, from, to, flags)
            }
        })
    }

    fn map_image(
        &mut self,
        frames: &mut Frames,
        physical: impl Fn(VirtAddr) -> Option<PhysAddr>,
        segment: &image::Segment,
    ) -> Result<(), MapError> {
        let mut at = segment.start & !(Size4KiB::SIZE - 1);
        while at < segment.end {
            let from = VirtAddr::new(at);
            let to = physical(from).ok_or(MapError::NotMapped(at))?;
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
        MappedPageTable<'static, Window>: Mapper<S>,
    {
        self.changes += 1;
        let page = Page::<S>::containing_address(from);
        // SAFETY: every caller in this crate maps either fresh frames or memory that it owns (image,
        // screen, device registers), and `map_to` refuses a page that is mapped already.
        let mapped =
            unsafe { self.mapper.map_to(page, PhysFrame::containing_address(to), flags, frames) };
        match mapped {
            // A page that was not present before cannot be in the TLB.
            Ok(flush) => flush.ignore(),
            Err(MapToError::FrameAllocationFailed) => return Err(out_of_frames(frames).into()),
            Err(_) => return Err(MapError::Occupied(from.as_u64())),
        }
        Ok(())
    }

    /// Maps `bytes` of memory from `to` on, in 4 KiB pages.
    ///
    /// # Errors
    /// As for [`Space::map_page`].
    pub fn map_range(
        &mut self,
        frames: &mut Frames,
        from: VirtAddr,
        to: PhysAddr,
        bytes: u64,
        flags: PageTableFlags,
    ) -> Result<(), MapError> {
        for offset in (0..bytes).step_by(Size4KiB::SIZE as usize) {
            self.map_page::<Size4KiB>(frames, from + offset, to + offset, flags)?;
        }
        Ok(())
    }

    /// Takes out `bytes` of memory that is mapped in 4 KiB pages, from `from` on. Pages that are not there are passed over. The
    /// tables stay.
    pub fn unmap_range(&mut self, from: VirtAddr, bytes: u64) {
        self.changes += 1;
        for offset in (0..bytes).step_by(Size4KiB::SIZE as usize) {
            let page = Page::<Size4KiB>::containing_address(from + offset);
            if let Ok((_, flush)) = self.mapper.unmap(page) {
                flush.flush();
            }
        }
    }

    /// Maps fresh zeroed memory in 4 KiB pages, in the address space in use.
    ///
    /// # Errors
    /// Out of memory, or something is mapped there already.
    pub fn map_fresh(
        &mut self,
        frames: &mut Frames,
        from: VirtAddr,
        bytes: u64,
        flags: PageTableFlags,
    ) -> Result<(), MapError> {
        let to = frames.allocate(bytes, Size4KiB::SIZE)?;
        // SAFETY: fresh frames, reachable through the map of physical memory, used by nobody yet.
        unsafe {
            let at = Window::PHYSICAL.at(to) as *mut u8;
            core::ptr::write_bytes(at, 0, bytes.next_multiple_of(Size4KiB::SIZE) as usize);
        }
        self.map_range(frames, from, to, bytes, flags)
    }

    /// Calls `each` with the address of every 4 KiB page that was written to since the last call, in a
    /// range that one page table covers (2 MiB, aligned), and marks those pages clean afterwards. `clean` is what
    /// [`Space::clean`] gave for the range: entries that foreign code has changed are restored first. `None`: that is not
    /// looked at.
    pub fn take_dirty(
        &mut self,
        from: VirtAddr,
        bytes: u64,
        clean: Option<&Clean>,
        mut each: impl FnMut(VirtAddr),
    ) {
        let Some(table) = self.leaf_table(from) else {
            return;
        };
        let first = usize::from(from.p1_index());
        let count = (bytes / Size4KiB::SIZE) as usize;
        let entries = &mut entries(table)[first..first + count];
        // Between two snippets nearly all pages are clean, and a job looks at them for each.
        // SAFETY: as many entries as words, of 64 bits each.
        if clean.is_some_and(|Clean(words)| unsafe {
            !differs(entries.as_ptr().cast(), words.as_ptr(), words.len().min(entries.len()))
        }) {
            return;
        }
        for (index, entry) in entries.iter_mut().enumerate() {
            let page = from + index as u64 * Size4KiB::SIZE;
            if let Some(&wanted) = clean.and_then(|Clean(words)| words.get(index)) {
                if (bits(entry) ^ wanted) & FIXED_BITS != 0 {
                    // Dirty, since nobody knows what was written through the entry, or by which.
                    let flags = PageTableFlags::from_bits_truncate(wanted) | PageTableFlags::DIRTY;
                    entry.set_addr(PhysAddr::new_truncate(wanted & ADDRESS_BITS), flags);
                    note_page_table(page);
                }
                entry.set_flags(entry.flags() | PageTableFlags::ACCESSED);
            }
            if !entry.flags().contains(PageTableFlags::DIRTY) {
                continue;
            }
            each(page);
            entry.set_flags(entry.flags() - PageTableFlags::DIRTY);
            // The processor sets the bit again only after the TLB forgot it (SDM vol. 3, 4.8).
            x86_64::instructions::tlb::flush(page);
        }
    }

    /// The entries of a range, which one page table covers, as they are while its pages are clean. Sets their accessed bits, which
    /// the processor never clears (SDM vol. 3, 4.8).
    pub fn clean(&mut self, from: VirtAddr, bytes: u64) -> Option<Clean> {
        let table = self.leaf_table(from)?;
        let first = usize::from(from.p1_index());
        let entries = &mut entries(table)[first..first + (bytes / Size4KiB::SIZE) as usize];
        let words = entries.iter_mut().map(|entry| {
            entry.set_flags(entry.flags() | PageTableFlags::ACCESSED);
            bits(entry) & !PageTableFlags::DIRTY.bits()
        });
        Some(Clean(words.collect()))
    }

    /// Lets ring 3 use a range that is mapped in 2 MiB pages, or not any more.
    pub fn set_user(&mut self, from: VirtAddr, bytes: u64, user: bool) {
        let mut at = from;
        while at < from + bytes {
            let mut table = self.root;
            // The upper levels have to allow it as well, and may continue doing so.
            for index in [at.p4_index(), at.p3_index()] {
                // SAFETY: a table of this space, reachable only through `self`, which is borrowed mutably.
                let entry = unsafe { &mut (&mut *self.window.frame_to_pointer(table))[index] };
                let Ok(next) = entry.frame() else { return };
                entry.set_flags(entry.flags() | USER);
                table = next;
            }
            // SAFETY: as above.
            let page = unsafe { &mut (&mut *self.window.frame_to_pointer(table))[at.p2_index()] };
            let mut flags = page.flags();
            flags.set(USER, user);
            page.set_flags(flags);
            x86_64::instructions::tlb::flush(at);
            at += Size2MiB::SIZE;
        }
    }

    /// The lowest-level table of `address`, if it is mapped in 4 KiB pages.
    fn leaf_table(&mut self, address: VirtAddr) -> Option<&mut PageTable> {
        let mut level = self.root;
        for index in [address.p4_index(), address.p3_index(), address.p2_index()] {
            // SAFETY: a table of this space, reachable only through `self`, which is borrowed mutably.
            let entry = unsafe { &(&*self.window.frame_to_pointer(level))[index] };
            level = entry.frame().ok()?;
        }
        // SAFETY: as above.
        Some(unsafe { &mut *self.window.frame_to_pointer(level) })
    }

    /// Changes with every page that is mapped.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The physical address of the top table, as CR3 wants it.
    #[must_use]
    pub fn root(&self) -> PhysAddr {
        self.root.start_address()
    }
}

/// A range's entries while no page is dirty.
#[derive(Debug)]
pub struct Clean(Vec<u64>);

/// Bits of an entry that hold an address.
const ADDRESS_BITS: u64 = 0x000f_ffff_ffff_f000;
/// Bits that the processor does not change.
const FIXED_BITS: u64 = !(PageTableFlags::ACCESSED.union(PageTableFlags::DIRTY)).bits();

fn bits(entry: &PageTableEntry) -> u64 {
    entry.addr().as_u64() | entry.flags().bits()
}

/// A table as a slice.
fn entries(table: &mut PageTable) -> &mut [PageTableEntry; 512] {
    const { assert!(size_of::<PageTable>() == size_of::<[PageTableEntry; 512]>()) };
    // SAFETY: a page table is that array and nothing else (it is `repr(C)`, and the sizes are equal).
    unsafe { &mut *core::ptr::from_mut(table).cast() }
}

fn frame(frames: &mut Frames) -> Result<PhysFrame, OutOfMemory> {
    frames.allocate_frame().ok_or_else(|| out_of_frames(frames))
}

fn out_of_frames(frames: &Frames) -> OutOfMemory {
    OutOfMemory { bytes: Size4KiB::SIZE, largest: frames.largest_bytes() }
}
