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
    /// Its other occurrences.
    pub others: Others,
}

/// Most occurrences of anything but branches: of each of the groups in [`BY_ACCESS`] and [`BY_LINE`].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Others {
    /// Accesses.
    pub accesses: u32,
    /// Lines, and pages, that they touch; only if these are counted.
    pub lines: u32,
}

impl Others {
    /// The most that a selection can have of them.
    fn within(self, selection: u64) -> u64 {
        u64::from(self.accesses) * groups(&BY_ACCESS, selection)
            + u64::from(self.lines) * groups(&BY_LINE, selection)
    }
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
        let mut others = Others::default();
        for facts in block.iter().filter(|_| mode.contains(Mode::ACCESSES)) {
            others.accesses += accesses(facts);
            others.lines += if mode.contains(Mode::MEMORY) { lines(facts) } else { 0 };
        }
        Self { branches, others }
    }

    /// Whether it can have none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// No selection can have more.
    pub fn most(&self) -> u64 {
        let others = self.others.accesses.max(self.others.lines);
        u64::from(others).max(u64::from(self.branches != 0))
    }

    fn within(&self, selection: u64) -> u64 {
        u64::from(self.branches & selection != 0) + self.others.within(selection)
    }
}

fn accesses(facts: &Facts) -> u32 {
    // One element of each operand; each of their lines counts.
    let elements = if facts.repeated.is_some() { 4 } else { 0 };
    facts.touches.len() as u32 + elements + u32::from(facts.maintenance.is_some())
}

fn lines(facts: &Facts) -> u32 {
    let of = |bytes: u32| 1 + (bytes.max(1) + LINE_BYTES as u32 - 2) / LINE_BYTES as u32;
    match facts.repeated {
        Some(operation) => 2 * of(operation.element_bytes.into()),
        None => facts.touches.iter().map(|touch| of(touch.bytes)).sum(),
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

/// Groups of which an access has at most one.
const BY_ACCESS: [u64; 7] = {
    use Occurrence::*;
    [
        bits(&[Load, Store, LoadStore]),
        bits(&[Locked]),
        bits(&[LoadL1Hit, LoadLlcHit, LoadLlcMiss]),
        bits(&[StoreL1Hit, StoreLlcHit, StoreLlcMiss]),
        bits(&[SplitLoad]),
        bits(&[SplitStore]),
        bits(&[ClFlush]),
    ]
};

/// Groups of which each line that an access touches has at most one.
const BY_LINE: [u64; 4] = {
    use Occurrence::*;
    [
        bits(&[L1Fill]),
        bits(&[LlcReference]),
        bits(&[LlcMiss]),
        bits(&[LoadStlbHit, StoreStlbHit, LoadWalk, StoreWalk]),
    ]
};

/// Branches, which a block has one of at its end.
const BRANCHES: u64 = (1 << (Occurrence::MissedIndirectJump as u64 + 1)) - 1;

/// How many groups a selection has something of.
fn groups(groups: &[u64], selection: u64) -> u64 {
    groups.iter().filter(|group| *group & selection != 0).count() as u64
}

/// How many occurrences of a selection go with one access or line.
fn factor(selection: u64) -> u64 {
    (groups(&BY_ACCESS, selection) + groups(&BY_LINE, selection)).max(1)
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
    pub fn lead(&self, most: Others) -> u64 {
        let leads = self.list.iter().map(|limit| 2 * most.within(limit.selection));
        leads.max().unwrap_or(0).max(2 * u64::from(most.accesses))
    }

    /// What can be spent from the start of a block with this bound on, the block not included, without looking again;
    /// `None` if the guest has to leave behind the block. `most`: the same of any block, of anything but branches.
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
    use crate::tally::Tally;

    fn selection(list: &[Occurrence]) -> u64 {
        bits(list)
    }

    const fn accesses(accesses: u32) -> Others {
        Others { accesses, lines: 0 }
    }

    #[test]
    fn every_occurrence_of_an_access_is_in_one_group() {
        for occurrence in Occurrence::ALL {
            let selection = 1 << occurrence as u64;
            let groups = groups(&BY_ACCESS, selection) + groups(&BY_LINE, selection);
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
