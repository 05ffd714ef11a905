//! DR7: the guest's breakpoints are set by the hypervisor at each entry, so its own write must not set them as well.

use crate::payload::guest::Guest;
use crate::payload::{events, retire};

/// DR7 bit 10 is always 1.
const ONE: u64 = 1 << 10;

/// MOV to DR7.
pub(super) fn write_control(guest: &mut Guest) {
    guest.code.unwatch();
    let Some(instruction) = guest.instruction() else { return };
    let value = guest.register(instruction.op1_register());
    if value >> 32 != 0 {
        // Reserved bits: SDM vol. 3, 17.2.6.
        return events::general_protection(guest, 0);
    }
    retire::plain(guest, None);
    guest.vmcb.dr7 = value | ONE;
    guest.skip(instruction.len() as u64);
}
