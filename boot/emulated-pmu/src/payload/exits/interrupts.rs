//! Interrupts on their way to the guest, and its waiting for them.

use crate::payload::guest::Guest;
use crate::payload::run::{Mode, count_one};
use crate::payload::switch::enter;
use crate::payload::tables;
use crate::payload::vmcb::{Intercepts, exit};

/// An NMI: our alarm, or one for the guest.
pub(super) fn nmi(guest: &mut Guest) {
    let ours = guest.alarm.has_rung();
    if tables::take_nmi() && !ours {
        guest.nmi_pending = true;
    }
    if ours {
        guest.alarm.disarm();
    }
}

/// The guest's IRET from an NMI's handler is about to run: another NMI may follow it.
pub(super) fn end_of_nmi(guest: &mut Guest) {
    guest.nmi_blocked = false;
}

/// HLT. It retires, and then nothing does until an interrupt comes: the time in between is not counted.
pub(super) fn halt(guest: &mut Guest) {
    count_one(guest);
    // Without the counter running on: the guest executes its HLT itself, and whatever wakes it brings us back.
    let wake = Intercepts::INTR | Intercepts::NMI | Intercepts::VMRUN | Intercepts::SHUTDOWN;
    guest.vmcb.set_intercepts(wake);
    guest.vmcb.exceptions = 0;
    let alarm_was_armed = guest.alarm.is_armed();
    if alarm_was_armed {
        guest.alarm.disarm();
    }
    // SAFETY: SVM on, GIF 0, the block prepared.
    unsafe { enter(&raw mut guest.registers, &raw mut *guest.vmcb) };
    match guest.vmcb.exit_code {
        exit::NMI => nmi(guest),
        exit::INTR => {}
        code => panic!("exit {code:#x} of a halted guest"),
    }
    debug_assert!(guest.mode != Mode::Free);
}
