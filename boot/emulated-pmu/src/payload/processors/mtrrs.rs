//! Memory type range registers, which a processor keeps when it takes INIT (SDM vol. 3, table 11-1), and QEMU's loses. All
//! processors of a machine have the same values in them (13.11.8), so a processor takes over those of the one that starts it.

use crate::payload::port::{cpuid, read_msr, write_msr};
use core::sync::atomic::Ordering::SeqCst;
use emulated_pmu::mtrrs::{CAPABILITIES, registers};
use handover::startup::Startup;

/// Notes those of this processor, which is about to start others.
pub fn note(shared: &Startup) {
    for (place, register) in shared.mtrrs.iter().zip(own()) {
        // SAFETY: the processor has the register; reading changes nothing.
        place.store(unsafe { read_msr(register) }, SeqCst);
    }
}

/// Takes them over.
pub fn take_over(shared: &Startup) {
    for (place, register) in shared.mtrrs.iter().zip(own()) {
        // SAFETY: the processor has the register, and the value is that of another one.
        unsafe { write_msr(register, place.load(SeqCst)) };
    }
}

/// The registers that this processor has.
fn own() -> impl Iterator<Item = u32> {
    const MTRR: u32 = 1 << 12;
    let has_any = cpuid(1, 0).edx & MTRR != 0;
    // SAFETY: CPUID has told that it is there.
    let capabilities = has_any.then(|| unsafe { read_msr(CAPABILITIES) });
    capabilities.into_iter().flat_map(registers)
}
