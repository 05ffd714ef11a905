//! The memory map and the page tables, as `bootloader-x86_64-common` wants them.

use bootloader_api::info::MemoryRegionKind;
use bootloader_x86_64_common::PageTables;
use bootloader_x86_64_common::legacy_memory_region::LegacyMemoryRegion;
use uefi::boot::PAGE_SIZE;
use uefi::mem::memory_map::{MemoryDescriptor, MemoryType};
use x86_64::registers::control::{Cr3, Cr3Flags};
use x86_64::structures::paging::{FrameAllocator, OffsetPageTable, PageTable, PhysFrame, Size4KiB};
use x86_64::{PhysAddr, VirtAddr};

/// An entry of the machine's memory map.
#[derive(Clone, Copy, Debug)]
pub struct Region(pub MemoryDescriptor);

impl Region {
    /// The byte after the last.
    pub fn end(&self) -> u64 {
        self.0.phys_start + self.len()
    }
}

impl LegacyMemoryRegion for Region {
    fn start(&self) -> PhysAddr {
        PhysAddr::new(self.0.phys_start)
    }

    fn len(&self) -> u64 {
        self.0.page_count * PAGE_SIZE as u64
    }

    fn kind(&self) -> MemoryRegionKind {
        match self.0.ty {
            MemoryType::CONVENTIONAL => MemoryRegionKind::Usable,
            other => MemoryRegionKind::UnknownUefi(other.0),
        }
    }

    /// What the machine's boot services and this program had is free when the kernel runs (UEFI specification 7.2.1).
    fn usable_after_bootloader_exit(&self) -> bool {
        matches!(
            self.0.ty,
            MemoryType::CONVENTIONAL
                | MemoryType::LOADER_CODE
                | MemoryType::LOADER_DATA
                | MemoryType::BOOT_SERVICES_CODE
                | MemoryType::BOOT_SERVICES_DATA
        )
    }
}

/// Entries of a fourth-level table for the lower half of the address space, where UEFI maps all memory one to one.
const LOWER_HALF: usize = 256;

/// A copy of the fourth-level table in use, which may be read-only, and empty tables for the kernel. The copy is in use then.
pub fn page_tables(frames: &mut impl FrameAllocator<Size4KiB>) -> PageTables {
    let (copy_frame, copy) = empty(frames);
    let (kernel_level_4_frame, kernel) = empty(frames);
    // SAFETY: the table in use is mapped one to one; nobody changes it now.
    let used = unsafe { &*(Cr3::read().0.start_address().as_u64() as *const PageTable) };
    for index in 0..LOWER_HALF {
        copy[index] = used[index].clone();
    }
    // SAFETY: the copy maps what this program uses as the original does, one to one.
    unsafe {
        Cr3::write(copy_frame, Cr3Flags::empty());
        PageTables {
            bootloader: OffsetPageTable::new(copy, VirtAddr::new(0)),
            kernel: OffsetPageTable::new(kernel, VirtAddr::new(0)),
            kernel_level_4_frame,
        }
    }
}

/// A fresh table.
fn empty(frames: &mut impl FrameAllocator<Size4KiB>) -> (PhysFrame, &'static mut PageTable) {
    let frame = frames.allocate_frame().expect("barecount: no memory for page tables");
    let at = frame.start_address().as_u64() as *mut PageTable;
    // SAFETY: the frame is free memory, mapped one to one.
    unsafe {
        at.write(PageTable::new());
        (frame, &mut *at)
    }
}
