//! The time stamp counter.

use core::arch::asm;

/// Reads the counter after all older instructions have completed and before any younger one starts.
///
/// LFENCE does not let later instructions start before earlier ones complete (SDM vol. 2, LFENCE); on
/// AMD that holds once [`crate::cpu::features::enable`] has run.
#[inline]
#[must_use]
pub fn now() -> u64 {
    // RDTSC clears the upper halves of both.
    let (low, high): (u64, u64);
    // SAFETY: both instructions exist on every x86-64 processor; CR4.TSD does not bind ring 0. In assembly, because the
    // firmware is built without SSE2, and a compiler's intrinsic for LFENCE would be a call there.
    unsafe {
        asm!("lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// Reads the counter after all older instructions have completed; younger ones may start before.
#[inline]
#[must_use]
pub fn behind() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as in `now`.
    unsafe {
        asm!("lfence", "rdtsc", out("rax") low, out("rdx") high, options(nostack, preserves_flags));
    }
    high << 32 | low
}

/// Busy-waits for `ticks`.
pub fn wait(ticks: u64) {
    let start = now();
    while now().wrapping_sub(start) < ticks {
        core::hint::spin_loop();
    }
}
