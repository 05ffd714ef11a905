//! RDPMC and RDTSC above ring 0: CR4.PCE and CR4.TSD.

use x86_64::registers::control::{Cr4, Cr4Flags};

/// Allows or forbids RDPMC above ring 0 (SDM vol. 3, 2.5). Returns what was before.
///
/// # Safety
/// Ring 0.
pub unsafe fn allow_above_ring_0(allowed: bool) -> bool {
    let before = Cr4::read().contains(Cr4Flags::PERFORMANCE_MONITOR_COUNTER);
    // SAFETY: the bit changes nothing but who may execute RDPMC.
    unsafe { Cr4::update(|cr4| cr4.set(Cr4Flags::PERFORMANCE_MONITOR_COUNTER, allowed)) };
    before
}

/// Allows or forbids RDTSC and RDTSCP above ring 0 (SDM vol. 3, 2.5): CR4.TSD forbids. Returns what was before.
///
/// # Safety
/// Ring 0.
pub unsafe fn allow_tsc_above_ring_0(allowed: bool) -> bool {
    let before = !Cr4::read().contains(Cr4Flags::TIMESTAMP_DISABLE);
    // SAFETY: the bit changes nothing but who may execute the two.
    unsafe { Cr4::update(|cr4| cr4.set(Cr4Flags::TIMESTAMP_DISABLE, !allowed)) };
    before
}
