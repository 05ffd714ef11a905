//! Running foreign machine code one instruction at a time, by the trap flag.
//!
//! With RFLAGS.TF set, each instruction is followed by a #DB with DR6.BS (SDM vol. 3, 17.3.1.4; AMD APM vol. 2,
//! 13.1.4). The handler here hands the registers to an observer, which says how to continue. What the flag does not stop
//! at, or shows to the code, is for the observer to know: `step::Kind` lists it.

use crate::call::{self, Function, Trap};
use crate::debug::clear_status;
use crate::interrupts;
use crate::trap::{TrapFrame, exception};
use alloc::boxed::Box;
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, Ordering};
use x86_64::registers::debug::{Dr6, Dr6Flags};

/// RFLAGS.TF.
pub const TRAP_FLAG: u64 = 1 << 8;

/// How to continue after a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// With one more instruction.
    Step,
    /// To the end, without further steps.
    Free,
    /// At the function's exit, at once.
    Leave,
}

/// Sees the registers between two instructions, and may change them. Called inside the exception handler, on its stack.
pub type Observer<'a> = &'a mut dyn FnMut(&mut TrapFrame) -> Next;

/// The observer of the running call; null when none runs.
static OBSERVER: AtomicPtr<Observer<'static>> = AtomicPtr::new(core::ptr::null_mut());

/// Runs `function`, and calls `observer` before its first instruction and after each one.
///
/// # Errors
/// The exception that ended it. A #DB that is not a single step is one.
///
/// # Safety
/// As for [`Function::run`].
pub unsafe fn run(function: &Function, mut observer: Observer) -> Result<(), Box<Trap>> {
    let place = (&raw mut observer).cast::<Observer<'static>>();
    OBSERVER.store(place, Ordering::Relaxed);
    interrupts::set_handler(exception::DEBUG.0, Some(on_debug));
    clear_status();
    let ended = function.guarded(|entry| {
        // SAFETY: the caller promises that `entry` is such a function. The first trap comes after the CALL, as the
        // flag takes effect one instruction after POPFQ; the flag is off when the call is back.
        unsafe {
            asm!(
                "pushfq",
                "or qword ptr [rsp], {flag}",
                "popfq",
                "call {entry}",
                entry = in(reg) entry,
                flag = const TRAP_FLAG,
                clobber_abi("sysv64"),
            );
        }
    });
    interrupts::set_handler(exception::DEBUG.0, None);
    OBSERVER.store(core::ptr::null_mut(), Ordering::Relaxed);
    ended
}

fn on_debug(frame: &mut TrapFrame) {
    let stepped = Dr6::read().contains(Dr6Flags::STEP);
    clear_status();
    let observer = OBSERVER.load(Ordering::Relaxed);
    if !stepped || observer.is_null() {
        if !call::recover(frame) {
            panic!("a debug exception at {:#x} that nobody asked for", frame.rip);
        }
        return;
    }
    // SAFETY: `run` stored the address of its own variable, and waits for the code that this interrupts.
    let observer = unsafe { &mut *observer };
    match observer(frame) {
        Next::Step => frame.rflags |= TRAP_FLAG,
        Next::Free => frame.rflags &= !TRAP_FLAG,
        Next::Leave => call::leave(frame),
    }
}
