//! How far the guest can run before something happens.

use super::Pmu;
use super::gate::Which;
use crate::uarch::ports::MOST_UOPS;
use crate::{Ring, RingMask, Selection};
use core::num::NonZeroU64;

/// How far a counter of occurrences is from an overflow at which something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What it counts; of cycles, what their waits come from.
    pub selection: Selection,
    /// How many more make it overflow. 0: the next one makes a PEBS record, and its instruction must be seen.
    pub left: u64,
    /// So many of them an instruction has at most, where what a block of instructions has is not known beforehand: those of
    /// ports, and cycles that waits are a part of.
    pub most: Option<NonZeroU64>,
}

/// More micro-operations than any instruction has: those of its class, and for each access those of a load, an address and data. No
/// instruction has 64 accesses: ENTER has 33 (SDM vol. 2, "ENTER"), a gather 16.
const MOST: NonZeroU64 = NonZeroU64::new((1 + 3 * 64) * MOST_UOPS as u64).unwrap();

impl Pmu {
    /// The counters of occurrences that run in one of the rings and whose overflow requests an interrupt or a PEBS record:
    /// a delta of several instructions must not go beyond `left` of the selection's occurrences, and may reach it with its
    /// last instruction alone. Overflows of others can be noticed whenever somebody looks.
    pub fn limits(&self, rings: RingMask) -> impl Iterator<Item = Limit> + '_ {
        self.each_on().filter_map(move |which| {
            let gate = self.gate(which);
            let (selection, _) = self.event(which);
            let runs = [Ring::User, Ring::Kernel]
                .into_iter()
                .any(|ring| rings.contains(ring) && gate.rings.contains(ring));
            let matters = gate.interrupt || self.writes_records(which);
            // Those of a qualified counter are no sum of occurrences: it is stepped.
            let qualified = self.qualifiers.selects(which.bit());
            let waits = self.timing.waits_of(selection);
            let counted = selection.or(waits).only_occurrences();
            if !runs || !matters || qualified || !counted.has_occurrences() {
                return None;
            }
            let left = (1u64 << self.bits(which)) - self.counter(which).value;
            let left = if self.is_armed(which) { 0 } else { left };
            let most = if waits.has_occurrences() {
                // No clock ticks faster than the core's.
                Some(self.timing.most_cycles())
            } else {
                selection.has_ports().then_some(MOST)
            };
            Some(Limit { selection: counted, left, most })
        })
    }

    /// Instructions until the earliest overflow of any counter that follows instructions alone, if
    /// all of them run in the rings of the mask: after exactly so many [`Pmu::advance`] reports the
    /// overflow, after one fewer it does not. `None`: no such counter runs there.
    ///
    /// With both rings in the mask this is the smaller of the two figures; no mix of rings
    /// overflows earlier. Counters of single occurrences are not in it: they must be stepped,
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
        self.each_on().filter_map(|which| self.until(which, ring)).min()
    }

    /// The same for counters of amounts alone.
    pub(super) fn until_bulk_overflow_in(&self, ring: Ring) -> Option<u64> {
        self.each_on()
            .filter(|which| !self.event(*which).0.has_occurrences())
            .filter_map(|which| self.until(which, ring))
            .min()
    }

    /// The same for counters whose overflow requests an interrupt.
    pub(super) fn until_pmi_in(&self, ring: Ring) -> Option<u64> {
        self.each_on()
            .filter(|which| self.gate(*which).interrupt)
            .filter_map(|which| self.until(which, ring))
            .min()
    }

    fn until(&self, which: Which, ring: Ring) -> Option<u64> {
        if !self.gate(which).rings.contains(ring) || self.qualifiers.selects(which.bit()) {
            return None;
        }
        let (selection, threshold) = self.event(which);
        if self.is_armed(which) && !selection.has_occurrences() {
            // The instruction that a record is of must be seen.
            return Some(1);
        }
        let counter = self.counter(which);
        let left = (1u64 << self.bits(which)) - counter.value;
        self.context().instructions_until(counter, selection, threshold, ring, left)
    }
}
