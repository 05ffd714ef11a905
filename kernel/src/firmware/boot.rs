//! What the boot loader handed over, in a form that outlives its page tables.

use arch::memory::{Frames, Region, Space, layout, space};
use bootloader_api::BootInfo;
use bootloader_api::info::{FrameBufferInfo, MemoryRegionKind};
use x86_64::VirtAddr;
use x86_64::structures::paging::{PageSize, Size4KiB};

/// The hand-over.
pub struct Handed {
    /// Free memory.
    pub frames: Frames,
    /// Physical addresses below this may be memory or devices.
    pub physical_bytes: u64,
    /// The job.
    pub ramdisk: Option<&'static [u8]>,
    /// ACPI's root pointer, a physical address.
    pub rsdp: Option<u64>,
    /// The frame buffer's physical address and form.
    pub screen: Option<(u64, FrameBufferInfo)>,
    /// Whether the screen is mapped at `layout::SCREEN`.
    pub screen_mapped: bool,
}

/// The hand-over together with the new address space.
pub struct Ready {
    /// From the boot loader.
    pub handed: Handed,
    /// Ours.
    pub space: Space,
}

/// Devices lie below 4 GiB even where memory does not reach that far.
const FOUR_GIB: u64 = 4 << 30;

impl Handed {
    /// Reads the boot information. Virtual addresses become ones in the map of physical memory, which is
    /// at the same place in both address spaces.
    pub fn take(info: &'static mut BootInfo) -> Self {
        // SAFETY: the boot loader mapped physical memory where our configuration asked for it.
        let old = unsafe { Space::current() };
        let physical = |address: u64| old.physical(VirtAddr::new(address)).map(|p| p.as_u64());
        let regions = &info.memory_regions;
        let usable = regions
            .iter()
            .filter(|r| r.kind == MemoryRegionKind::Usable);
        let frames = Frames::new(usable.map(|r| Region {
            start: r.start,
            end: r.end,
        }));
        let highest = regions.iter().map(|r| r.end).max().unwrap_or(0);
        let length = info.ramdisk_len as usize;
        let ramdisk = info
            .ramdisk_addr
            .into_option()
            .and_then(physical)
            .map(|at| {
                // SAFETY: the boot loader put the ramdisk into contiguous memory that its map does not call
                // usable, so nothing overwrites it; the map of physical memory covers it.
                unsafe { core::slice::from_raw_parts((layout::PHYSICAL + at) as *const u8, length) }
            });
        let screen = info.framebuffer.as_ref().and_then(|buffer| {
            let at = physical(core::ptr::from_ref(buffer.buffer()).cast::<u8>() as u64)?;
            Some((at, buffer.info()))
        });
        Self {
            frames,
            physical_bytes: highest.max(FOUR_GIB),
            ramdisk,
            rsdp: info.rsdp_addr.into_option(),
            screen,
            screen_mapped: false,
        }
    }

    /// Maps the screen, write-combining. Without it the run goes on.
    pub fn map_screen(&mut self, space: &mut Space) {
        let Some((at, info)) = self.screen else {
            return;
        };
        let mapped = (0..info.byte_len as u64)
            .step_by(Size4KiB::SIZE as usize)
            .try_for_each(|o| {
                let (from, to) = (
                    VirtAddr::new(layout::SCREEN + o),
                    x86_64::PhysAddr::new(at + o),
                );
                space.map_page::<Size4KiB>(&mut self.frames, from, to, space::SCREEN)
            });
        self.screen_mapped = mapped.is_ok();
    }
}
