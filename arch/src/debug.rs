//! The debug registers: breakpoints on instructions and on data (SDM vol. 3, 17.2; AMD APM vol. 2, 13.1).

use crate::interrupts;
use crate::smp::{self, Processor};
use crate::trap::{TrapFrame, exception};
use core::arch::asm;
use core::sync::atomic::Ordering;

/// DR6 without anything: bits 4 to 11 and 16 to 31 read as 1 (SDM vol. 3, figure 17-1).
const IDLE: u64 = 0xffff_0ff0;
/// DR7 without breakpoints: bit 10 reads as 1.
const OFF: u64 = 1 << 10;
/// RFLAGS.RF: the instruction runs without its breakpoint once (SDM vol. 3, 17.3.1.1).
pub const RESUME_FLAG: u64 = 1 << 16;

/// Gets the frame of a debug exception, and DR6. Returns whether the exception was its own, and if so whether it comes before an
/// instruction, which is to be executed without its breakpoint then. It runs with interrupts off.
pub type Handler = fn(&mut TrapFrame, u64) -> Option<bool>;

/// Sets DR0 to DR3 and DR7, and hands debug exceptions to `handler`; those that it does not take are handled as ever.
///
/// # Safety
/// Ring 0, interrupt table loaded. What the kernel itself executes or touches may have no breakpoint, unless `handler` and
/// what leads to it do not.
pub unsafe fn set_breakpoints([a, b, c, d]: [u64; 4], dr7: u64, handler: Handler) {
    smp::this().debug_handler.store(handler as *mut (), Ordering::Relaxed);
    // For all processors, and for good: those without a handler of their own have it handled as ever.
    interrupts::set_handler(exception::DEBUG.0, Some(on_debug));
    clear_status();
    // SAFETY: the caller's promise; the handler is in place.
    unsafe {
        asm!(
            "mov dr7, {off}", "mov dr0, {a}", "mov dr1, {b}", "mov dr2, {c}", "mov dr3, {d}", "mov dr7, {dr7}",
            off = in(reg) OFF, a = in(reg) a, b = in(reg) b, c = in(reg) c, d = in(reg) d, dr7 = in(reg) dr7,
            options(nostack, preserves_flags),
        );
    }
}

/// Switches the breakpoints off.
pub fn clear_breakpoints() {
    // SAFETY: breakpoints are the firmware's own.
    unsafe { asm!("mov dr7, {}", in(reg) OFF, options(nostack, preserves_flags)) };
    smp::this().debug_handler.store(core::ptr::null_mut(), Ordering::Relaxed);
}

/// DR6 to idle: the processor sets bits and never clears one.
pub(crate) fn clear_status() {
    // SAFETY: DR6 only reports.
    unsafe { asm!("mov dr6, {}", in(reg) IDLE, options(nomem, nostack, preserves_flags)) };
}

fn on_debug(frame: &mut TrapFrame) {
    let handler = Processor::of_frame(frame).debug_handler.load(Ordering::Relaxed);
    if handler.is_null() {
        interrupts::unexpected(frame);
        return;
    }
    let dr6: u64;
    // SAFETY: as above.
    unsafe { asm!("mov {}, dr6", out(reg) dr6, options(nomem, nostack, preserves_flags)) };
    clear_status();
    // SAFETY: the only values ever stored, other than null, are `Handler`s.
    let handler: Handler = unsafe { core::mem::transmute(handler) };
    match handler(frame, dr6) {
        Some(true) => frame.rflags |= RESUME_FLAG,
        Some(false) => {}
        None => interrupts::unexpected(frame),
    }
}

/// Lets what is put off start at a breakpoint and stop at the next one, `times` times, with `nops` NOPs in between: one or two.
/// Breakpoints are off afterwards.
///
/// # Safety
/// Ring 0 with interrupts off, interrupt table loaded; this processor has a [`crate::pmu::Deferred`]
/// installed ([`interrupts::deferring::install`]), which keeps back what starts the counters.
pub unsafe fn windows(nops: u64, times: u64) {
    let begin = nop_code as *const () as u64;
    // Both enabled, on instructions.
    let dr7 = OFF | 0b101;
    // SAFETY: the caller's promise; the handler and what leads to it do not come by the NOPs. The code changes RDI and flags.
    unsafe {
        set_breakpoints([begin, begin + nops, 0, 0], dr7, on_window);
        nop_code(times);
    }
    clear_breakpoints();
}

/// NOPs of one byte each, `times` times: the first breakpoint is on the first one, and the other on the second or the third.
#[unsafe(naked)]
unsafe extern "sysv64" fn nop_code(times: u64) {
    core::arch::naked_asm!("2:", "nop", "nop", "nop", "dec rdi", "jnz 2b", "ret")
}

fn on_window(frame: &mut TrapFrame, dr6: u64) -> Option<bool> {
    let deferred = Processor::of_frame(frame).deferred.load(Ordering::Relaxed);
    // SAFETY: it stays while it is installed, and what this interrupts does not use it now.
    let deferred = unsafe { deferred.as_mut()? };
    match dr6 & 3 {
        1 => deferred.let_go(),
        2 => deferred.keep(),
        _ => return None,
    }
    Some(true)
}
