//! What translated code calls.

use crate::cells::{ALARM, SPENT};
use crate::limit::Bound;
use crate::settle::{self, Where};
use crate::state::{state, vcpu};
use core::ffi::c_void;

/// A block starts where what is open falls through to.
pub extern "C" fn fell_through(index: u32, _: *mut c_void) {
    let Some(vcpu) = vcpu(index) else { return };
    let Some(opened) = vcpu.opened() else { return };
    settle::next(vcpu, opened, Where::FellThrough);
}

/// A block starts at an offset while something is open.
pub extern "C" fn settle(index: u32, offset: *mut c_void) {
    let Some(vcpu) = vcpu(index) else { return };
    let Some(opened) = vcpu.opened() else { return };
    settle::next(vcpu, opened, Where::Offset(offset as usize as u16));
}

/// A block starts at whose end something will be open, for which its address is needed.
pub extern "C" fn note_start(index: u32, _: *mut c_void) {
    let Some(vcpu) = vcpu(index) else { return };
    vcpu.block_start = vcpu.rip();
}

/// A block starts that may bring a counter to its end.
pub extern "C" fn spent(index: u32, bound: *mut c_void) {
    let Some(vcpu) = vcpu(index) else { return };
    // SAFETY: it was asked for with such a bound, which stays.
    let bound = unsafe { &*bound.cast::<Bound>() };
    vcpu.collect();
    let slack = vcpu.limits.slack(&vcpu.sums, bound, state().most());
    if slack.is_none() {
        state().stop(index);
    }
    // Who has been told to leave needs no second telling.
    *vcpu.word(SPENT) = slack.map_or(0, |slack| ALARM - slack.min(ALARM));
}
