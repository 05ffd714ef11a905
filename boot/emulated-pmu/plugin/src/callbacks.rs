//! What translated code calls.

use crate::arrival;
use crate::bound::Bound;
use crate::cells::{ALARM, OPEN, SPENT};
use crate::facts::OFFSET;
use crate::resolve::{self, Where};
use crate::running::running;
use crate::state::state;
use core::ffi::c_void;
use iced_x86::Register;

/// Beside the offset of a block: it begins with a repeated string instruction.
pub const STRING: usize = 1 << 16;

/// A block starts where what is open falls through to.
pub extern "C" fn fell_through(_: u32, _: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let Some(opened) = vcpu.opened() else { return };
    resolve::next(vcpu, opened, Where::FellThrough);
}

/// A block starts whose first instruction may be what is open, and begin once more.
pub extern "C" fn restarted(_: u32, offset: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let offset = offset as usize as u16;
    let Some(opened) = vcpu.opened() else { return };
    if vcpu.restarts(opened, offset) {
        resolve::next(vcpu, opened, Where::Offset(offset));
    }
}

/// A block starts at an offset, and before an element of a repeated string instruction began, or something that may raise a page
/// fault.
pub extern "C" fn unfinished(_: u32, offset: *mut c_void) {
    let Some(vcpu) = running() else { return };
    if !arrival::decides(*vcpu.word(OPEN)) {
        return;
    }
    let Some(opened) = vcpu.opened() else { return };
    let start = offset as usize;
    arrival::arrived(vcpu, opened, start as u16, start & STRING != 0);
}

/// A repeated string instruction begins an element that has two loads.
pub extern "C" fn note_count(_: u32, _: *mut c_void) {
    let Some(vcpu) = running() else { return };
    vcpu.noted_count = vcpu.register(Register::RCX);
}

/// A block starts at an offset while something is open.
pub extern "C" fn resolve(_: u32, offset: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let Some(opened) = vcpu.opened() else { return };
    let offset = offset as usize as u16;
    if vcpu.fault_handler.is_some_and(|handler| handler & OFFSET == u64::from(offset))
        && arrival::faulted(vcpu, opened)
    {
        return;
    }
    resolve::next(vcpu, opened, Where::Offset(offset));
}

/// A block starts at whose end something will be open, for which its address is needed.
pub extern "C" fn note_start(_: u32, _: *mut c_void) {
    let Some(vcpu) = running() else { return };
    vcpu.block_start = vcpu.rip();
}

/// A jump to the next instruction comes: after it the guest leaves.
pub extern "C" fn undecided(_: u32, _: *mut c_void) {
    let Some(vcpu) = running() else { return };
    state().leave(vcpu.index);
}

/// A block starts that may bring a counter to its end.
pub extern "C" fn spent(_: u32, bound: *mut c_void) {
    let Some(vcpu) = running() else { return };
    // SAFETY: it was requested with such a bound, which stays.
    let bound = unsafe { &*bound.cast::<Bound>() };
    vcpu.collect();
    let slack = vcpu.limits.slack(&vcpu.sums, bound, state().most());
    if slack.is_none() {
        state().stop(vcpu.index);
    }
    // Who has been told to leave needs no second telling.
    *vcpu.word(SPENT) = slack.map_or(0, |slack| ALARM - slack.min(ALARM));
}
