//! What is delivered to the guest: exceptions, NMIs, device interrupts, and the model's PMI.

use super::clock;
use super::guest::{Guest, IF};
use super::ibs;
use super::lapic::{self, Delivery};
use super::nested_paging;
use super::precise;
use super::processors;
use super::statistics;
use super::tables;
use emulated_pmu::debug_registers::SINGLE_STEP;
use emulated_pmu::vmcb::Event;
use pmu_model::{Delta, Occurrence, Outcome, Ring};

const DEBUG: u8 = 1;
const INVALID_OPCODE: u8 = 6;
const DOUBLE_FAULT: u8 = 8;
const GENERAL_PROTECTION: u8 = 13;
const PAGE_FAULT: u8 = 14;
/// NMIs in a row whose PMIs were each requested in the handler of the one before, and which follow it at once.
const NMI_STREAK: u32 = 8;

/// Chooses what to deliver at the next entry. True if something is.
pub fn choose(guest: &mut Guest) -> bool {
    if guest.event.is_some() {
        return true;
    }
    if is_nmi_due(guest) {
        guest.event = Some(Event::Nmi);
        guest.nmi_pending = false;
        guest.nmi_blocked = true;
        guest.nmi_begun = clock::now();
    } else if takes_interrupts(guest)
        && let Some(vector) = guest.waiting.take()
    {
        guest.event = Some(Event::Interrupt { vector });
    }
    guest.event.is_some()
}

/// For a guest run at full speed: it ends when the guest lets in an interrupt that waits.
pub fn leave_for_interrupts(guest: &mut Guest) {
    guest.leaves_for_interrupt = guest.event.is_none() && !guest.waiting.is_empty();
}

fn is_nmi_due(guest: &Guest) -> bool {
    guest.awaits_nmi() && guest.nmi_in() == 0 && !guest.in_shadow()
}

fn takes_interrupts(guest: &Guest) -> bool {
    let own = guest.vmcb.rflags & IF != 0 && !guest.in_shadow();
    guest.svm.delivers_interrupts(own) && !precise::holds_interrupts(guest)
}

/// Whether an interrupt would end a halt.
pub fn is_interruptible(guest: &Guest) -> bool {
    guest.svm.lets_interrupts_in(guest.vmcb.rflags & IF != 0)
}

/// Raises #GP in the guest.
pub fn general_protection(guest: &mut Guest, error: u32) {
    guest.event = Some(Event::Exception { vector: GENERAL_PROTECTION, error: Some(error) });
}

/// Raises #UD in the guest.
pub fn invalid_opcode(guest: &mut Guest) {
    guest.event = Some(Event::Exception { vector: INVALID_OPCODE, error: None });
}

/// Raises #DB in the guest, with these bits in DR6.
pub fn debug(guest: &mut Guest, bits: u64) {
    guest.debug.raise(bits);
    clear_branch_traps(guest);
    // What an STI held back waits for the handler's IRET now.
    guest.vmcb.int_state &= !1;
    guest.event = Some(Event::Exception { vector: DEBUG, error: None });
}

/// A debug exception is raised: the processor ends branch traps and branch records in DEBUGCTL (SDM vol. 3, 17.4.1), and they need no
/// stepping any more.
pub fn clear_branch_traps(guest: &mut Guest) {
    guest.counting.pmu().debug_exception();
    guest.needs = guest.counting.peek().needs();
}

/// An instruction is done, and `bits` are what a debug exception has to say of it. One that loads SS holds that back until
/// the next one is done, and is not stepped itself (SDM vol. 3, 6.8.3).
pub fn traps(guest: &mut Guest, bits: u64, loads_ss: bool) {
    let bits = bits | core::mem::take(&mut guest.held);
    guest.after_ss = loads_ss;
    if loads_ss {
        guest.held = bits & !SINGLE_STEP;
    } else if bits != 0 {
        debug(guest, bits);
    }
}

/// Debug exceptions in front of the instruction after a load of SS. A breakpoint on that instruction is suppressed on
/// Intel, and met on AMD: SDM vol. 3, 17.3.1.1; for AMD as Linux's KVM has it (commit baf67ca8e545). The rest waits until
/// that instruction is done.
pub fn debug_behind_ss(guest: &mut Guest) {
    let bits = core::mem::take(&mut guest.happened);
    let code = guest.debug.on_instruction(guest.linear_rip());
    if bits & code != 0 && !guest.suppresses_breakpoint_behind_ss() {
        debug(guest, bits);
    } else {
        traps(guest, bits & !code, true);
    }
}

/// Hands an exception that was intercepted on to the guest.
pub fn reflect(guest: &mut Guest, vector: u8) {
    let interrupted = take_delivery(guest);
    // The frame of a fault says that no breakpoint is to stop the instruction when it is tried again; ours has to.
    if interrupted.is_none() && nested_paging::is_candidate(guest) {
        guest.returns.expect(guest.linear_rip());
    }
    let has_error = matches!(vector, 8 | 10..=14 | 17 | 21);
    let error = has_error.then_some(guest.vmcb.exit_info_1 as u32);
    if vector == PAGE_FAULT {
        guest.vmcb.cr2 = guest.vmcb.exit_info_2;
    }
    guest.event = Some(Event::Exception { vector, error });
    if vector == DEBUG {
        let bits = core::mem::take(&mut guest.happened);
        debug(guest, bits);
    }
    match interrupted {
        // AMD APM vol. 2, 8.2.9: a double fault that cannot be delivered is a shutdown.
        Some(Event::Exception { vector: DOUBLE_FAULT, .. }) => super::exits::shutdown(guest),
        // AMD APM vol. 2, table 8-5: which exceptions during the delivery of another one make a double fault.
        Some(Event::Exception { vector: first, .. }) => {
            let contributory = |vector| matches!(vector, 0 | 10..=13);
            let page_fault = first == PAGE_FAULT && (contributory(vector) || vector == PAGE_FAULT);
            if page_fault || contributory(first) && contributory(vector) {
                guest.event = Some(Event::Exception { vector: DOUBLE_FAULT, error: Some(0) });
            }
        }
        // It stays pending, and comes after the exception.
        Some(Event::Nmi) => {
            guest.nmi_pending = true;
            guest.nmi_blocked = false;
        }
        Some(Event::Interrupt { vector }) => guest.waiting.insert(vector),
        Some(Event::SoftwareInterrupt { .. }) => guest.vmcb.rip -= guest.software_interrupt_bytes,
        None => {}
    }
}

/// What was being delivered when the guest left, if something was.
pub fn take_delivery(guest: &mut Guest) -> Option<Event> {
    let event = Event::decode(guest.vmcb.exit_int_info);
    guest.vmcb.exit_int_info = 0;
    event
}

/// A device interrupt has made the guest leave: takes it from the controller, to be delivered at the next entry.
pub fn take_interrupt(guest: &mut Guest) {
    tables::open(true);
    take_what_came(guest);
}

/// Takes over what came in while the hypervisor had its door open.
pub fn take_what_came(guest: &mut Guest) {
    if let Some(vector) = tables::take_vector() {
        if guest.svm.holds_interrupts() {
            guest.waiting.insert(vector);
        } else {
            guest.event = Some(Event::Interrupt { vector });
        }
        if guest.needs.occurrences.has(Occurrence::Interrupt) {
            let delta = Delta::bulk(guest.ring(), 0).with(Occurrence::Interrupt, 1);
            let outcome = guest.counting.pmu().advance(&delta);
            deliver_pmi(guest, outcome);
        }
    }
    // Among processors these are signals of the hypervisors'; those that the guest sends come another way.
    if tables::take_nmis() && !processors::are_shared() {
        lapic::take_sent_nmi();
        guest.nmi_pending = true;
    }
}

/// An NMI that the hypervisor has requested has come, or waits. The processor holds one at most, so one that the guest has
/// sent itself may be one with it.
pub fn take_own_nmi(guest: &mut Guest) {
    tables::open(false);
    if tables::take_nmis() && !processors::are_shared() {
        guest.nmi_pending |= lapic::take_sent_nmi();
    }
}

/// The stay is over for which the alarm clock was set.
pub fn stop_alarm(guest: &mut Guest) {
    if guest.alarm.is_armed() && guest.alarm.stop() {
        // It has rung, at the exit or since.
        take_own_nmi(guest);
    }
}

/// An NMI has made the guest leave.
pub fn take_nmi(guest: &mut Guest) {
    tables::open(false);
    take_what_came(guest);
}

/// The guest's NMI handler has returned. A period that is shorter than the end of the handler would leave no room for
/// anything else, so after some such NMIs in a row the next one comes only when as much time has passed as the handler took.
/// A processor leaves room as well: its PMI takes longer from the overflow than a handler from its last WRMSR to its IRET.
pub fn end_nmi(guest: &mut Guest) {
    if guest.nmi_blocked && guest.nmi_pending && guest.nmi_streak > NMI_STREAK {
        let now = clock::now();
        guest.nmi_not_before = now + now.wrapping_sub(guest.nmi_begun);
    }
    guest.nmi_blocked = false;
}

/// Delivers the PMI, and the interrupt of a sample, that the model requests, through the guest's local APIC.
pub fn deliver_pmi(guest: &mut Guest, outcome: Outcome) {
    if outcome.overflowed != 0 {
        let counters = u64::from(outcome.overflowed.count_ones());
        statistics::note(|seen| seen.overflows += counters);
        guest.needs = guest.counting.peek().needs();
    }
    if outcome.pmi && guest.counting.peek().has_wrong_vector() {
        if lapic::is_open() {
            guest.waiting.insert(0);
        }
        return;
    }
    let pmi = outcome.pmi && lapic::deliver(guest.masks_lvtpc) == Delivery::Nmi;
    let sample = outcome.ibs && ibs::deliver(guest) == Delivery::Nmi;
    if pmi || sample {
        guest.nmi_streak = if guest.nmi_blocked { guest.nmi_streak.saturating_add(1) } else { 0 };
        guest.nmi_pending = true;
    }
}

/// A gate of the guest's interrupt table.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    pub handler: u64,
    pub dpl: u8,
    /// An interrupt or trap gate that is present.
    pub is_usable: bool,
}

/// The gate of `vector`, if it can be read.
pub fn gate(guest: &Guest, vector: u8) -> Option<Gate> {
    let offset = 16 * u64::from(vector);
    if !guest.is_long_mode() || offset + 15 > u64::from(guest.vmcb.idtr.limit) {
        return None;
    }
    let at = guest.vmcb.idtr.base + offset;
    let (low, high) = (guest.read_word(at)?, guest.read_word(at + 8)?);
    let handler = low & 0xffff | low >> 32 & 0xffff_0000 | high << 32;
    // SDM vol. 3, 6.14.1: type in bits 43:40, 14 and 15 are gates of long mode; P in bit 47.
    let is_usable = low >> 41 & 7 == 7 && low >> 47 & 1 != 0;
    Some(Gate { handler, dpl: (low >> 45 & 3) as u8, is_usable })
}

/// Where `vector` is handled, if that can be told.
pub fn handler(guest: &Guest, vector: u8) -> Option<u64> {
    gate(guest, vector).map(|gate| gate.handler)
}

/// The ring of a gate's user, compared with its DPL: software must not use the gates of devices.
pub fn may_use(guest: &Guest, vector: u8) -> bool {
    gate(guest, vector).is_none_or(|gate| match guest.ring() {
        Ring::Kernel => true,
        Ring::User => guest.vmcb.cpl <= gate.dpl,
    })
}

/// Whether the gate of `vector` takes an interrupt, as far as the gate itself decides that.
pub fn is_usable(guest: &Guest, vector: u8) -> bool {
    !guest.is_long_mode() || gate(guest, vector).is_some_and(|gate| gate.is_usable)
}
