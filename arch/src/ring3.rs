//! A run in ring 3.
//!
//! [`enter`] runs code in ring 3 until it executes `int` [`LEAVE_VECTOR`], or something else ends the run through
//! [`leave`]. Code and stack must be mapped for ring 3 ([`crate::memory::space::USER`]).

use crate::descriptors::{KERNEL_CODE, KERNEL_DATA, USER_CODE, USER_DATA};
use crate::interrupts;
use crate::smp::{self, Processor};
use crate::trap::{Exception, TrapFrame, exception};
use crate::vectors::LEAVE_VECTOR;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering};

/// A processor's run in ring 3.
pub(crate) struct Ring3Run {
    /// Stack pointer to come back with; 0 outside a run.
    stack: AtomicU64,
    /// Exception that ended the run.
    gave_up: AtomicU64,
}

impl Ring3Run {
    /// Outside of one.
    pub(crate) const fn none() -> Self {
        Self { stack: AtomicU64::new(0), gave_up: AtomicU64::new(NOTHING) }
    }
}

/// Runs the code at `rip` in ring 3 with `rsp` as its stack pointer, interrupts as in `rflags`, `argument` in R9, and
/// the other registers undefined. Returns when it leaves; RAX is what it had there.
///
/// # Safety
/// The interrupt table must be loaded; `rip` and `rsp` mapped for ring 3; whatever the code writes to must be memory
/// that nothing else relies on.
pub unsafe fn enter(rip: u64, rsp: u64, rflags: u64, argument: u64) -> u64 {
    interrupts::set_handler(LEAVE_VECTOR, Some(leave));
    let run = &smp::this().ring3;
    // SAFETY: the caller's promise.
    let value = unsafe { switch(rip, rsp, rflags, run.stack.as_ptr(), 0, argument) };
    // Outside a run there is no stack to come back to.
    run.stack.store(0, Ordering::Relaxed);
    value
}

/// No exception ended the run.
const NOTHING: u64 = u64::MAX;

/// As [`enter`], for code that may raise #UD, #GP or #PF.
///
/// # Errors
/// The exception that ended the run.
///
/// # Safety
/// As for [`enter`]; ring 0 must raise none of the three meanwhile, and one processor at a time may be in here.
pub unsafe fn try_enter(rip: u64, rsp: u64, rflags: u64, argument: u64) -> Result<u64, Exception> {
    let vectors = [exception::INVALID_OPCODE, exception::GENERAL_PROTECTION, exception::PAGE_FAULT];
    let gave_up = &smp::this().ring3.gave_up;
    gave_up.store(NOTHING, Ordering::Relaxed);
    for vector in vectors {
        interrupts::set_handler(vector.0, Some(give_up));
    }
    // SAFETY: the caller's promise.
    let value = unsafe { enter(rip, rsp, rflags, argument) };
    for vector in vectors {
        interrupts::set_handler(vector.0, None);
    }
    match gave_up.load(Ordering::Relaxed) {
        NOTHING => Ok(value),
        vector => Err(Exception(vector as u8)),
    }
}

fn give_up(frame: &mut TrapFrame) {
    Processor::of_frame(frame).ring3.gave_up.store(frame.vector, Ordering::Relaxed);
    leave(frame);
}

/// Ends the run: the interrupted code of ring 3 is given up, and [`enter`] returns. Outside a run it is an interrupt of
/// nobody's, and nothing is done.
pub fn leave(frame: &mut TrapFrame) {
    let processor = Processor::of_frame(frame);
    let stack = processor.ring3.stack.load(Ordering::Relaxed);
    if stack == 0 {
        return;
    }
    frame.rip = come_back as *const () as u64;
    frame.cs = u64::from(KERNEL_CODE.0);
    frame.ss = u64::from(KERNEL_DATA.0);
    frame.rsp = stack;
    frame.rflags = 2;
}

#[unsafe(naked)]
unsafe extern "sysv64" fn switch(
    rip: u64,
    rsp: u64,
    rflags: u64,
    return_stack: *mut u64,
    _: u64,
    argument: u64,
) -> u64 {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rcx], rsp",
        // What IRETQ takes: SS, RSP, RFLAGS, CS, RIP.
        "push {ss}",
        "push rsi",
        "push rdx",
        "push {cs}",
        "push rdi",
        "iretq",
        ss = const USER_DATA.0,
        cs = const USER_CODE.0,
    )
}

/// Where [`leave`] continues, on the stack that `switch` left.
#[unsafe(naked)]
extern "sysv64" fn come_back() {
    naked_asm!("pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx", "ret",)
}
