//! The branch predictor.

use crate::branch::{Branch, BranchKind};

/// Direction counters; a power of two.
const COUNTERS: usize = 4096;
/// Outcomes of conditional jumps that the index mixes in.
const HISTORY_BITS: u32 = 8;
/// Most targets of indirect branches, a power of two; it keeps as many, each in one place, if nobody says.
pub const TARGETS: usize = 1024;
/// Most return addresses, a power of two; it keeps 16 if nobody says.
const RETURNS: usize = 64;
/// Bits of an address that the predictor looks at: those within a page, which are the same in linear, physical and any
/// other kind of address.
const TAG_BITS: u32 = 12;

/// An untrained direction counter. Trained ones are 1 (strongly not taken) to 4 (strongly taken).
const UNTRAINED: u8 = 0;
/// What a direction counter becomes: after a jump that was not taken, and after one that was. A table, because a processor
/// would have to guess the way of a jump here as well. Counters are below 5; the rest is for a power of two.
const TRAINED: [[u8; 2]; 8] =
    [[2, 3], [1, 2], [1, 3], [2, 4], [3, 4], [UNTRAINED; 2], [UNTRAINED; 2], [UNTRAINED; 2]];

/// A branch as the predictor sees it: addresses by their lowest 12 bits alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    from: u16,
    to: u16,
    next: u16,
    /// Its kind.
    pub kind: BranchKind,
    /// False for a conditional jump that fell through.
    pub taken: bool,
    /// Its target does not lie after it. Matters for conditional jumps alone.
    pub backward: bool,
}

impl Resolved {
    /// A branch at `from` that went to `to`, or would have gone there; `next` is the address after the instruction.
    #[must_use]
    #[inline]
    pub const fn new(
        (from, to, next): (u64, u64, u64),
        kind: BranchKind,
        taken: bool,
        backward: bool,
    ) -> Self {
        Self { from: tag(from), to: tag(to), next: tag(next), kind, taken, backward }
    }

    /// The same of a branch with linear addresses.
    #[must_use]
    pub const fn of(branch: &Branch, next: u64) -> Self {
        let backward = branch.to <= branch.from;
        Self::new((branch.from, branch.to, next), branch.kind, branch.taken, backward)
    }
}

const fn tag(address: u64) -> u16 {
    (address & ((1 << TAG_BITS) - 1)) as u16
}

/// Direction, indirect targets and return addresses. All zeros is the untrained predictor.
#[derive(Clone, Debug)]
pub struct Predictor {
    directions: [u8; COUNTERS],
    history: u32,
    /// Where an indirect branch went the last time: its tag, the target's, and a bit that says that there was one. The ways of
    /// a set lie together, the one that was used last in front.
    targets: [u32; TARGETS],
    /// Its sets, less as many as there are places: all zeros are one way.
    fewer_sets: u16,
    /// Its ways, less one.
    more_ways: u16,
    returns: [u16; RETURNS],
    /// Entries of it that are used, less 16.
    more_returns: i8,
    top: u8,
    /// Valid entries of the return stack.
    depth: u8,
}

impl Predictor {
    /// An untrained predictor.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            directions: [UNTRAINED; COUNTERS],
            history: 0,
            targets: [0; TARGETS],
            fewer_sets: 0,
            more_ways: 0,
            returns: [0; RETURNS],
            more_returns: 0,
            top: 0,
            depth: 0,
        }
    }

    /// An indirect branch predictor barrier (IBPB), or anything else that should make it forget.
    pub fn clear(&mut self) {
        let Self { more_returns, fewer_sets, more_ways, .. } = *self;
        *self = Self { more_returns, fewer_sets, more_ways, ..Self::new() };
    }

    /// Keeps the targets of so many indirect branches, up to 1024, in so many ways, and forgets those that it has. The least
    /// recently used of a set is replaced. Sets are a power of two.
    pub fn keep_targets(&mut self, shape: super::parameters::TlbShape) {
        let sets = (shape.sets() as usize).clamp(1, TARGETS);
        self.fewer_sets = (TARGETS - sets) as u16;
        self.more_ways = (shape.ways as usize).clamp(1, TARGETS / sets) as u16 - 1;
        self.targets = [0; TARGETS];
    }

    /// Keeps so many return addresses, 1 to 64, and forgets those that it has.
    pub fn keep_returns(&mut self, returns: u32) {
        self.more_returns = returns.clamp(1, RETURNS as u32) as i8 - 16;
        (self.top, self.depth) = (0, 0);
    }

    #[inline]
    const fn kept(&self) -> u8 {
        (self.more_returns + 16) as u8
    }

    /// A branch retires: says whether it was mispredicted, and learns from it.
    ///
    /// Directions matter for conditional jumps, targets for indirect branches and returns. Direct
    /// calls and jumps, and far transfers, are never mispredicted.
    #[inline(always)]
    pub fn branch(&mut self, branch: &Resolved) -> bool {
        match branch.kind {
            BranchKind::Conditional => self.direction(branch),
            BranchKind::RelativeJump | BranchKind::Far => false,
            BranchKind::IndirectJump => self.target(branch),
            BranchKind::RelativeCall => {
                self.push(branch.next);
                false
            }
            BranchKind::IndirectCall => {
                self.push(branch.next);
                self.target(branch)
            }
            BranchKind::Return => self.pop() != Some(branch.to),
        }
    }

    #[inline(always)]
    fn direction(&mut self, branch: &Resolved) -> bool {
        let taken = branch.taken;
        let index = (u32::from(branch.from) ^ self.history) as usize % COUNTERS;
        let counter = &mut self.directions[index];
        let predicted = if *counter == UNTRAINED { branch.backward } else { *counter > 2 };
        *counter = TRAINED[usize::from(*counter) % TRAINED.len()][usize::from(taken)];
        self.history = (self.history << 1 | u32::from(taken)) & ((1 << HISTORY_BITS) - 1);
        predicted != taken
    }

    fn target(&mut self, branch: &Resolved) -> bool {
        let (sets, ways) =
            (TARGETS - usize::from(self.fewer_sets), 1 + usize::from(self.more_ways));
        let first = usize::from(branch.from) % sets * ways;
        let set = &mut self.targets[first..first + ways];
        let seen = 1 << (2 * TAG_BITS) | u32::from(branch.from) << TAG_BITS | u32::from(branch.to);
        let own = |entry: &u32| *entry >> TAG_BITS == seen >> TAG_BITS;
        let place = set.iter().position(own).unwrap_or(ways - 1);
        let missed = set[place] != seen;
        set.copy_within(..place, 1);
        set[0] = seen;
        missed
    }

    #[inline]
    fn push(&mut self, address: u16) {
        let kept = self.kept();
        self.top = if self.top + 1 >= kept { 0 } else { self.top + 1 };
        self.returns[usize::from(self.top)] = address;
        self.depth = (self.depth + 1).min(kept);
    }

    #[inline]
    fn pop(&mut self) -> Option<u16> {
        self.depth = self.depth.checked_sub(1)?;
        let address = self.returns[usize::from(self.top)];
        self.top = if self.top == 0 { self.kept() - 1 } else { self.top - 1 };
        Some(address)
    }
}

impl Default for Predictor {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A branch of two bytes.
    fn branch(
        predictor: &mut Predictor,
        from: u64,
        to: u64,
        kind: BranchKind,
        taken: bool,
    ) -> bool {
        predictor.branch(&Resolved::new((from, to, from + 2), kind, taken, to <= from))
    }

    /// A conditional jump at `from` to `to`, once for each outcome; the mispredictions.
    fn run(predictor: &mut Predictor, from: u64, to: u64, outcomes: &[bool]) -> Vec<bool> {
        outcomes
            .iter()
            .map(|taken| branch(predictor, from, to, BranchKind::Conditional, *taken))
            .collect()
    }

    #[test]
    fn a_loop_misses_its_exit_alone() {
        let mut predictor = Predictor::new();
        let mut outcomes = vec![true; 99];
        outcomes.push(false);
        let missed = run(&mut predictor, 0x1010, 0x1000, &outcomes);
        assert!(missed[..99].iter().all(|missed| !missed));
        assert!(missed[99]);
    }

    #[test]
    fn an_untrained_forward_jump_is_predicted_to_fall_through() {
        let mut predictor = Predictor::new();
        assert_eq!(run(&mut predictor, 0x1000, 0x1010, &[false]), [false]);
        let mut predictor = Predictor::new();
        assert_eq!(run(&mut predictor, 0x1000, 0x1010, &[true]), [true]);
    }

    #[test]
    fn alternation_is_learned_from_history() {
        let mut predictor = Predictor::new();
        let outcomes: Vec<bool> = (0..200).map(|n| n % 2 == 0).collect();
        let missed = run(&mut predictor, 0x1000, 0x1010, &outcomes);
        assert!(missed[20..].iter().all(|missed| !missed));
    }

    #[test]
    fn two_bits_forgive_one_exception() {
        let mut predictor = Predictor::new();
        // Saturate the counter that belongs to a history of all ones, then leave the loop once.
        let warm = vec![true; 20];
        run(&mut predictor, 0x1010, 0x1000, &warm);
        assert_eq!(run(&mut predictor, 0x1010, 0x1000, &[false]), [true]);
        // The same counter still says taken, once the history has filled again.
        run(&mut predictor, 0x1010, 0x1000, &warm);
        assert_eq!(run(&mut predictor, 0x1010, 0x1000, &[true]), [false]);
    }

    #[test]
    fn an_indirect_branch_repeats_its_last_target() {
        let mut predictor = Predictor::new();
        let mut jump = |to| branch(&mut predictor, 0x1000, to, BranchKind::IndirectJump, true);
        assert_eq!(
            [jump(0x2000), jump(0x2000), jump(0x3010), jump(0x2000)],
            [true, false, true, true]
        );
    }

    #[test]
    fn d1_a_table_of_targets_keeps_as_many_of_a_set_as_it_has_ways() {
        for (entries, ways) in [(64, 4), (8, 8), (1024, 1), (1, 1), (16, 2)] {
            let mut predictor = Predictor::new();
            let shape = crate::uarch::parameters::TlbShape { entries, ways };
            predictor.keep_targets(shape);
            let sets = u64::from(shape.sets());
            let round = |predictor: &mut Predictor, count: u64, at: u64| {
                let mut jump = |place: u64| {
                    branch(predictor, place, place + 40, BranchKind::IndirectJump, true)
                };
                let all = (0..count).map(|index| jump(at + index * sets));
                all.filter(|missed| *missed).count() as u64
            };
            let ways = u64::from(ways);
            assert_eq!(round(&mut predictor, ways, 0), ways, "{shape:?}");
            assert_eq!(round(&mut predictor, ways, 0), 0, "{shape:?}");
            // A barrier empties it and leaves its shape.
            predictor.clear();
            assert_eq!(round(&mut predictor, ways + 1, 0), ways + 1);
            assert_eq!(
                round(&mut predictor, ways + 1, 0),
                ways + 1,
                "{shape:?}: least recently used"
            );
            if sets > 1 {
                // Another set is another matter.
                assert_eq!(round(&mut predictor, ways, 1), ways);
                assert_eq!(round(&mut predictor, ways, 0), ways);
                assert_eq!(round(&mut predictor, ways, 1), 0);
            }
        }
    }

    #[test]
    fn returns_match_calls_to_a_depth_of_16() {
        let mut predictor = Predictor::new();
        for level in 0..17 {
            branch(&mut predictor, level, 0x9000, BranchKind::RelativeCall, true);
        }
        let missed: Vec<bool> = (0..17)
            .rev()
            .map(|level| branch(&mut predictor, 0x9000, level + 2, BranchKind::Return, true))
            .collect();
        assert!(missed[..16].iter().all(|missed| !missed));
        assert!(missed[16], "the 17th was pushed out");
    }

    #[test]
    fn direct_and_far_transfers_are_never_missed() {
        let mut predictor = Predictor::new();
        for kind in [BranchKind::RelativeJump, BranchKind::RelativeCall, BranchKind::Far] {
            assert!(!branch(&mut predictor, 0x1000, 0x2000, kind, true));
        }
    }

    #[test]
    fn a_barrier_makes_it_forget() {
        let mut predictor = Predictor::new();
        branch(&mut predictor, 0x1000, 0x2000, BranchKind::IndirectJump, true);
        predictor.clear();
        assert!(branch(&mut predictor, 0x1000, 0x2000, BranchKind::IndirectJump, true));
    }

    #[test]
    fn addresses_are_told_apart_within_a_page_alone() {
        let (mut linear, mut physical) = (Predictor::new(), Predictor::new());
        for step in 0..2000u64 {
            let kind = match step % 5 {
                0 => BranchKind::Conditional,
                1 => BranchKind::IndirectCall,
                2 => BranchKind::RelativeCall,
                3 => BranchKind::IndirectJump,
                _ => BranchKind::Return,
            };
            let (from, to) = (0xffff_8000_0000_0000 + step * 97 % 6000, 0x7000 + step * 31 % 900);
            let taken = step % 3 != 0;
            let of = |base: u64| {
                let at = |address: u64| base + (address & 0xfff);
                Resolved::new((at(from), at(to), at(from + 2)), kind, taken, step % 2 == 0)
            };
            assert_eq!(linear.branch(&of(0)), physical.branch(&of(0x5_5000)), "step {step}");
        }
    }
}
