//! What happened since the last report: the only way in which time passes for the model.

use crate::occurrence::{OCCURRENCES, Occurrence};
use crate::selection::Selection;
use crate::{Branch, Ring};

/// Instructions retired in one ring, and what was seen of them.
///
/// A caller that runs at full speed reports [`Delta::bulk`]. One that steps reports a delta for
/// each instruction, and adds what that instruction did. Halted time is not reported: it counts
/// nothing.
///
/// A delta of several instructions that carries occurrences is allowed. Thresholds (CMASK, INV,
/// EDGE) then take the occurrences as spread evenly, earlier instructions getting the odd ones, and
/// a freeze acts after the whole delta. That is exact for a threshold without EDGE over branches, of which an instruction
/// has one at most; [`crate::Needs::unspread`] names the counters for which it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Where the instructions ran.
    pub ring: Ring,
    /// How many retired. 0 is allowed, for what happens between two instructions.
    pub instructions: u64,
    occurrences: [u64; OCCURRENCES],
}

impl Delta {
    /// Instructions of which nothing else is known.
    #[must_use]
    pub const fn bulk(ring: Ring, instructions: u64) -> Self {
        Self { ring, instructions, occurrences: [0; OCCURRENCES] }
    }

    /// Instructions and what was seen of them, by the occurrence's discriminant. What is beyond the list is 0.
    #[must_use]
    pub fn counted(ring: Ring, instructions: u64, counts: &[u64]) -> Self {
        let mut delta = Self::bulk(ring, instructions);
        for (slot, count) in delta.occurrences.iter_mut().zip(counts) {
            *slot = *count;
        }
        delta
    }

    /// One instruction; what it did is still to be added.
    #[must_use]
    pub const fn step(ring: Ring) -> Self {
        Self::bulk(ring, 1)
    }

    /// The same with `count` more of an occurrence.
    #[must_use]
    pub fn with(mut self, occurrence: Occurrence, count: u64) -> Self {
        self.add(occurrence, count);
        self
    }

    /// Adds `count` of an occurrence; saturates at `u64::MAX`.
    pub fn add(&mut self, occurrence: Occurrence, count: u64) {
        let slot = &mut self.occurrences[occurrence as usize];
        *slot = slot.saturating_add(count);
    }

    /// Adds a retired branch.
    pub fn add_branch(&mut self, branch: &Branch) {
        self.add(Occurrence::of_branch(branch), 1);
    }

    /// How often an occurrence was reported.
    #[must_use]
    pub const fn count(&self, occurrence: Occurrence) -> u64 {
        self.occurrences[occurrence as usize]
    }

    /// Whether nothing but instructions is reported.
    #[must_use]
    pub fn is_bulk(&self) -> bool {
        self.occurrences.iter().all(|count| *count == 0)
    }

    /// All occurrences of a selection together. Runs for each counter at each report, so it looks
    /// only at the bits that are set.
    pub(crate) fn sum(&self, selection: Selection) -> u64 {
        let mut bits = selection.occurrence_bits();
        let mut sum = 0u64;
        while bits != 0 {
            sum = sum.saturating_add(self.occurrences[bits.trailing_zeros() as usize]);
            bits &= bits - 1;
        }
        sum
    }

    /// The first `instructions` of a bulk delta, or what is left of it.
    pub(crate) const fn part(&self, instructions: u64) -> Self {
        Self::bulk(self.ring, instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_what_a_selection_names() {
        let delta = Delta::step(Ring::User).with(Occurrence::Load, 2).with(Occurrence::Store, 1);
        let loads = Selection::of(&[Occurrence::Load]);
        assert_eq!(delta.sum(loads), 2);
        assert_eq!(delta.sum(loads.or(Selection::of(&[Occurrence::Store]))), 3);
        assert!(!delta.is_bulk() && Delta::bulk(Ring::User, 9).is_bulk());
    }

    #[test]
    fn counts_saturate() {
        let delta =
            Delta::step(Ring::User).with(Occurrence::Load, u64::MAX).with(Occurrence::Load, 1);
        assert_eq!(delta.count(Occurrence::Load), u64::MAX);
    }
}
