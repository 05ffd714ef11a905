//! How far the guest can run before something happens.

use super::Pmu;
use super::gate::Which;
use crate::{Ring, RingMask};

impl Pmu {
    /// Instructions until the earliest overflow of any counter that follows instructions alone, if
    /// all of them run in the rings of the mask: after exactly so many [`Pmu::advance`] reports the
    /// overflow, after one fewer it does not. `None`: no such counter runs there.
    ///
    /// With both rings in the mask this is the smaller of the two figures; no mix of rings
    /// overflows earlier. Counters of single occurrences are not in it: they have to be stepped,
    /// see [`crate::Needs`]. Stalls are not in it either, as they are not known beforehand.
    #[must_use]
    pub fn until_overflow(&self, rings: RingMask) -> Option<u64> {
        [Ring::User, Ring::Kernel]
            .into_iter()
            .filter(|ring| rings.contains(*ring))
            .filter_map(|ring| self.until_overflow_in(ring))
            .min()
    }

    pub(super) fn until_overflow_in(&self, ring: Ring) -> Option<u64> {
        self.each().filter_map(|which| self.until(which, ring)).min()
    }

    /// The same for counters whose overflow requests an interrupt.
    pub(super) fn until_pmi_in(&self, ring: Ring) -> Option<u64> {
        self.each()
            .filter(|which| self.gate(*which).interrupt)
            .filter_map(|which| self.until(which, ring))
            .min()
    }

    fn until(&self, which: Which, ring: Ring) -> Option<u64> {
        if !self.gate(which).rings.contains(ring) {
            return None;
        }
        let (selection, threshold) = self.event(which);
        if self.is_armed(which) && !selection.has_occurrences() {
            // The instruction that a record is of has to be seen.
            return Some(1);
        }
        let counter = self.counter(which);
        let left = (1u64 << self.bits(which)) - counter.value;
        self.context().instructions_until(counter, selection, threshold, ring, left)
    }
}
