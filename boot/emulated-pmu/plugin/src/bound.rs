//! The most occurrences that a block can have.

use crate::facts::Facts;
use plugin_channel::Mode;
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

/// Most occurrences of anything but branches: of each of the groups in `BY_ACCESS` and `BY_LINE`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Others {
    /// Accesses.
    pub accesses: u32,
    /// Lines, and pages, that they touch; only if these are counted.
    pub lines: u32,
}

impl Others {
    /// The most that a selection can have of them.
    pub fn within(self, selection: u64) -> u64 {
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

    /// The most that a selection can have of it.
    pub fn within(&self, selection: u64) -> u64 {
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

/// Occurrences as bits.
pub const fn bits(list: &[Occurrence]) -> u64 {
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
        bits(&[LoadL1Hit, LoadL2Hit, LoadLlcHit, LoadLlcMiss]),
        bits(&[StoreL1Hit, StoreL2Hit, StoreLlcHit, StoreLlcMiss]),
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
pub const BRANCHES: u64 = (1 << (Occurrence::MissedIndirectJump as u64 + 1)) - 1;

/// How many groups a selection has something of.
fn groups(groups: &[u64], selection: u64) -> u64 {
    groups.iter().filter(|group| *group & selection != 0).count() as u64
}

/// How many occurrences of a selection go with one access or line.
pub fn factor(selection: u64) -> u64 {
    (groups(&BY_ACCESS, selection) + groups(&BY_LINE, selection)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_of_an_access_is_in_one_group() {
        for occurrence in Occurrence::ALL {
            let selection = 1 << occurrence as u64;
            let groups = groups(&BY_ACCESS, selection) + groups(&BY_LINE, selection);
            use Occurrence::{Cpuid, Interrupt, LbrInsert, MemoryStall, PortCycle};
            // Cycles that waits are a part of, and micro-operations, have a bound for one instruction: `pmu_model::Limit::most`.
            let is_other =
                matches!(occurrence, Interrupt | LbrInsert | Cpuid | MemoryStall | PortCycle)
                    || Occurrence::PORTS.contains(&occurrence);
            let is_branch = 1 << occurrence as u64 & BRANCHES != 0;
            assert_eq!(groups, u64::from(!is_other && !is_branch), "{occurrence:?}");
        }
    }
}
