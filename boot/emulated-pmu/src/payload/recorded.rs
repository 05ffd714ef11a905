//! The recorded processor that the host tool has put into this program's file, if it has.

use super::debug;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::arch::asm;
use handover::Refusal;
use pmu_model::recording::slot::Slot;
use pmu_model::{MsrError, Pmu, Recording};

static SLOT: Slot = Slot::EMPTY;

/// The slot as it is in the file that was loaded, of whose content the compiler knows nothing.
fn slot() -> &'static Slot {
    let at: *const Slot;
    // SAFETY: takes the address of a static, and nothing else.
    unsafe {
        asm!("lea {}, [rip + {}]", out(reg) at, sym SLOT, options(pure, nomem, nostack, preserves_flags));
        &*at
    }
}

/// Puts into the PMU of processor number `processor` what its firmware left there.
pub fn leave(pmu: &mut Pmu, processor: u64) {
    for (msr, value) in slot().registers(processor as usize) {
        if let Err(MsrError::GeneralProtection(fault)) = pmu.leave(msr, value) {
            debug::line(format_args!("a register cannot get the value of the report: {fault}"));
        }
    }
}

/// What is recorded of this processor.
///
/// # Errors
/// It cannot be presented.
pub fn of(processor: u64) -> Result<Option<&'static Recording>, Refusal> {
    let Some(answers) = slot().answers(processor as usize) else { return Ok(None) };
    let answers = Vec::leak(answers.collect());
    let recording = Recording::of(answers).map_err(|_| Refusal::Recording)?;
    Ok(Some(Box::leak(Box::new(recording))))
}
