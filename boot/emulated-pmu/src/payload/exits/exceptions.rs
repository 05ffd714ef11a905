//! Exceptions that are intercepted so that the count is right, and INT n.

use crate::payload::guest::Guest;
use crate::payload::vmcb::Event;
use crate::payload::{events, retire, system_call};
use emulated_pmu::step::{self, Kind};

const INVALID_OPCODE: u8 = 6;

/// Hands the exception on, unless it was raised only so that SYSCALL or SYSRET is seen.
pub fn handle(guest: &mut Guest, vector: u8) {
    if vector == INVALID_OPCODE
        && !guest.is_in_delivery()
        && let Some(instruction) = guest.instruction()
        && matches!(step::kind(&instruction), Kind::SystemCall | Kind::SystemReturn(_))
    {
        let ring = guest.ring();
        if system_call::emulate(guest, &instruction) {
            retire::instruction(guest, ring, Some(&instruction), &retire::Accesses::NONE);
            return;
        }
    }
    events::reflect(guest, vector);
}

/// INT n, INT3 and INTO: retired, and then delivered, if the gate lets the guest's ring in.
pub fn software_interrupt(guest: &mut Guest) {
    let Some(instruction) = guest.instruction() else { return };
    let Kind::SoftwareInterrupt(vector) = step::kind(&instruction) else { return };
    if !events::may_use(guest, vector) {
        // The index of the gate, and that it is one of the interrupt table: SDM vol. 3, 6.13.
        return events::general_protection(guest, u32::from(vector) << 3 | 0b10);
    }
    let ring = guest.ring();
    let bytes = instruction.len() as u64;
    guest.software_interrupt_bytes = bytes;
    guest.event = Some(Event::SoftwareInterrupt { vector });
    guest.skip(bytes);
    retire::software_interrupt(guest, ring, &instruction, vector);
}
