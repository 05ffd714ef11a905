//! HLT and MWAIT while something is counted: time spent halted is not.

use crate::payload::guest::Guest;
use crate::payload::port::tsc;
use crate::payload::{clock, events, processors, retire, tables};

/// The instruction, of so many bytes, retires, and then the processor waits here for what the guest waits for.
pub fn handle(guest: &mut Guest, bytes: u64) {
    retire::plain(guest, None);
    guest.skip(bytes);
    // From here on the machine's time is the guest's; its timer has run while the hypervisor came here.
    guest.timer.step(guest.calibration.shift);
    let mut begun = guest.timer.release().unwrap_or_else(tsc);
    let interruptible = events::is_interruptible(guest);
    let nmi_comes = |guest: &Guest| guest.awaits_nmi();
    let waits = |guest: &Guest| interruptible && !guest.waiting.is_empty();
    while guest.event.is_none() && !nmi_comes(guest) && !waits(guest) {
        if processors::are_shared() {
            processors::turns::halt(guest, interruptible);
        } else {
            tables::wait(interruptible);
            let now = tsc();
            clock::pass(now.wrapping_sub(begun));
            begun = now;
        }
        events::take_what_came(guest);
    }
    if guest.event.is_none() && nmi_comes(guest) && !waits(guest) {
        // It was to leave room for code that runs; now there is none until it comes.
        clock::pass(guest.nmi_not_before.saturating_sub(clock::now()));
        guest.nmi_not_before = 0;
    }
}

/// MWAIT. It waits like HLT, as QEMU's does, where nothing else writes to the monitored memory; another processor may.
pub fn wait_for_write(guest: &mut Guest) {
    const BYTES: u64 = 3;
    if processors::are_shared() {
        retire::plain(guest, None);
        guest.skip(BYTES);
        let interruptible = events::is_interruptible(guest);
        processors::turns::doze(guest, interruptible);
        events::take_what_came(guest);
    } else {
        handle(guest, BYTES);
    }
}
