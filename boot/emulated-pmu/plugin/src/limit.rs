//! When the guest has to leave, because a counter is about to overflow.

use crate::facts::Facts;
use crate::tally::Sums;
use plugin_channel::{Limit, Mode};
use pmu_model::uarch::LINE_BYTES;
use pmu_model::{BranchKind, Occurrence};

/// Most occurrences that a block can have.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Bound {
    /// What its branch can count as, as bits by discriminant: one of them.
    pub branches: u64,
    /// Of anything but branches, of one group of [`groups`].
    pub others: u32,
}

impl Bound {
    /// Of a block.
    pub fn of(block: &[Facts], mode: Mode) -> Self {
        let branch = block.last().and_then(|last| last.branch);
        let branches = branch.filter(|_| mode.contains(Mode::BRANCHES)).map_or(0, |branch| {
            let of = |taken, missed| {
                1 << Occurrence::of(branch.kind, taken, branch.backward, missed) as u64
            };
            let fell = if branch.kind == BranchKind::Conditional {
                of(false, false) | of(false, true)
            } else {
                0
            };
            of(true, false) | of(true, true) | fell
        });
        let others = block.iter().filter(|_| mode.contains(Mode::ACCESSES)).map(others).sum();
        Self { branches, others }
    }

    /// Whether it can have none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// No selection can have more.
    pub fn most(&self) -> u64 {
        u64::from(self.others).max(u64::from(self.branches != 0))
    }

    fn within(&self, selection: u64) -> u64 {
        u64::from(self.branches & selection != 0) + u64::from(self.others) * groups(selection)
    }
}

/// Lines that accesses of the instruction can touch, which are no fewer than its accesses and its pages.
fn others(facts: &Facts) -> u32 {
    let lines = |bytes: u32| 1 + (bytes.max(1) + LINE_BYTES as u32 - 2) / LINE_BYTES as u32;
    match facts.repeated {
        // One element of each operand.
        Some(operation) => 2 * lines(operation.element_bytes.into()),
        None => {
            let touches = facts.touches.iter();
            let own: u32 = touches.map(|it| lines(it.bytes)).sum();
            own + u32::from(facts.maintenance.is_some())
        }
    }
}

const fn bits(list: &[Occurrence]) -> u64 {
    let mut bits = 0;
    let mut index = 0;
    while index < list.len() {
        bits |= 1 << list[index] as u64;
        index += 1;
    }
    bits
}

/// Everything but branches, in groups of which an access has at most one for each of its lines.
const GROUPS: [u64; 9] = {
    use Occurrence::*;
    [
        bits(&[Load, Store, LoadStore]),
        bits(&[Locked]),
        bits(&[LoadL1Hit, LoadLlcHit, LoadLlcMiss]),
        bits(&[StoreL1Hit, StoreLlcHit, StoreLlcMiss]),
        bits(&[SplitLoad, SplitStore]),
        bits(&[L1Fill]),
        bits(&[LlcReference]),
        bits(&[LlcMiss]),
        bits(&[LoadStlbHit, StoreStlbHit, LoadWalk, StoreWalk, ClFlush]),
    ]
};

/// Branches, which a block has one of at its end.
const BRANCHES: u64 = (1 << (Occurrence::MissedIndirectJump as u64 + 1)) - 1;

/// How many groups a selection is of.
fn groups(selection: u64) -> u64 {
    GROUPS.iter().filter(|group| *group & selection != 0).count() as u64
}

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
    pub fn lead(&self, most: u64) -> u64 {
        let groups = self.list.iter().map(|limit| groups(limit.selection)).max().unwrap_or(0);
        2 * most * groups.max(1)
    }

    /// What can be spent from the start of a block with this bound on, the block not included, without looking again;
    /// `None` if the guest has to leave behind the block. `most`: the same of any block, of anything but branches.
    pub fn slack(&self, sums: &Sums, block: &Bound, most: u64) -> Option<u64> {
        let mut slack = u64::MAX;
        for limit in &self.list {
            let next = most * groups(limit.selection);
            // A bound's unit is one occurrence of each group.
            let used = sums.of(limit.selection) + block.within(limit.selection) + next;
            let left = limit.left.checked_sub(used).filter(|left| *left > 0)?;
            slack = slack.min(left / groups(limit.selection).max(1));
        }
        Some(slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Tally;

    fn selection(list: &[Occurrence]) -> u64 {
        bits(list)
    }

    #[test]
    fn every_occurrence_of_an_access_is_in_one_group() {
        for occurrence in Occurrence::ALL {
            let groups = groups(1 << occurrence as u64);
            use Occurrence::{Cpuid, Interrupt, LbrInsert};
            let is_other = matches!(occurrence, Interrupt | LbrInsert | Cpuid);
            let is_branch = 1 << occurrence as u64 & BRANCHES != 0;
            assert_eq!(groups, u64::from(!is_other && !is_branch), "{occurrence:?}");
        }
    }

    #[test]
    fn a_branch_that_reaches_the_limit_is_the_last() {
        let forward = selection(&[Occurrence::JccTakenForward]);
        let limits = Limits::new(&[Limit { selection: forward, left: 3 }, Limit::default()]);
        let branch = Bound { branches: forward, others: 9 };
        let mut sums = Sums::NONE;
        let jump = Tally::one(Occurrence::JccTakenForward as usize);
        assert_eq!(limits.slack(&sums, &branch, 100), Some(2));
        sums.add(&jump, 1);
        assert_eq!(limits.slack(&sums, &branch, 100), Some(1));
        sums.add(&jump, 1);
        assert_eq!(limits.slack(&sums, &branch, 100), None, "this one is the third");
        assert_eq!(limits.slack(&sums, &Bound { branches: 0, others: 9 }, 100), Some(1));
    }

    #[test]
    fn others_are_left_before_they_can_reach_the_limit() {
        let loads = selection(&[Occurrence::Load, Occurrence::Locked]);
        let limits = Limits::new(&[Limit { selection: loads, left: 100 }]);
        assert!(limits.has_others() && !limits.is_empty());
        assert_eq!(limits.lead(10), 40);
        let block = Bound { branches: 0, others: 5 };
        // 5 of the block and 10 of the next, of two groups each: 70 are left.
        assert_eq!(limits.slack(&Sums::NONE, &block, 10), Some(35));
        let mut sums = Sums::NONE;
        sums.add(&Tally::one(Occurrence::Load as usize), 69);
        assert_eq!(limits.slack(&sums, &block, 10), Some(0));
        sums.add(&Tally::one(Occurrence::Load as usize), 1);
        assert_eq!(limits.slack(&sums, &block, 10), None);
    }
}
