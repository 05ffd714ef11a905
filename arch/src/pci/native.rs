//! The machine's own devices. Registers in memory are reached through one page, which is mapped for each access and for that alone,
//! uncached: so nothing that runs between two accesses can reach a device by accident, and no address has to be within the map of
//! physical memory.

use super::devices::{Address, Devices, Size};
use super::segments::{BY_PORTS, Segment};
use super::{Function, read, write};
use crate::memory::mtrr::Mtrrs;
use crate::memory::space::{DATA, MapError};
use crate::memory::{Frames, Region, Space, layout};
use alloc::vec::Vec;
use spin::Mutex;
use x86_64::VirtAddr;
use x86_64::instructions::tlb;
use x86_64::structures::paging::PageTableFlags;

/// What is known of the machine.
struct Known {
    /// The entry of the page, in the page table.
    entry: *mut u64,
    segments: Vec<Segment>,
    apic_ids: Vec<u32>,
    mtrrs: Option<Mtrrs>,
}

// SAFETY: the entry is in a page table, which every processor has at the same address, and is used by the lock's holder alone.
unsafe impl Send for Known {}

static KNOWN: Mutex<Option<Known>> = Mutex::new(None);

/// Rights and memory type of a device's page: PAT entry 3, which is uncacheable from reset on (SDM vol. 3, 13.12.4).
const DEVICE: PageTableFlags =
    DATA.union(PageTableFlags::NO_CACHE).union(PageTableFlags::WRITE_THROUGH);
const PAGE: u64 = 4096;
/// Below, the MTRRs' fixed ranges rule; no device that is looked for is there.
const LOWEST: u64 = 1 << 20;
/// The first register that ports do not reach.
const EXTENDED: u16 = 0x100;

/// Makes the devices reachable through [`Native`]. `segments`: of the table MCFG; none: there is no such table.
///
/// # Errors
/// Out of memory.
///
/// # Safety
/// Ring 0; the space is the one in use, and its tables stay.
pub unsafe fn open(
    space: &mut Space,
    frames: &mut Frames,
    mut segments: Vec<Segment>,
    apic_ids: Vec<u32>,
) -> Result<(), MapError> {
    let entry = space.spare_page(frames, VirtAddr::new(layout::DEVICE), DEVICE)?;
    if segments.is_empty() {
        segments.push(BY_PORTS);
    }
    // SAFETY: ring 0.
    let mtrrs = unsafe { Mtrrs::read() };
    *KNOWN.lock() = Some(Known { entry, segments, apic_ids, mtrrs });
    Ok(())
}

impl Known {
    /// Calls `access` with the linear address of a physical one, whose register does not go over a page's end.
    fn with<T>(&mut self, at: u64, access: impl FnOnce(u64) -> T) -> T {
        let page = VirtAddr::new(layout::DEVICE);
        // SAFETY: `spare_page` has given the entry, whose page nobody else uses; volatile, because the processor reads it.
        unsafe { self.entry.write_volatile(at & !(PAGE - 1) | DEVICE.bits()) };
        tlb::flush(page);
        let done = access(layout::DEVICE + at % PAGE);
        // SAFETY: as above.
        unsafe { self.entry.write_volatile(0) };
        tlb::flush(page);
        done
    }

    fn read(&mut self, at: u64, size: Size) -> u64 {
        // SAFETY: a device's register of this size, aligned: whoever asks has seen to it.
        self.with(at, |at| unsafe {
            match size {
                Size::Dword => (at as *const u32).read_volatile().into(),
                Size::Qword => (at as *const u64).read_volatile(),
            }
        })
    }

    fn write(&mut self, at: u64, size: Size, value: u64) {
        // SAFETY: as for reading.
        self.with(at, |at| unsafe {
            match size {
                Size::Dword => (at as *mut u32).write_volatile(value as u32),
                Size::Qword => (at as *mut u64).write_volatile(value),
            }
        });
    }

    /// Whether a register may be there: no memory that is cached, since that is no device's.
    fn is_device(&self, at: u64, size: Size) -> bool {
        let bytes = if size == Size::Dword { 4 } else { 8 };
        let Some(mtrrs) =
            self.mtrrs.filter(|_| at.is_multiple_of(bytes) && (LOWEST..1 << 52).contains(&at))
        else {
            return false;
        };
        let mut cached = false;
        mtrrs.each_cached(Region { start: at, end: at + bytes }, |_| cached = true);
        !cached
    }

    /// Where a function's register is: the physical address, or `None` within: by ports.
    fn place(&self, at: Address, offset: u16) -> Option<Option<u64>> {
        let Address { segment, bus, device, function } = at;
        if segment == 0 && offset < EXTENDED {
            return Some(None);
        }
        let mut all = self.segments.iter().filter(|one| one.number == segment);
        all.find_map(|one| one.address(bus, device, function, offset)).map(Some)
    }
}

/// The machine's devices, after [`open`]; none before.
#[derive(Debug)]
pub struct Native {
    _private: (),
}

impl Native {
    /// Access to all of them.
    ///
    /// # Safety
    /// Ring 0. Configuration space and the registers that are written must be the holder's alone.
    #[must_use]
    pub const unsafe fn new() -> Self {
        Self { _private: () }
    }
}

impl Devices for Native {
    fn segments(&self) -> Vec<Segment> {
        KNOWN.lock().as_ref().map_or_else(Vec::new, |known| known.segments.clone())
    }

    fn apic_ids(&self) -> Vec<u32> {
        KNOWN.lock().as_ref().map_or_else(Vec::new, |known| known.apic_ids.clone())
    }

    fn config(&mut self, at: Address, offset: u16) -> Option<u32> {
        let mut known = KNOWN.lock();
        let known = known.as_mut()?;
        let Address { bus, device, function, .. } = at;
        Some(match known.place(at, offset)? {
            Some(address) => known.read(address, Size::Dword) as u32,
            // SAFETY: the maker's promise; reading has no effect.
            None => unsafe { read(Function { bus, device, function }, offset) },
        })
    }

    fn set_config(&mut self, at: Address, offset: u16, value: u32) -> bool {
        let mut known = KNOWN.lock();
        let Some(known) = known.as_mut() else { return false };
        let Address { bus, device, function, .. } = at;
        match known.place(at, offset) {
            Some(Some(address)) => known.write(address, Size::Dword, value.into()),
            // SAFETY: the maker's promise.
            Some(None) => unsafe { write(Function { bus, device, function }, offset, value) },
            None => return false,
        }
        true
    }

    fn memory(&mut self, at: u64, size: Size) -> Option<u64> {
        let mut known = KNOWN.lock();
        let known = known.as_mut().filter(|known| known.is_device(at, size))?;
        Some(known.read(at, size))
    }

    fn set_memory(&mut self, at: u64, size: Size, value: u64) -> bool {
        let mut known = KNOWN.lock();
        let known = known.as_mut().filter(|known| known.is_device(at, size));
        known.map(|known| known.write(at, size, value)).is_some()
    }
}
