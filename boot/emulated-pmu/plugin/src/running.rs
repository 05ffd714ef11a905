//! The vCPUs, and which of them is in its guest.

use crate::qemu::Names;
use crate::registers::Handles;
use crate::state::{MAX_VCPUS, state};
use crate::vcpu::Vcpu;
use core::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The vCPUs, once QEMU has made them: they stay. Apart from the rest, because the quick callbacks use nothing else.
static VCPUS: [AtomicPtr<Vcpu>; MAX_VCPUS] = [const { AtomicPtr::new(null_mut()) }; MAX_VCPUS];

/// The one that is in its guest: one is at a time, and code outside the hypervisors is translated and executed by it
/// alone. QEMU's callbacks cannot tell: see [`crate::cells`].
static RUNNING: AtomicPtr<Vcpu> = AtomicPtr::new(null_mut());

/// A vCPU is in its guest.
static IN_GUEST: AtomicBool = AtomicBool::new(false);

/// The vCPU that is in its guest, for a callback of code that was translated there. To be asked once in each callback.
#[inline]
pub(crate) fn running() -> Option<&'static mut Vcpu> {
    let vcpu = RUNNING.load(Ordering::Relaxed);
    // SAFETY: with icount, QEMU runs all vCPUs on one thread, one callback after the other, and each asks once.
    unsafe { vcpu.as_mut() }
}

/// The vCPU that calls: the code of each hypervisor is translated and executed by one vCPU alone, so that QEMU's number is
/// right. `None` if there are too many to count. To be asked once in each callback.
pub(crate) fn calling(index: u32) -> Option<&'static mut Vcpu> {
    let vcpu = VCPUS.get(index as usize)?.load(Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { vcpu.as_mut() }
}

/// The vCPU goes into its guest.
pub(crate) fn runs(vcpu: &mut Vcpu) {
    RUNNING.store(vcpu, Ordering::Relaxed);
    IN_GUEST.store(true, Ordering::Relaxed);
}

/// It is back in its hypervisor.
pub(crate) fn is_back() {
    IN_GUEST.store(false, Ordering::Relaxed);
}

/// Whether what is translated now may be counted. With several vCPUs it is only where it is known which one translates: a
/// processor that is being started executes code outside all guests and hypervisors.
pub(crate) fn is_counted() -> bool {
    IN_GUEST.load(Ordering::Relaxed) || VCPUS[1].load(Ordering::Relaxed).is_null()
}

/// A vCPU was made.
pub(crate) fn made(index: u32) {
    static HANDLES: OnceLock<Handles> = OnceLock::new();
    let Some(slot) = VCPUS.get(index as usize) else { return };
    let handles = HANDLES.get_or_init(|| Handles::of(&Names::ask()));
    if slot.load(Ordering::Relaxed).is_null() {
        let vcpu = Vcpu::new(index, *handles, state().cells().words());
        slot.store(Box::into_raw(Box::new(vcpu)), Ordering::Relaxed);
    }
}
