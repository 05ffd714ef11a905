//! A processor that the guest has started comes into its copy of the hypervisor, which makes a guest of it.

use super::{index, init, mtrrs, note_destination, shared, turns};
use crate::payload::guest::Guest;
use crate::payload::icount::Calibration;
use crate::payload::{launch, run, svm, tables};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicBool, Ordering};

/// It has been here before.
static KNOWN: AtomicBool = AtomicBool::new(false);

/// This copy is ready for its processor.
pub fn wait() {
    if let Some(shared) = shared() {
        let arrival = arrive as *const () as u64;
        shared.processors[index()].arrival.store(arrival, Ordering::Relaxed);
    }
}

/// Tells the others what the first copy has found out.
pub fn publish(calibration: &Calibration) {
    if let Some(shared) = shared() {
        shared.overhead.store(calibration.overhead, Ordering::Relaxed);
        shared.before_entry.store(calibration.before_entry, Ordering::Relaxed);
        shared.calibrated.store(1, Ordering::Relaxed);
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
    shared().into_iter().for_each(mtrrs::take_over);
    if !KNOWN.swap(true, Ordering::Relaxed) {
        first(guest);
    }
    let vector =
        shared().map_or(0, |shared| shared.processors[index()].vector.load(Ordering::Relaxed));
    init::reset(guest, vector as u8);
    note_destination();
    turns::arrive();
    run::run(guest)
}

/// The machine is the same for all, and its accounting as well.
fn first(guest: &mut Guest) {
    let shift = guest.calibration.shift;
    match shared().filter(|shared| shared.calibrated.load(Ordering::Relaxed) != 0) {
        Some(shared) => {
            let overhead = shared.overhead.load(Ordering::Relaxed);
            let before_entry = shared.before_entry.load(Ordering::Relaxed);
            guest.calibration = Calibration { shift, overhead, before_entry };
        }
        None => launch::give_up(guest),
    }
    launch::find_plugin(guest);
    launch::greet(guest);
    launch::start_clock();
}
