//! Host and guest, as AMD's counters tell them apart: PERF_CTL\[41:40\], HostOnly and GuestOnly (AMD APM volume 2, 13.2.1).

use crate::selector::Selector;

/// GuestOnly.
pub(crate) const GUEST_ONLY: u64 = 1 << 40;
/// HostOnly.
pub(crate) const HOST_ONLY: u64 = 1 << 41;

/// Who executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// EFER.SVME is clear: there are no guests, and a counter that is for either counts nothing.
    #[default]
    Alone,
    /// A hypervisor.
    Host,
    /// Its guest, between VMRUN and the exit.
    Guest,
}

impl World {
    /// Whether a counter with this event select counts now. Neither bit, or both, are everybody's; with both, as with one,
    /// EFER.SVME must be set (processor programming references, "HostGuestOnly").
    #[must_use]
    pub const fn counts(self, selector: Selector) -> bool {
        match (self, selector.0 & HOST_ONLY != 0, selector.0 & GUEST_ONLY != 0) {
            (_, false, false) => true,
            (Self::Alone, _, _) => false,
            (_, true, true) => true,
            (Self::Host, host, _) => host,
            (Self::Guest, _, guest) => guest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_for_the_host_for_the_guest_or_for_both() {
        let counts = |world: World| {
            [0, GUEST_ONLY, HOST_ONLY, HOST_ONLY | GUEST_ONLY]
                .map(|bits| world.counts(Selector(bits)))
        };
        assert_eq!(counts(World::Alone), [true, false, false, false]);
        assert_eq!(counts(World::Host), [true, false, true, true]);
        assert_eq!(counts(World::Guest), [true, true, false, true]);
    }
}
