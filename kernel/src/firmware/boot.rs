//! What the boot loader handed over, in a form that outlives its page tables.

use arch::acpi::{self, domains::Near};
use arch::apic;
use arch::cpu::{Topology, native};
use arch::memory::{Frames, Handover, Mapped, Region, Space, layout, mtrr::Mtrrs, space};
use arch::smp::LOW_BYTES;
use arch::time::tsc;
use bootloader_api::BootInfo;
use bootloader_api::info::{FrameBufferInfo, MemoryRegion, MemoryRegionKind};
use protocol::authentication::Key;
use protocol::ramdisk;
use x86_64::{PhysAddr, VirtAddr};

/// The hand-over.
pub struct Handed {
    /// TSC when the firmware was entered.
    pub entered: u64,
    /// Free memory.
    pub frames: Frames,
    /// Free memory below 1 MiB, where other processors begin: [`LOW_BYTES`] of it.
    pub low: Option<u64>,
    /// Physical addresses that may be memory or devices, and are mapped.
    pub mapped: Mapped,
    /// The job.
    pub ramdisk: Option<&'static [u8]>,
    /// The boot's key, which the ramdisk does not hold any more.
    pub key: Option<Key>,
    /// ACPI's root pointer, a physical address.
    pub rsdp: Option<u64>,
    /// The frame buffer's physical address and form.
    pub screen: Option<(u64, FrameBufferInfo)>,
    /// Pieces of memory one of which may survive a reset, for the report: physical addresses.
    pub may_be_kept: [Option<Region>; 8],
    /// Whether the screen is mapped at `layout::SCREEN`.
    pub screen_mapped: bool,
    /// Bytes of usable memory that are left alone, because they would not be cached.
    pub uncached_bytes: u64,
    /// What memory is near to this processor, if the machine's tables say that.
    pub near: Option<Near>,
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

/// Reserved ranges of memory are smaller, and holes in the address space larger: AMD's at 1 TiB has 12 GiB.
const MOST_RESERVED: u64 = 64 << 20;

/// What the firmware may have to look at: memory, and tables that lie in it. Reserved ranges above 4 GiB can
/// be holes at the very end of the address space (AMD's at 1 TiB), and a map up to there is waste.
fn is_worth_mapping(region: &MemoryRegion) -> bool {
    // E820 types 3 and 4, UEFI memory types 9 and 10: ACPI tables and storage.
    let holds_tables = matches!(
        region.kind,
        MemoryRegionKind::UnknownBios(3 | 4) | MemoryRegionKind::UnknownUefi(9 | 10)
    );
    let is_memory = matches!(region.kind, MemoryRegionKind::Usable | MemoryRegionKind::Bootloader);
    // Reserved memory may hold tables as well; holes are larger.
    let is_small = region.end - region.start <= MOST_RESERVED;
    region.end <= FOUR_GIB || is_memory || holds_tables || is_small
}

/// The last free pages below 1 MiB. Page 0 is left alone: its number is what a startup interrupt without one has.
fn low(regions: &[MemoryRegion]) -> Option<u64> {
    const PAGE: u64 = 4096;
    const END: u64 = 1 << 20;
    let usable = regions.iter().filter(|region| region.kind == MemoryRegionKind::Usable);
    let last = usable.filter_map(|region| {
        let start = region.start.max(PAGE).next_multiple_of(PAGE);
        let at = (region.end.min(END) & !(PAGE - 1)).checked_sub(LOW_BYTES)?;
        (at >= start).then_some(at)
    });
    last.max()
}

/// The memory that is cached, and how much is not. Where that leaves none, the MTRRs are not believed. What is taken before the
/// machine's tables are read comes from below 4 GiB, which is near to the boot processor.
fn frames(usable: impl Iterator<Item = Region>) -> (Frames, u64) {
    let mut frames = Frames::new(usable);
    let mut uncached = 0;
    // SAFETY: ring 0.
    if let Some(mtrrs) = unsafe { Mtrrs::read() } {
        let mut cached = frames.clone();
        uncached = cached.keep(|region, each| mtrrs.each_cached(region, each));
        if cached.free_bytes() > 0 {
            frames = cached;
        } else {
            uncached = 0;
        }
    }
    frames.prefer(&[Region { start: 0, end: FOUR_GIB }]);
    (frames, uncached)
}

impl Handed {
    /// Reads the boot information. Virtual addresses become ones in the new address space's map of physical
    /// memory.
    pub fn take(info: &'static mut BootInfo, old: &Handover) -> Self {
        let entered = tsc::now();
        let physical = |address: u64| old.physical(VirtAddr::new(address)).map(PhysAddr::as_u64);
        let regions = &info.memory_regions;
        let usable = regions.iter().filter(|r| r.kind == MemoryRegionKind::Usable);
        let (frames, uncached_bytes) =
            frames(usable.map(|r| Region { start: r.start, end: r.end }));
        let worth = regions.iter().filter(|region| is_worth_mapping(region));
        let mapped = Mapped::new(worth.map(|r| Region { start: r.start, end: r.end }));
        let length = info.ramdisk_len as usize;
        let key = info.ramdisk_addr.into_option().and_then(|at| {
            // SAFETY: the boot loader mapped the ramdisk there, writable; nobody else refers to it yet.
            let bytes = unsafe { core::slice::from_raw_parts_mut(at as *mut u8, length) };
            ramdisk::take_key(bytes)
        });
        let ramdisk = info.ramdisk_addr.into_option().and_then(physical).map(|at| {
            // SAFETY: the boot loader put the ramdisk into contiguous memory that its map does not call
            // usable, so nothing overwrites it; the map of physical memory covers it.
            unsafe { core::slice::from_raw_parts((layout::PHYSICAL + at) as *const u8, length) }
        });
        let mut kept = regions.iter().filter(|region| {
            region.kind == MemoryRegionKind::UnknownUefi(stick::MEMORY_TYPE)
                && region.end <= FOUR_GIB
                && region.start.next_multiple_of(stick::ALIGN) < region.end
        });
        let screen = info.framebuffer.as_ref().and_then(|buffer| {
            let at = physical(core::ptr::from_ref(buffer.buffer()).cast::<u8>() as u64)?;
            Some((at, buffer.info()))
        });
        Self {
            entered,
            frames,
            low: low(regions),
            mapped,
            ramdisk,
            key,
            rsdp: info.rsdp_addr.into_option(),
            screen,
            may_be_kept: core::array::from_fn(|_| {
                kept.next().map(|region| Region { start: region.start, end: region.end })
            }),
            screen_mapped: false,
            uncached_bytes,
            near: None,
        }
    }

    /// Gives out memory that is near to this processor before other memory, where the machine's tables tell of several domains.
    pub fn find_near(&mut self) {
        // SAFETY: ring 0, and physical memory is mapped.
        let id = unsafe { apic::found_id(Topology::read(&native()).apic_id) };
        // SAFETY: the boot loader found the root pointer; physical memory is mapped.
        let near = self.rsdp.and_then(|rsdp| unsafe { acpi::near(rsdp, id) });
        self.near = near.filter(|near| near.domains > 1);
        self.frames.prefer(self.near.as_ref().map_or(&[], Near::ranges));
    }

    /// Maps the screen, write-combining. Without it the run goes on.
    pub fn map_screen(&mut self, space: &mut Space) {
        let Some((at, info)) = self.screen else {
            return;
        };
        let (from, to) = (VirtAddr::new(layout::SCREEN), PhysAddr::new(at));
        let bytes = info.byte_len as u64;
        let mapped = space.map_range(&mut self.frames, from, to, bytes, space::SCREEN);
        self.screen_mapped = mapped.is_ok();
    }
}
