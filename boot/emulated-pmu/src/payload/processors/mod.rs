//! The other processors, which the guest starts by itself: see [`handover::startup`].
//!
//! Each processor's copy of the hypervisor keeps the local APIC's registers from being written to unseen ([`guard`]). What is
//! written there continues as it is ([`super::exits`]), but for start-up interrupts: they take the receiver to a page
//! of ours ([`trampoline`]), from which it comes into its own copy ([`arrival`]), in the state that the guest expects
//! ([`init`], [`mtrrs`]). INIT is left to the processor: it takes it out of the guest, and the next start-up interrupt brings it back.
//! The guests run one at a time ([`turns`]).

pub mod arrival;
pub mod guard;
mod init;
mod mtrrs;
pub mod trampoline;
pub mod turns;

use super::lapic;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use emulated_pmu::ipi::{Command, Receiver};
use handover::startup::{Processor, Startup};

/// What the copies share; null if the guest has one processor.
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
        note_destination();
        turns::begin();
    }
}

/// Whether there are others that the guest starts by itself.
pub fn are_shared() -> bool {
    !SHARED.load(Ordering::Relaxed).is_null()
}

/// How far the power management timer is ahead of the guest's time: `ahead`, unless another processor has said it before.
pub fn agree_on_timer(ahead: u64) -> u64 {
    const SAID: u64 = 1 << 63;
    let Some(shared) = shared() else { return ahead };
    let said = &shared.timer_ahead;
    let (new, order) = (ahead | SAID, Ordering::SeqCst);
    match said.compare_exchange(0, new, order, order) {
        Ok(_) => ahead,
        Err(earlier) => earlier & !SAID,
    }
}

/// How many there are.
pub fn count() -> usize {
    shared().map_or(1, |shared| shared.all().len())
}

fn shared() -> Option<&'static Startup> {
    // SAFETY: the loader's structure stays for good, and what changes in it is atomic.
    unsafe { SHARED.load(Ordering::Relaxed).as_ref() }
}

/// This processor's number.
fn index() -> usize {
    OWN.load(Ordering::Relaxed) as usize
}

/// The id of this processor's local APIC, as the loader says.
pub fn own_apic_id() -> Option<u64> {
    shared().and_then(|shared| shared.processors.get(index())).map(|processor| processor.apic_id)
}

/// As commands name it.
fn receiver(one: &Processor) -> Receiver {
    let destination = one.destination.load(Ordering::SeqCst);
    let (logical, format) = (destination as u32, (destination >> 32) as u32);
    Receiver { id: one.apic_id, logical, format }
}

fn set_destination(number: usize, [logical, format]: [u32; 2]) {
    if let Some(one) = shared().and_then(|shared| shared.processors.get(number)) {
        let destination = u64::from(format) << 32 | u64::from(logical);
        one.destination.store(destination, Ordering::SeqCst);
    }
}

/// The guest may have written to the registers of logical destinations.
pub fn note_destination() {
    let Receiver { logical, format, .. } = lapic::receiver();
    set_destination(index(), [logical, format]);
}

/// The numbers of those that a command of the guest's reaches.
fn receivers(command: Command) -> impl Iterator<Item = usize> {
    let (own, all) = (own_apic_id().unwrap_or(0), shared().map_or(&[][..], Startup::all));
    let reached = move |one: &Processor| command.reaches(receiver(one), own);
    all.iter().enumerate().filter(move |(_, one)| reached(one)).map(|(index, _)| index)
}

/// A start-up interrupt: notes the vector with its receivers, which `send` starts, given the vector to send in its place.
/// Comes back when they are there. One that no copy waits for is started as the guest means it, outside of the hypervisor.
pub fn start(command: Command, vector: u8, shift: u8, send: impl FnOnce(u8)) {
    let Some(shared) = shared().filter(|_| receivers(command).next().is_some()) else {
        return send(vector);
    };
    for other in receivers(command).filter(|other| turns::awaits_start(*other)) {
        shared.processors[other].vector.store(vector.into(), Ordering::SeqCst);
        turns::expect(other);
    }
    mtrrs::note(shared);
    send(shared.own_vector());
    turns::welcome(shift);
}

/// An INIT.
pub fn reset(command: Command) {
    for other in receivers(command).filter(|other| *other != index()) {
        turns::reset(other);
        set_destination(other, Receiver::RESET);
    }
}

/// An NMI, which is not sent: the receivers' hypervisors deliver it. Those signal each other by NMIs.
pub fn send_nmi(command: Command) {
    receivers(command).for_each(turns::send_nmi);
}

/// Anything else: others that it reaches have their turn soon.
pub fn signal(command: Command) {
    receivers(command).filter(|other| *other != index()).for_each(turns::call);
}
