//! The registers that count, and whether they are to.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use program_format::Write;
use x86_64::registers::model_specific::Msr;

/// 1 until the program is about to be stopped: what comes then must not make the counters go on.
pub static RUNNING: AtomicU64 = AtomicU64::new(0);

/// Whether the program has not ended.
pub fn is_running() -> bool {
    RUNNING.load(Relaxed) != 0
}

/// Makes writes to registers.
pub fn each(writes: &[Write]) {
    for write in writes {
        // SAFETY: registers of the PMU that the host knows this model to have.
        unsafe { Msr::new(write.register as u32).write(write.value) };
    }
}

/// Reads a register of the PMU.
pub fn read(register: u32) -> u64 {
    // SAFETY: as above.
    unsafe { Msr::new(register).read() }
}
