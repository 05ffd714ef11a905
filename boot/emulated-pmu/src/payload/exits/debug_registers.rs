//! The guest's accesses to its debug registers.

use crate::payload::guest::Guest;
use crate::payload::{events, retire};
use emulated_pmu::debug_registers::ACCESS_DETECTED;
use emulated_pmu::vmcb::exit;
use pmu_model::Ring;

/// CR4.DE: DR4 and DR5 are no longer other names of DR6 and DR7.
const CR4_DE: u64 = 1 << 3;

/// MOV to or from a debug register.
pub(super) fn handle(guest: &mut Guest) {
    let Some(instruction) = guest.instruction() else { return };
    let number = (guest.vmcb.exit_code & 7) as usize;
    let writes = guest.vmcb.exit_code >= exit::WRITE_DR0;
    if guest.ring() == Ring::User {
        return events::general_protection(guest, 0);
    }
    if matches!(number, 4 | 5) && guest.vmcb.cr4 & CR4_DE != 0 {
        return events::invalid_opcode(guest);
    }
    if guest.debug.detects_access() {
        return events::debug(guest, ACCESS_DETECTED);
    }
    if writes {
        let value = guest.register(instruction.op1_register());
        if guest.debug.write(number, value).is_err() {
            return events::general_protection(guest, 0);
        }
        // The hypervisor's breakpoints are where the guest's leave room.
        guest.code.unwatch_all();
    } else {
        let value = guest.debug.read(number);
        guest.set_register(instruction.op0_register(), value);
    }
    retire::plain(guest, None);
    guest.skip(instruction.len() as u64);
}
