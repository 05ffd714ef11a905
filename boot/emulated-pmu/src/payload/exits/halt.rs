//! HLT while something is counted: time spent halted is not.

use crate::payload::guest::{Guest, IF};
use crate::payload::{events, retire, tables};

const BYTES: u64 = 1;

/// HLT retires, and then the processor waits here for what the guest waits for.
pub fn handle(guest: &mut Guest) {
    retire::plain(guest, None);
    guest.skip(BYTES);
    let interruptible = guest.vmcb.rflags & IF != 0;
    while guest.event.is_none() && !(guest.nmi_pending && !guest.nmi_blocked) {
        tables::wait(interruptible);
        events::take_what_came(guest);
    }
}
