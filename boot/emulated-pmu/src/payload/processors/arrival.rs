//! A processor that the guest has started comes into its copy of the hypervisor, which makes a guest of it.

use super::{OWN, change, init, shared};
use crate::payload::guest::Guest;
use crate::payload::icount::Calibration;
use crate::payload::{clock, launch, svm, tables};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicBool, Ordering};
use handover::Startup;

/// It has been here before.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// This copy is ready for its processor.
pub fn wait() {
    let own = OWN.load(Ordering::Relaxed) as usize;
    change(own, |processor| processor.arrival = arrive as *const () as u64);
}

/// Tells the others what the first copy has found out.
pub fn publish(calibration: &Calibration) {
    let shared = super::SHARED.load(Ordering::Relaxed);
    if shared.is_null() {
        return;
    }
    // SAFETY: the loader's structure; the others are not started yet.
    unsafe {
        (*shared).overhead = calibration.overhead;
        (*shared).before_entry = calibration.before_entry;
        (*shared).calibrated = 1;
    }
}

/// In 64-bit mode, all memory mapped one to one; without a stack.
#[unsafe(naked)]
extern "C" fn arrive() -> ! {
    naked_asm!(
        "lea rsp, [rip + {stack} + {stack_bytes}]",
        "xor ebp, ebp",
        "call {go}",
        "ud2",
        stack = sym tables::STACK,
        stack_bytes = const tables::STACK_BYTES,
        go = sym go,
    )
}

/// On the hypervisor's stack. What the copy did before, if INIT came upon it, is over.
extern "sysv64" fn go() -> ! {
    // SAFETY: the copy was prepared before it said where it waits; this processor alone comes here.
    let (guest, enabled) = unsafe {
        launch::load_tables();
        (launch::guest(), svm::enable())
    };
    assert!(enabled.is_ok(), "SVM is on the first processor, and not here");
    // SAFETY: SVM is on.
    unsafe { core::arch::asm!("clgi", options(nostack)) };
    let vector = shared().and_then(|shared| {
        let own = shared.processors.get(OWN.load(Ordering::Relaxed) as usize)?;
        // SAFETY: a field of the structure, which another processor may have written to.
        Some(unsafe { (&raw const own.vector).read_volatile() })
    });
    if !KNOWN.swap(true, Ordering::Relaxed) {
        first(guest);
    }
    init::reset(guest, vector.unwrap_or(0) as u8);
    super::super::run::run(guest)
}

/// The machine is the same for all, and its accounting as well.
fn first(guest: &mut Guest) {
    let shift = guest.calibration.shift;
    match shared() {
        Some(&Startup { calibrated: 1, overhead, before_entry, .. }) => {
            guest.calibration = Calibration { shift, overhead, before_entry };
        }
        _ => launch::give_up(guest),
    }
    launch::find_plugin(guest);
    launch::greet(guest);
    clock::start(false);
}
