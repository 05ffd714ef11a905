//! The permission maps of nested guests: what the hypervisor intercepts, and what the guest does.

use crate::payload::svm;
use core::slice;
use emulated_pmu::nested::Control;
use emulated_pmu::nested::permissions::{IO_BYTES, MSR_BYTES, merge};
use emulated_pmu::vmcb::{CLEAN_MAPS, Intercepts, Vmcb};

const WORD: usize = size_of::<u64>();

#[repr(C, align(4096))]
struct Map<const WORDS: usize>([u64; WORDS]);
static mut MSR: Map<{ MSR_BYTES / WORD }> = Map([0; MSR_BYTES / WORD]);
static mut IO: Map<{ IO_BYTES / WORD }> = Map([0; IO_BYTES / WORD]);

/// Whose the merged maps are: the addresses of the guest's block and of its maps; `None` of those that it does not use.
#[derive(Clone, Copy, PartialEq)]
struct Merged {
    block: u64,
    msr: Option<u64>,
    io: Option<u64>,
}
static mut MERGED: Option<Merged> = None;

/// A map of the guest's.
fn guests(address: u64, bytes: usize) -> &'static [u64] {
    // SAFETY: memory of the guest, identity mapped and aligned to a page, which does not change while the guest is not running.
    unsafe { slice::from_raw_parts(address as *const u64, bytes / WORD) }
}

/// Merges the maps for a block of the guest's at `address`, unless it says that its own have not changed. Returns the addresses
/// of the maps of registers and of ports.
pub fn merged(address: u64, block: &Vmcb, control: &Control) -> (u64, u64) {
    let used = |intercept, map| control.intercepts.contains(intercept).then_some(map);
    let wanted = Merged {
        block: address,
        msr: used(Intercepts::MSR, control.msr_permissions),
        io: used(Intercepts::PORT, control.io_permissions),
    };
    let (own_msr, own_io) = svm::maps();
    // SAFETY: one processor, which runs the hypervisor now; nobody else has references to the maps.
    unsafe {
        let (msr, io) = (&raw mut MSR, &raw mut IO);
        if block.clean & CLEAN_MAPS == 0 || MERGED != Some(wanted) {
            match wanted.msr {
                Some(map) => merge(own_msr, guests(map, MSR_BYTES), &mut (*msr).0),
                None => (*msr).0.copy_from_slice(own_msr),
            }
            match wanted.io {
                Some(map) => merge(own_io, guests(map, IO_BYTES), &mut (*io).0),
                None => (*io).0.copy_from_slice(own_io),
            }
            MERGED = Some(wanted);
        }
        (msr as u64, io as u64)
    }
}

/// A byte of a map of the guest's.
pub fn byte(map: u64, at: usize) -> u8 {
    // SAFETY: as above.
    unsafe { *((map + at as u64) as *const u8) }
}

/// The hypervisor intercepts the four bytes from `port` on, or no longer: of nested guests as well.
pub fn intercept_port(port: u16, on: bool) {
    svm::intercept_port(port, on);
    // SAFETY: one processor, which runs the hypervisor now.
    unsafe { MERGED = None };
    let map = (&raw mut IO).cast::<u8>();
    for port in usize::from(port)..usize::from(port) + 4 {
        // SAFETY: as above; the map continues beyond the last port. What the guest intercepts there comes back at its VMRUN.
        unsafe {
            let byte = map.add(port / 8);
            let bit = 1 << (port % 8);
            *byte = if on { *byte | bit } else { *byte & !bit };
        }
    }
}
