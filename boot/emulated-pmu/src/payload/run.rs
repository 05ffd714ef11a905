//! The loop.

use super::exits;
use super::guest::Guest;
use super::lapic::{self, Delivery};
use super::switch::enter;
use super::vmcb::{Event, Intercepts, exit};
use pmu_model::{Delta, Outcome, Ring, RingMask};

/// How the guest is being run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Nothing is being counted.
    Free,
    /// Counted by the TSC, at full speed.
    Bulk,
}

/// Intercepted at all times: what makes the PMU, and what a guest that is told there is no SVM must not use.
const ALWAYS: Intercepts = Intercepts::CPUID
    .union(Intercepts::MSR)
    .union(Intercepts::RDPMC)
    .union(Intercepts::NMI)
    .union(Intercepts::SHUTDOWN)
    .union(Intercepts::VMRUN)
    .union(Intercepts::VMMCALL)
    .union(Intercepts::VMLOAD)
    .union(Intercepts::VMSAVE)
    .union(Intercepts::STGI)
    .union(Intercepts::CLGI)
    .union(Intercepts::SKINIT);

const INVALID_OPCODE: u8 = 6;
const GENERAL_PROTECTION: u8 = 13;

/// Runs the guest for good.
pub fn run(guest: &mut Guest) -> ! {
    loop {
        prepare(guest);
        let ring = guest.ring();
        // SAFETY: SVM on, GIF 0, the block prepared.
        let ticks = unsafe { enter(&raw mut guest.registers, &raw mut *guest.vmcb) };
        guest.vmcb.event = 0;
        account(guest, ring, ticks);
        exits::handle(guest);
    }
}

/// Decides how to run on, and what to inject.
fn prepare(guest: &mut Guest) {
    let needs = guest.pmu.needs();
    let counting = needs.bulk != 0 || needs.stepped != 0 || needs.free_running;
    guest.mode = if counting { Mode::Bulk } else { Mode::Free };
    let mut intercepts = ALWAYS;
    let mut exceptions = 0;
    if counting {
        // So that its translator's habit of counting it can be undone.
        exceptions |= 1 << INVALID_OPCODE;
        intercepts |= Intercepts::HLT;
    }
    if guest.nmi_blocked {
        intercepts |= Intercepts::IRET;
    }
    inject(guest);
    guest.vmcb.set_intercepts(intercepts);
    guest.vmcb.exceptions = exceptions;
    if let (true, Some(left)) = (counting, guest.pmu.until_overflow(RingMask::BOTH)) {
        guest.alarm.arm(left << guest.calibration.shift);
    } else if guest.alarm.is_armed() {
        guest.alarm.disarm();
    }
}

/// Puts a pending NMI into the guest, if it can take one.
fn inject(guest: &mut Guest) {
    let shadow = guest.vmcb.int_state & 1 != 0;
    if guest.vmcb.event == 0 && guest.nmi_pending && !guest.nmi_blocked && !shadow {
        guest.vmcb.event = Event::Nmi.encode();
        guest.nmi_pending = false;
        guest.nmi_blocked = true;
    }
}

/// Tells the PMU how many instructions retired in the stay that just ended.
fn account(guest: &mut Guest, ring: Ring, ticks: u64) {
    if guest.mode == Mode::Free {
        return;
    }
    let counted = (ticks >> guest.calibration.shift).saturating_sub(guest.calibration.overhead);
    let foreseen = u64::from(guest.vmcb.exit_code == exit::EXCEPTION + u64::from(INVALID_OPCODE));
    let retired = counted.saturating_sub(foreseen);
    if retired > 0 {
        let outcome = guest.pmu.advance(&Delta::bulk(ring, retired));
        interrupt(guest, outcome);
    }
}

/// Counts one instruction that was emulated.
pub fn count_one(guest: &mut Guest) {
    if guest.mode == Mode::Free {
        return;
    }
    let outcome = guest.pmu.advance(&Delta::step(guest.ring()));
    interrupt(guest, outcome);
}

/// Delivers the PMI that the model asks for.
fn interrupt(guest: &mut Guest, outcome: Outcome) {
    if outcome.pmi && lapic::deliver(guest.masks_lvtpc) == Delivery::Nmi {
        guest.nmi_pending = true;
    }
}

/// Raises #GP(0) in the guest.
pub fn general_protection(guest: &mut Guest) {
    guest.vmcb.event = Event::Exception { vector: GENERAL_PROTECTION, error: Some(0) }.encode();
}

/// Raises #UD in the guest.
pub fn invalid_opcode(guest: &mut Guest) {
    guest.vmcb.event = Event::Exception { vector: INVALID_OPCODE, error: None }.encode();
}
