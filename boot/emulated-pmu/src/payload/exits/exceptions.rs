//! Exceptions that are intercepted so that the count is right, and INT n.

use crate::payload::guest::Guest;
use crate::payload::{events, nested_guest, retire, step, system_call};
use emulated_pmu::step::{Kind, kind};
use emulated_pmu::vmcb::Event;

const DEBUG: u8 = 1;
const INVALID_OPCODE: u8 = 6;
const GENERAL_PROTECTION: u8 = 13;

/// Hands the exception on, unless it was raised only so that a system call or the return from one is seen.
pub fn handle(guest: &mut Guest, vector: u8) {
    if matches!(vector, INVALID_OPCODE | GENERAL_PROTECTION)
        && !guest.is_in_delivery()
        && let Some(instruction) = guest.instruction()
        && matches!(kind(&instruction), Kind::SystemCall | Kind::SystemReturn(_))
    {
        let ring = guest.ring();
        if system_call::emulate(guest, &instruction) {
            return step::system_call(guest, ring, &instruction);
        }
    }
    if !nested_guest::leave::takes_exception(guest, vector) {
        events::reflect(guest, vector);
    }
}

/// INT n, INT3 and INTO: retired, and then delivered, if the gate lets the guest's ring in.
pub fn software_interrupt(guest: &mut Guest) {
    let Some(instruction) = guest.instruction() else { return };
    let Kind::SoftwareInterrupt(vector) = kind(&instruction) else { return };
    let bytes = instruction.len() as u64;
    if nested_guest::leave::takes_software_interrupt(guest, vector, bytes) {
        return;
    }
    if !events::may_use(guest, vector) {
        // The index of the gate, and that it is one of the interrupt table: SDM vol. 3, 6.13.
        return events::general_protection(guest, u32::from(vector) << 3 | 0b10);
    }
    let ring = guest.ring();
    // A gate that does not take it raises #NP or #GP when it is to be delivered, and the instruction does not retire.
    let retires = events::is_usable(guest, vector);
    guest.software_interrupt_bytes = bytes;
    guest.event = Some(Event::SoftwareInterrupt { vector });
    guest.skip(bytes);
    if retires {
        retire::software_interrupt(guest, ring, &instruction, vector);
    }
}

/// INT1: retired, and then a debug exception of which DR6 says nothing, through a gate that no ring is kept from.
pub fn debug_instruction(guest: &mut Guest) {
    let Some(instruction) = guest.instruction() else { return };
    let ring = guest.ring();
    events::clear_branch_traps(guest);
    guest.event = Some(Event::Exception { vector: DEBUG, error: None });
    guest.skip(instruction.len() as u64);
    retire::software_interrupt(guest, ring, &instruction, DEBUG);
}
