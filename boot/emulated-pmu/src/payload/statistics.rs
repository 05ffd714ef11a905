//! What [`emulated_pmu::statistics`] counts, and the line of it on the debug console. Nothing is counted unless it is wanted.

use super::debug;
use super::plugin::own_start;
use emulated_pmu::statistics::Statistics;

static mut SEEN: Statistics = Statistics::new(0);

/// Counts, if that is wanted.
pub fn note(count: impl FnOnce(&mut Statistics)) {
    let seen = &raw mut SEEN;
    // SAFETY: this processor's hypervisor alone uses it, and no note takes another one.
    let seen = unsafe { &mut *seen };
    if seen.are_wanted() {
        count(seen);
    }
}

/// A line at each `each`th exit. 0: they are not wanted. Says where the hypervisor's code is, for who looks from outside where QEMU's
/// time goes (`-perfmap`).
pub fn want(each: u64) {
    if each != 0 {
        debug::line(format_args!("statistics: each {each} exits, from {:#x} on", own_start()));
    }
    // SAFETY: as above.
    unsafe { (&raw mut SEEN).write(Statistics::new(each)) };
}

/// The guest has left: see [`Statistics::exit`].
pub fn exit(code: u64, own: u64, guests: u64) {
    note(|seen| {
        if seen.exit(code, own, guests) {
            debug::line(format_args!("statistics: {seen}"));
        }
    });
}
