//! The time stamp counter.

use core::arch::x86_64::{_mm_lfence, _rdtsc};

/// Reads the counter after all older instructions have completed and before any younger one starts.
///
/// LFENCE does not let later instructions start before earlier ones complete (SDM vol. 2, LFENCE); on
/// AMD that holds once [`crate::cpu::features::enable`] has run.
#[must_use]
pub fn now() -> u64 {
    // SAFETY: both instructions exist on every x86-64 processor; CR4.TSD does not bind ring 0.
    unsafe {
        _mm_lfence();
        let value = _rdtsc();
        _mm_lfence();
        value
    }
}

/// Busy-waits for `ticks`.
pub fn wait(ticks: u64) {
    let start = now();
    while now().wrapping_sub(start) < ticks {
        core::hint::spin_loop();
    }
}
