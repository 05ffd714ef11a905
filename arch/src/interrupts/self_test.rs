//! Whether the local APIC delivers interrupts.

use super::set_handler;
use crate::apic::{self, Apic, ApicError};
use crate::smp::{self, Processor};
use crate::trap::TrapFrame;
use crate::vectors::SELF_TEST_VECTOR;
use core::sync::atomic::Ordering;

/// Some microseconds on hardware, and no more than a blink under emulation.
const WAIT_LOOPS: u32 = 100_000;

/// Enables the local APIC, in x2APIC mode if there is that and it does not stay in xAPIC mode by `keeps_xapic`. Masks everything that
/// it and the two 8259 could send, and proves with a self-sent interrupt that delivery works.
///
/// # Errors
/// There is none, or it delivers nothing.
///
/// # Safety
/// Ring 0, interrupt table loaded, physical memory mapped, interrupts off.
pub unsafe fn enable_apic(keeps_xapic: bool) -> Result<Apic, ApicError> {
    // SAFETY: the caller's promise.
    let mut apic = unsafe { Apic::enable(keeps_xapic) }?;
    set_handler(SELF_TEST_VECTOR, Some(on_self_test));
    let before = self_test_count();
    apic.send_to_self(SELF_TEST_VECTOR);
    x86_64::instructions::interrupts::enable();
    let arrived = (0..WAIT_LOOPS).any(|_| {
        core::hint::spin_loop();
        self_test_count() > before
    });
    x86_64::instructions::interrupts::disable();
    if arrived { Ok(apic) } else { Err(ApicError::SelfTest) }
}

/// How often this processor took [`SELF_TEST_VECTOR`] since boot.
pub fn self_test_count() -> u64 {
    smp::this().self_tests.load(Ordering::Relaxed)
}

/// Counts, and ends.
fn on_self_test(frame: &mut TrapFrame) {
    Processor::of_frame(frame).self_tests.fetch_add(1, Ordering::Relaxed);
    apic::end_of_interrupt();
}
