//! HLT and MWAIT while something is counted: time spent halted is not.

use crate::payload::guest::{Guest, IF};
use crate::payload::{events, retire, tables};

/// The instruction, of so many bytes, retires, and then the processor waits here for what the guest waits for. MWAIT waits
/// like HLT, as QEMU's does: nothing else writes to the monitored memory.
pub fn handle(guest: &mut Guest, bytes: u64) {
    retire::plain(guest, None);
    guest.skip(bytes);
    let interruptible = guest.vmcb.rflags & IF != 0;
    let nmi_comes = |guest: &Guest| guest.nmi_pending && !guest.nmi_blocked;
    let waits = |guest: &Guest| interruptible && !guest.waiting.is_empty();
    while guest.event.is_none() && !nmi_comes(guest) && !waits(guest) {
        tables::wait(interruptible);
        events::take_what_came(guest);
    }
}
