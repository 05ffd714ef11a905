//! The debug registers: breakpoints on instructions (SDM vol. 3, 17.2; AMD APM vol. 2, 13.1).

use crate::interrupts::{self, TrapFrame, exception};
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, Ordering};

/// DR6 without anything: bits 4 to 11 and 16 to 31 read as 1 (SDM vol. 3, figure 17-1).
const IDLE: u64 = 0xffff_0ff0;
/// DR7 without breakpoints: bit 10 reads as 1.
const OFF: u64 = 1 << 10;
/// RFLAGS.RF: the instruction runs without its breakpoint once (SDM vol. 3, 17.3.1.1).
pub const RESUME_FLAG: u64 = 1 << 16;

/// Gets the frame of a debug exception, and DR6. Returns whether the exception was its own; then the task continues, at the
/// instruction of the breakpoint. It runs with interrupts off.
pub type Handler = fn(&mut TrapFrame, u64) -> bool;

static HANDLER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets DR0 to DR3 and DR7, and hands debug exceptions to `handler`; those that it does not take are handled as ever.
///
/// # Safety
/// Ring 0, interrupt table loaded. No breakpoint may be on an instruction of the kernel's.
pub unsafe fn set_breakpoints([a, b, c, d]: [u64; 4], dr7: u64, handler: Handler) {
    HANDLER.store(handler as *mut (), Ordering::Relaxed);
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
    interrupts::set_handler(exception::DEBUG.0, None);
}

/// DR6 to idle: the processor sets bits and never clears one.
pub(crate) fn clear_status() {
    // SAFETY: DR6 only reports.
    unsafe { asm!("mov dr6, {}", in(reg) IDLE, options(nomem, nostack, preserves_flags)) };
}

fn on_debug(frame: &mut TrapFrame) {
    let dr6: u64;
    // SAFETY: as above.
    unsafe { asm!("mov {}, dr6", out(reg) dr6, options(nomem, nostack, preserves_flags)) };
    clear_status();
    // SAFETY: the only values ever stored, other than null, are `Handler`s, and this function is set after them.
    let handler: Handler = unsafe { core::mem::transmute(HANDLER.load(Ordering::Relaxed)) };
    if handler(frame, dr6) {
        frame.rflags |= RESUME_FLAG;
    } else {
        interrupts::unexpected(frame);
    }
}
