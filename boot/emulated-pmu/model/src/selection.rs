//! The meaning of an event: a sum of what can be counted.

use crate::occurrence::{Bulk, Occurrence};

/// A sum of amounts and occurrences: the meaning of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    bulk: u16,
    occurrences: u64,
}

impl Selection {
    /// The event that never happens here. A counter set to it stays where it is.
    pub const NOTHING: Self = Self { bulk: 0, occurrences: 0 };

    /// Every retired branch. An instruction has one at most.
    pub(crate) const BRANCHES: Self = {
        use Occurrence::*;
        Self::of(&[
            JccNotTaken,
            JccTakenForward,
            JccTakenBackward,
            RelativeCall,
            IndirectCall,
            Return,
            RelativeJump,
            IndirectJump,
            FarBranch,
            MissedJccNotTaken,
            MissedJccTakenForward,
            MissedJccTakenBackward,
            MissedRelativeCall,
            MissedIndirectCall,
            MissedReturn,
            MissedRelativeJump,
            MissedIndirectJump,
        ])
    };

    /// An amount.
    #[must_use]
    pub const fn bulk(bulk: Bulk) -> Self {
        Self { bulk: 1 << bulk as u8, occurrences: 0 }
    }

    /// A sum of occurrences.
    #[must_use]
    pub const fn of(list: &[Occurrence]) -> Self {
        let mut occurrences = 0;
        let mut index = 0;
        while index < list.len() {
            occurrences |= 1 << list[index] as u8;
            index += 1;
        }
        Self { bulk: 0, occurrences }
    }

    /// What either of two selections counts.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self { bulk: self.bulk | other.bulk, occurrences: self.occurrences | other.occurrences }
    }

    /// Micro-operations on whatever port.
    const PORTS: Self = Self::of(&Occurrence::PORTS);

    /// What it means to a machine with a port map, or to one without.
    pub(crate) const fn on_ports(self, has_ports: bool) -> Self {
        const UOPS: Selection = Selection::bulk(Bulk::Uops);
        const CYCLES: Selection = Selection::bulk(Bulk::Cycles);
        let (mut all, uops) = (self.without(UOPS), self.has_bulk(Bulk::Uops));
        if !has_ports {
            all = all.without(Self::PORTS);
            return if uops { all.or(Self::bulk(Bulk::Instructions)) } else { all };
        }
        if uops {
            all = all.or(Self::PORTS);
        }
        if all.has_bulk(Bulk::Cycles) {
            all = all.without(CYCLES).or(Self::of(&[Occurrence::PortCycle]));
        }
        all
    }

    /// Whether it has micro-operations by port, or cycles of the ports.
    #[must_use]
    pub const fn has_ports(self) -> bool {
        let all = Self::PORTS.or(Self::of(&[Occurrence::PortCycle]));
        self.occurrences & all.occurrences != 0
    }

    /// Whether the amount is in the sum.
    #[must_use]
    pub const fn has_bulk(self, bulk: Bulk) -> bool {
        self.bulk & 1 << bulk as u8 != 0
    }

    /// Whether the occurrence is in the sum.
    #[must_use]
    pub const fn has(self, occurrence: Occurrence) -> bool {
        self.occurrences & 1 << occurrence as u8 != 0
    }

    /// Whether single occurrences must be seen for this event.
    #[must_use]
    pub const fn has_occurrences(self) -> bool {
        self.occurrences != 0
    }

    /// Whether it has nothing but branches.
    #[must_use]
    pub fn is_branches(self) -> bool {
        self.without(Self::BRANCHES) == Self::NOTHING
    }

    /// Whether it has branches of some kind that went where they were predicted to go and not the mispredicted ones, or
    /// the other way round.
    pub(crate) fn tells_misses(self) -> bool {
        use Occurrence::*;
        [
            (JccNotTaken, MissedJccNotTaken),
            (JccTakenForward, MissedJccTakenForward),
            (JccTakenBackward, MissedJccTakenBackward),
            (RelativeCall, MissedRelativeCall),
            (IndirectCall, MissedIndirectCall),
            (Return, MissedReturn),
            (RelativeJump, MissedRelativeJump),
            (IndirectJump, MissedIndirectJump),
        ]
        .into_iter()
        // These two are never mispredicted.
        .filter(|(hit, _)| !matches!(hit, RelativeCall | RelativeJump))
        .any(|(hit, missed)| self.has(hit) != self.has(missed))
    }

    /// Whether it has some of the conditional jumps, by where they went, and not the others.
    pub(crate) fn tells_taken(self) -> bool {
        use Occurrence::*;
        let any = |hit, missed| self.has(hit) || self.has(missed);
        let not_taken = any(JccNotTaken, MissedJccNotTaken);
        not_taken != any(JccTakenForward, MissedJccTakenForward)
            || not_taken != any(JccTakenBackward, MissedJccTakenBackward)
    }

    /// Whether any amount is in the sum.
    #[must_use]
    pub const fn has_any_bulk(self) -> bool {
        self.bulk != 0
    }

    /// The occurrences as bits, in the order of [`Occurrence::ALL`].
    #[must_use]
    pub const fn occurrence_bits(self) -> u64 {
        self.occurrences
    }

    /// Whether core cycles are in the sum, in whatever form.
    pub(crate) const fn follows_cycles(self) -> bool {
        self.bulk & !(1 << Bulk::Instructions as u8) != 0
    }

    /// Whether a clock is in the sum, which ticks at a rate of its own.
    pub(crate) const fn has_clock(self) -> bool {
        self.has_bulk(Bulk::ReferenceClock) || self.has_bulk(Bulk::BusClock)
    }

    /// The occurrences in the sum.
    pub fn occurrences(self) -> impl Iterator<Item = Occurrence> {
        Occurrence::ALL.into_iter().filter(move |occurrence| self.has(*occurrence))
    }

    /// The occurrences without those in `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self { bulk: self.bulk & !other.bulk, occurrences: self.occurrences & !other.occurrences }
    }

    /// The occurrences alone.
    pub(crate) const fn only_occurrences(self) -> Self {
        Self { bulk: 0, occurrences: self.occurrences }
    }

    /// What both count.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self { bulk: self.bulk & other.bulk, occurrences: self.occurrences & other.occurrences }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_counts_nothing_twice() {
        let loads = Selection::of(&[Occurrence::Load, Occurrence::LoadStore]);
        let stores = Selection::of(&[Occurrence::Store, Occurrence::LoadStore]);
        let both = loads.or(stores);
        assert_eq!(both.occurrences().count(), 3);
        assert!(both.without(loads).has(Occurrence::Store));
        assert!(!both.without(loads).has(Occurrence::LoadStore));
    }
}
