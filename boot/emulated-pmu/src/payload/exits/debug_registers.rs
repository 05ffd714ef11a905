//! DR7: the guest's breakpoints are set by the hypervisor at each entry, so its own write must not set them as well.

use crate::payload::breakpoint::DR7_ONE;
use crate::payload::guest::Guest;
use crate::payload::{events, retire};

/// MOV to DR7.
pub(super) fn write_control(guest: &mut Guest) {
    guest.code.unwatch_all();
    let Some(instruction) = guest.instruction() else { return };
    let value = guest.register(instruction.op1_register());
    if value >> 32 != 0 {
        // Reserved bits: SDM vol. 3, 17.2.6.
        return events::general_protection(guest, 0);
    }
    retire::plain(guest, None);
    guest.vmcb.dr7 = value | DR7_ONE;
    guest.skip(instruction.len() as u64);
}
