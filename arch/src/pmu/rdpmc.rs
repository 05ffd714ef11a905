//! RDPMC above ring 0: CR4.PCE.

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
