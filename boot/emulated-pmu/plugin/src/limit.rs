//! When the guest has to leave, because a counter is about to overflow.

use crate::bound::{BRANCHES, Bound, Others, factor};
use crate::tally::Sums;
use plugin_channel::Limit;

/// The counters of a vCPU that can overflow.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    list: Vec<Limit>,
}

impl Limits {
    /// As the hypervisor gave them.
    pub fn new(given: &[Limit]) -> Self {
        Self { list: given.iter().copied().filter(|limit| limit.selection != 0).collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether one of them has more than branches.
    pub fn has_others(&self) -> bool {
        self.list.iter().any(|limit| limit.selection & !BRANCHES != 0)
    }

    /// Most occurrences of a block and of the one before it, if none has more than `most`: with fewer left, a counter may
    /// overflow before the guest can be made to leave.
    pub fn lead(&self, most: Others) -> u64 {
        let leads = self.list.iter().map(|limit| 2 * most.within(limit.selection));
        leads.max().unwrap_or(0).max(2 * u64::from(most.accesses))
    }

    /// What can be spent from the start of a block with this bound on, the block not included, without looking again;
    /// `None` if the guest has to leave after the block. `most`: the same of any block, of anything but branches.
    pub fn slack(&self, sums: &Sums, block: &Bound, most: Others) -> Option<u64> {
        let mut slack = u64::MAX;
        for &Limit { selection, left } in &self.list {
            let used = sums.of(selection) + block.within(selection) + most.within(selection);
            let left = left.checked_sub(used).filter(|left| *left > 0)?;
            // What is spent is accesses or lines.
            slack = slack.min(left / factor(selection));
        }
        Some(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::bits;
    use crate::tally::Tally;
    use pmu_model::Occurrence;

    fn selection(list: &[Occurrence]) -> u64 {
        bits(list)
    }

    const fn accesses(accesses: u32) -> Others {
        Others { accesses, lines: 0 }
    }

    #[test]
    fn a_branch_that_reaches_the_limit_is_the_last() {
        let forward = selection(&[Occurrence::JccTakenForward]);
        let limits = Limits::new(&[Limit { selection: forward, left: 3 }, Limit::default()]);
        let branch = Bound { branches: forward, others: accesses(9) };
        let mut sums = Sums::NONE;
        let jump = Tally::one(Occurrence::JccTakenForward as usize);
        assert_eq!(limits.slack(&sums, &branch, accesses(100)), Some(2));
        sums.add(&jump, 1);
        assert_eq!(limits.slack(&sums, &branch, accesses(100)), Some(1));
        sums.add(&jump, 1);
        assert_eq!(limits.slack(&sums, &branch, accesses(100)), None, "this one is the third");
        let other = Bound { branches: 0, others: accesses(9) };
        assert_eq!(limits.slack(&sums, &other, accesses(100)), Some(1));
    }

    #[test]
    fn others_are_left_before_they_can_reach_the_limit() {
        let loads = selection(&[Occurrence::Load, Occurrence::Locked]);
        let limits = Limits::new(&[Limit { selection: loads, left: 100 }]);
        assert!(limits.has_others() && !limits.is_empty());
        assert_eq!(limits.lead(accesses(10)), 40);
        let block = Bound { branches: 0, others: accesses(5) };
        // 5 of the block and 10 of the next, of two groups each: 70 are left.
        assert_eq!(limits.slack(&Sums::NONE, &block, accesses(10)), Some(35));
        let mut sums = Sums::NONE;
        sums.add(&Tally::one(Occurrence::Load as usize), 69);
        assert_eq!(limits.slack(&sums, &block, accesses(10)), Some(0));
        sums.add(&Tally::one(Occurrence::Load as usize), 1);
        assert_eq!(limits.slack(&sums, &block, accesses(10)), None);
    }

    #[test]
    fn lines_count_where_lines_are_counted() {
        let fills = selection(&[Occurrence::L1Fill]);
        let limits = Limits::new(&[Limit { selection: fills, left: 50 }]);
        let others = Others { accesses: 3, lines: 6 };
        assert_eq!(limits.lead(others), 12);
        let slack = limits.slack(&Sums::NONE, &Bound { branches: 0, others }, others);
        assert_eq!(slack, Some(50 - 12));
    }
}
