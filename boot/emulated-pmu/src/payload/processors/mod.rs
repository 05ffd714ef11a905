//! The other processors, where an operating system starts them by itself: see [`handover::startup`].
//!
//! Each processor's copy of the hypervisor keeps the local APIC's registers from being written to unseen ([`guard`]). What is
//! written there goes on as it is ([`super::exits`]), but for start-up interrupts: they take the receiver to a page
//! of ours ([`trampoline`]), from which it comes into its own copy ([`arrival`]), in the state that the guest expects
//! ([`init`]). INIT is left to the processor: it takes it out of the guest, and the next start-up interrupt brings it back.

pub mod arrival;
pub mod guard;
mod init;
pub mod trampoline;

use super::hpet;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use emulated_pmu::ipi::Command;
use handover::startup::{Processor, Startup};

/// What the copies share; null if the guest has one processor, or its kernel brings the others in itself.
static SHARED: AtomicPtr<Startup> = AtomicPtr::new(null_mut());
/// This copy's processor.
static OWN: AtomicU64 = AtomicU64::new(0);

/// Takes over what the loader says.
pub fn set(shared: *mut Startup, own: u64) {
    SHARED.store(shared, Ordering::Relaxed);
    OWN.store(own, Ordering::Relaxed);
}

/// Opens the way in, through the page tables at `cr3`, for those that the guest starts.
///
/// # Safety
/// By the first copy, before its guest runs.
pub unsafe fn let_in(cr3: u64) {
    if let Some(shared) = shared() {
        // SAFETY: the caller's promise; the page is the loader's for this.
        unsafe { trampoline::install(shared, cr3) };
    }
}

/// Whether there are others that the guest starts by itself.
pub fn are_shared() -> bool {
    !SHARED.load(Ordering::Relaxed).is_null()
}

fn shared() -> Option<&'static Startup> {
    // SAFETY: the loader's structure stays for good. What changes in it is written through `processor` and
    // `publish`, while no reference to those fields exists: each use of this one reads a field and ends.
    unsafe { SHARED.load(Ordering::Relaxed).as_ref() }
}

/// The id of this processor's local APIC, as the loader says.
pub fn own_apic_id() -> Option<u64> {
    let own = OWN.load(Ordering::Relaxed) as usize;
    shared().and_then(|shared| shared.processors.get(own)).map(|processor| processor.apic_id)
}

/// Changes what is said of processor number `index`.
fn change(index: usize, change: impl FnOnce(&mut Processor)) {
    let shared = SHARED.load(Ordering::Relaxed);
    if shared.is_null() || index >= handover::MAX_PROCESSORS {
        return;
    }
    // SAFETY: as above; within the array. Two processors change it at a time only if the guest sends one and the same
    // receiver two start-up interrupts, and then it is undefined which of the two is the last.
    change(unsafe { &mut (*shared).processors[index] });
}

/// A command of the guest's that is a start-up interrupt: notes the vector with its receivers. Returns the vector to send
/// in its place.
pub fn redirect(command: Command, vector: u8) -> Option<u8> {
    for index in receivers(command)? {
        change(index, |processor| processor.vector = vector.into());
    }
    shared().map(Startup::own_vector)
}

/// A command of the guest's that is an INIT: nobody waits for the receivers' alarm clocks any longer, and QEMU would let
/// their interrupts wake a processor that waits to be started.
pub fn silence(command: Command) {
    for index in receivers(command).into_iter().flatten() {
        hpet::silence(index as u64);
    }
}

/// The numbers of those that a command reaches.
fn receivers(command: Command) -> Option<impl Iterator<Item = usize>> {
    let (shared, own) = (shared()?, own_apic_id()?);
    let all = shared.processors.iter().take(shared.count as usize).enumerate();
    Some(all.filter(move |(_, one)| command.reaches(one.apic_id, own)).map(|(index, _)| index))
}
