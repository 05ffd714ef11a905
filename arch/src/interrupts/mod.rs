//! Interrupts and exceptions.
//!
//! Every vector has a stub (`stubs`) that puts the register file into a [`TrapFrame`] and calls
//! `dispatch`. There, in this order: a vector that somebody took ([`set_handler`]) runs its handler; an instruction that is allowed to fault ([`mod@fixup`]) continues at
//! its recovery address; an interrupt that nothing at the interrupted address can have raised is noted ([`stray`]); a fault inside called foreign code ([`crate::call`]) ends that call, one inside a task ([`crate::task`]) that task; everything else is a failure of the firmware and goes to the crash handler.

pub mod deferring;
pub mod fixup;
mod idt;
mod self_test;
pub mod stray;
mod stubs;

pub(crate) use fixup::fixup;
pub(crate) use idt::gates;
pub(crate) use idt::set_task_entry;
pub use idt::{load, reset_entry, set_entry};
pub use self_test::{enable_apic, self_test_count};

use crate::smp::{self, Processor};
use crate::trap::{TrapFrame, exception};
use crate::vectors::FIRST_DEVICE_VECTOR;
use crate::{apic, call, machine_check};
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, Ordering};

/// What to do when the firmware itself fails. It reports and does not return.
pub type CrashHandler = fn(&TrapFrame) -> !;

static CRASH_HANDLER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what is called for an exception that nobody expected.
pub fn set_crash_handler(handler: CrashHandler) {
    CRASH_HANDLER.store(handler as *mut (), Ordering::Release);
}

/// Continues elsewhere after an exception that nothing else explains, if it is its own; else it changes nothing.
pub(crate) type Recovery = fn(&mut TrapFrame) -> bool;

static RECOVERY: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what is asked, after the running call, whether an exception is its own: of tasks ([`crate::task`]).
pub(crate) fn set_recovery(recovery: Recovery) {
    RECOVERY.store(recovery as *mut (), Ordering::Release);
}

/// Whether the running call, or a task, ends here.
fn recover(frame: &mut TrapFrame) -> bool {
    if call::recover(frame) {
        return true;
    }
    let recovery = RECOVERY.load(Ordering::Acquire);
    if recovery.is_null() {
        return false;
    }
    // SAFETY: the only value ever stored, other than null, is a `Recovery` from `set_recovery`.
    let recovery: Recovery = unsafe { core::mem::transmute(recovery) };
    recovery(frame)
}

/// Handler of one vector. It may change the frame, and with it the registers at the return; it ends the interrupt
/// at the APIC itself. It runs on an interrupt stack with interrupts off, and must not allocate or wait for locks
/// that the interrupted code may hold.
pub type Handler = fn(&mut TrapFrame);

static HANDLERS: [AtomicPtr<()>; 256] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 256];

/// Gives `vector` to `handler`, or back to the default with `None`.
pub fn set_handler(vector: u8, handler: Option<Handler>) {
    let pointer = handler.map_or(core::ptr::null_mut(), |handler| handler as *mut ());
    HANDLERS[usize::from(vector)].store(pointer, Ordering::Release);
}

/// How often this processor took each vector since boot. One with an entry of its own ([`set_entry`]) is not counted, but for
/// those of tasks.
pub fn taken(to: &mut [u64; 256]) {
    let own = &smp::this().taken;
    // SAFETY: reads one array of 256 words, which this processor's handlers alone count up in, and writes another. In
    // assembly, since an interrupt may come in between. The direction flag is clear (System V ABI 3.2.1).
    unsafe {
        asm!(
            "rep movsq",
            inout("rsi") own.as_ptr() => _, inout("rdi") to.as_mut_ptr() => _, inout("rcx") own.len() => _,
            options(nostack, preserves_flags),
        );
    }
}

/// How often this processor took any of them: one more with each interrupt that is counted there.
pub fn taken_in_all() -> u64 {
    smp::this().taken_in_all.load(Ordering::Relaxed)
}

/// How often all processors together took `vector`.
pub fn taken_by_all(vector: u8) -> u64 {
    let each = smp::in_use().map(|one| one.taken[usize::from(vector)].load(Ordering::Relaxed));
    each.fold(0, u64::wrapping_add)
}

/// Called by every stub with the register file of the interrupted code.
extern "sysv64" fn dispatch(frame: &mut TrapFrame) {
    let vector = frame.vector as usize & 0xff;
    // See the stubs.
    let no_error_code = frame.error_code == NO_ERROR_CODE;
    if no_error_code {
        frame.error_code = 0;
    }
    Processor::of_frame(frame).count(frame.vector);
    let handler = HANDLERS[vector].load(Ordering::Acquire);
    if !handler.is_null() {
        // SAFETY: the only values ever stored, other than null, are `Handler`s from `set_handler`.
        let handler: Handler = unsafe { core::mem::transmute(handler) };
        return handler(frame);
    }
    let is_call = vector == SYSTEM_CALL && !apic::is_in_service(SYSTEM_CALL as u8);
    if is_call && recover(frame) {
        return;
    }
    if frame.vector >= u64::from(FIRST_DEVICE_VECTOR) {
        // Nobody's, or spurious. A spurious interrupt sets no in-service bit and gets no EOI (SDM vol. 3, 10.9).
        stray::note(frame, false);
        return;
    }
    without_handler(frame, no_error_code);
}

/// By this one compiled code asks Linux: who continues as if it had been answered measures something else.
const SYSTEM_CALL: usize = 0x80;

/// What a stub pushes in place of an error code that should have come.
const NO_ERROR_CODE: u64 = u64::MAX;

/// An exception that no handler was set for, or whose handler does not know it.
pub(crate) fn unexpected(frame: &mut TrapFrame) {
    without_handler(frame, false);
}

fn without_handler(frame: &mut TrapFrame, no_error_code: bool) {
    // Whatever code it interrupted, that cannot be relied on to go on.
    let is_broken =
        frame.exception() == exception::MACHINE_CHECK && machine_check::is_in_progress();
    let recovers = |frame: &mut TrapFrame| {
        stray::note(frame, no_error_code) || fixup::recover(frame) || recover(frame)
    };
    if !is_broken && recovers(frame) {
        return;
    }
    let handler = CRASH_HANDLER.load(Ordering::Acquire);
    if handler.is_null() {
        crate::power::stop();
    }
    // SAFETY: the only value ever stored, other than null, is a `CrashHandler` from `set_crash_handler`.
    let handler: CrashHandler = unsafe { core::mem::transmute(handler) };
    handler(frame)
}
