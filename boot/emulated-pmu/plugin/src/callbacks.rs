//! What translated code calls.

use crate::bound::Bound;
use crate::cells::{ALARM, SPENT};
use crate::resolve::{self, Where};
use crate::running::running;
use crate::state::state;
use core::ffi::c_void;
use iced_x86::Register;

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
    if opened.restarts_at(offset) {
        resolve::next(vcpu, opened, Where::Offset(offset));
    }
}

/// A block starts at an offset, and an element of a repeated string instruction began before.
pub extern "C" fn unfinished(_: u32, offset: *mut c_void) {
    let Some(vcpu) = running() else { return };
    let Some(opened) = vcpu.opened() else { return };
    let count = vcpu.register(Register::RCX);
    resolve::string(vcpu, opened, Where::Offset(offset as usize as u16), count);
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
    resolve::next(vcpu, opened, Where::Offset(offset as usize as u16));
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
