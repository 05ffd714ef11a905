//! The branch predictor.

use crate::branch::BranchKind;

/// Direction counters; a power of two.
const COUNTERS: usize = 4096;
/// Outcomes of conditional jumps that the index mixes in.
const HISTORY_BITS: u32 = 8;
/// Targets of indirect branches; a power of two.
const TARGETS: usize = 1024;
/// Return addresses.
const RETURNS: usize = 16;

/// An untrained direction counter. Trained ones are 1 (strongly not taken) to 4 (strongly taken).
const UNTRAINED: u8 = 0;

/// Where an indirect branch went the last time.
#[derive(Clone, Copy, Debug)]
struct Target {
    from: u64,
    to: u64,
}

/// Direction, indirect targets and return addresses. All zeros is the untrained predictor.
#[derive(Clone, Debug)]
pub struct Predictor {
    directions: [u8; COUNTERS],
    history: u32,
    targets: [Target; TARGETS],
    returns: [u64; RETURNS],
    top: usize,
    /// Valid entries of the return stack.
    depth: usize,
}

impl Predictor {
    /// An untrained predictor.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            directions: [UNTRAINED; COUNTERS],
            history: 0,
            targets: [Target { from: 0, to: 0 }; TARGETS],
            returns: [0; RETURNS],
            top: 0,
            depth: 0,
        }
    }

    /// An indirect branch predictor barrier (IBPB), or anything else that should make it forget.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// A branch retires: says whether it was mispredicted, and learns from it. `next` is the
    /// address behind the branch instruction, which a call pushes.
    ///
    /// Directions matter for conditional jumps, targets for indirect branches and returns. Direct
    /// calls and jumps, and far transfers, are never mispredicted.
    pub fn branch(&mut self, from: u64, to: u64, next: u64, kind: BranchKind, taken: bool) -> bool {
        match kind {
            BranchKind::Conditional => self.direction(from, to, taken),
            BranchKind::RelativeJump | BranchKind::Far => false,
            BranchKind::IndirectJump => self.target(from, to),
            BranchKind::RelativeCall => {
                self.push(next);
                false
            }
            BranchKind::IndirectCall => {
                self.push(next);
                self.target(from, to)
            }
            BranchKind::Return => self.pop() != Some(to),
        }
    }

    fn direction(&mut self, from: u64, to: u64, taken: bool) -> bool {
        let index = (from ^ u64::from(self.history)) as usize % COUNTERS;
        let counter = &mut self.directions[index];
        let predicted = match *counter {
            UNTRAINED => to <= from,
            trained => trained > 2,
        };
        *counter = match (*counter, taken) {
            (UNTRAINED, false) => 2,
            (UNTRAINED, true) => 3,
            (trained, true) => (trained + 1).min(4),
            (trained, false) => (trained - 1).max(1),
        };
        self.history = (self.history << 1 | u32::from(taken)) & ((1 << HISTORY_BITS) - 1);
        predicted != taken
    }

    fn target(&mut self, from: u64, to: u64) -> bool {
        let entry = &mut self.targets[from as usize % TARGETS];
        let predicted = entry.from == from && entry.to == to;
        *entry = Target { from, to };
        !predicted
    }

    fn push(&mut self, address: u64) {
        self.top = (self.top + 1) % RETURNS;
        self.returns[self.top] = address;
        self.depth = (self.depth + 1).min(RETURNS);
    }

    fn pop(&mut self) -> Option<u64> {
        self.depth = self.depth.checked_sub(1)?;
        let address = self.returns[self.top];
        self.top = (self.top + RETURNS - 1) % RETURNS;
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

    /// A conditional jump at `from` to `to`, once for each outcome; the mispredictions.
    fn run(predictor: &mut Predictor, from: u64, to: u64, outcomes: &[bool]) -> Vec<bool> {
        outcomes
            .iter()
            .map(|taken| predictor.branch(from, to, from + 2, BranchKind::Conditional, *taken))
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
        let mut jump = |to| predictor.branch(0x1000, to, 0x1002, BranchKind::IndirectJump, true);
        assert_eq!(
            [jump(0x2000), jump(0x2000), jump(0x3000), jump(0x2000)],
            [true, false, true, true]
        );
    }

    #[test]
    fn returns_match_calls_to_a_depth_of_16() {
        let mut predictor = Predictor::new();
        for level in 0..17 {
            predictor.branch(level, 0x9000, level + 5, BranchKind::RelativeCall, true);
        }
        let missed: Vec<bool> = (0..17)
            .rev()
            .map(|level| predictor.branch(0x9000, level + 5, 0, BranchKind::Return, true))
            .collect();
        assert!(missed[..16].iter().all(|missed| !missed));
        assert!(missed[16], "the 17th was pushed out");
    }

    #[test]
    fn direct_and_far_transfers_are_never_missed() {
        let mut predictor = Predictor::new();
        for kind in [BranchKind::RelativeJump, BranchKind::RelativeCall, BranchKind::Far] {
            assert!(!predictor.branch(0x1000, 0x2000, 0x1005, kind, true));
        }
    }

    #[test]
    fn a_barrier_makes_it_forget() {
        let mut predictor = Predictor::new();
        predictor.branch(0x1000, 0x2000, 0x1002, BranchKind::IndirectJump, true);
        predictor.clear();
        assert!(predictor.branch(0x1000, 0x2000, 0x1002, BranchKind::IndirectJump, true));
    }
}
