//! The guest's time: what it has executed and how long it was halted. The hypervisor's own work takes none of it.
//!
//! Time is told in ticks of the TSC, which under icount are nanoseconds of QEMU's virtual clock. From the first
//! counting on, four clocks of the machine show it to the guest:
//!
//! - the TSC, by the offset that each VMRUN loads ([`super::switch`]);
//! - the local APIC's timer ([`super::timer`]);
//! - ACPI's power management timer ([`super::pm_timer`]);
//! - and what nobody holds back: the HPET, which the guest is not told of, the PC's old timers and the real-time clock. They
//!   run on while the hypervisor works.
//!
//! Several processors run one at a time, and the guest's time goes from one to the next.

use super::port::tsc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The guest's time at its last exit.
pub static NOW: AtomicU64 = AtomicU64::new(0);
/// All ones if its time is its own; 0 if it is the machine's.
pub static OWN: AtomicU64 = AtomicU64::new(0);
/// What a nested guest's TSC is ahead of the guest's.
pub static NESTED_OFFSET: AtomicU64 = AtomicU64::new(0);
/// The machine's time at the last exit.
static LEFT: AtomicU64 = AtomicU64::new(0);

/// Whether the guest's time is to be its own.
static WANTED: AtomicBool = AtomicBool::new(false);

/// The guest begins, with the machine's time, and if `own` with its own from [`begin`] on.
pub fn start(own: bool) {
    take_over(tsc());
    OWN.store(0, Ordering::Relaxed);
    WANTED.store(own, Ordering::Relaxed);
}

/// Counting begins, and with it the guest's own time. Before, the hypervisor takes little, and the clocks by which a kernel
/// measures the others are in step.
pub fn begin() {
    if WANTED.swap(false, Ordering::Relaxed) {
        take_over(tsc());
        OWN.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Whether the guest's time is its own.
pub fn is_own() -> bool {
    OWN.load(Ordering::Relaxed) != 0
}

/// A nested guest begins whose TSC is so far ahead of the guest's, or it is over, with 0.
pub fn set_nested_offset(offset: u64) {
    NESTED_OFFSET.store(offset, Ordering::Relaxed);
}

/// The guest's time.
pub fn now() -> u64 {
    if is_own() { NOW.load(Ordering::Relaxed) } else { tsc() }
}

/// The guest has left at `left`, the machine's time, and ran for so long.
pub fn leave(ticks: u64, left: u64) {
    pass(ticks);
    LEFT.store(left, Ordering::Relaxed);
}

/// The machine's time when the guest left.
pub fn left() -> u64 {
    LEFT.load(Ordering::Relaxed)
}

/// The guest continues at this time, with the machine's: other processors of it had their turn.
pub fn take_over(now: u64) {
    NOW.store(now, Ordering::Relaxed);
    LEFT.store(tsc(), Ordering::Relaxed);
}

/// Time passes for the guest.
pub fn pass(ticks: u64) {
    NOW.store(NOW.load(Ordering::Relaxed).wrapping_add(ticks), Ordering::Relaxed);
}

/// What passed was not the guest's.
pub fn take_back(ticks: u64) {
    pass(ticks.wrapping_neg());
}

/// How far the machine's clock is ahead of the guest's.
pub fn ahead() -> u64 {
    if is_own() { tsc().wrapping_sub(NOW.load(Ordering::Relaxed)) } else { 0 }
}
