//! Instructions in the window, where parameters give one.

use crate::running::running;
use core::ffi::c_void;
use pmu_model::uarch::window::Step;

/// An instruction begins, which this is to the window.
pub extern "C" fn begun(_: u32, step: *mut c_void) {
    let Some(vcpu) = running() else { return };
    if vcpu.traces {
        vcpu.core.begin(Step::of_word(step as u64), &mut vcpu.sums);
    }
}
