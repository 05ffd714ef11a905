//! Call stacks at samples, out of branch records in call-stack mode, counted.

use super::table::{Row, Table};
use super::{ControlBlock, hash};
use crate::pmu::lbr::Branch;

/// Calls that a stack can have: as many as there are records, at most.
pub const MOST_CALLS: usize = 32;

/// How often one stack was sampled, by one counter, in one task.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chain {
    /// The sampled instruction, and before it the calls that led to it, the newest first; then zeros.
    pub frames: [u64; 1 + MOST_CALLS],
    /// How many of them are in use.
    pub depth: u8,
    /// Number of the counter's bit in the global status.
    pub bit: u8,
    /// The interrupted code's CS.
    pub cs: u16,
    /// The task, as in a sample.
    pub task: u32,
    /// How often. 0: the place is free.
    pub count: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { frames: [0; 1 + MOST_CALLS], depth: 0, bit: 0, cs: 0, task: 0, count: 0 }
    }
}

impl Chain {
    /// A stack without a call yet.
    pub(super) fn at(rip: u64, cs: u64, task: u32) -> Self {
        let mut chain = Self { depth: 1, cs: cs as u16, task, count: 1, ..Self::default() };
        chain.frames[0] = rip;
        chain
    }

    /// The next older call. Those of the kernel, in the upper half of addresses, are its handlers' own.
    pub(super) fn push(&mut self, branch: &Branch) {
        let kernel = (branch.from | branch.to) >> 63 != 0;
        if let (Some(frame), false) = (self.frames.get_mut(usize::from(self.depth)), kernel) {
            *frame = branch.from;
            self.depth += 1;
        }
    }

    /// The frames in use.
    #[must_use]
    pub fn frames(&self) -> &[u64] {
        &self.frames[..usize::from(self.depth)]
    }
}

impl Row for Chain {
    fn is_same(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.depth, one.bit, one.cs, one.task);
        key(self) == key(other) && self.frames == other.frames
    }

    fn key(&self) -> u64 {
        let of = hash::owner(self.task, self.bit) ^ u64::from(self.depth) << 10;
        self.frames().iter().fold(of, |key, frame| key.rotate_left(9) ^ frame)
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn add(&mut self, more: &Self) {
        self.count += more.count;
    }
}

impl ControlBlock {
    /// Counts the stacks of samples in `places`, which have to outlive the block's use. Branches are recorded in call-stack
    /// mode already, for [`ControlBlock::count_edges`].
    pub fn count_chains(&mut self, places: &mut [Chain]) {
        self.chains = Table::new(places);
    }

    /// The stacks, if they are counted.
    #[must_use]
    pub fn chains(&self) -> Option<&Table<Chain>> {
        self.chains.as_ref()
    }

    /// Counts a stack for each of these counters.
    pub(super) fn count_chain(&mut self, chain: &Chain, status: u64) {
        let Some(chains) = &mut self.chains else { return };
        let mut left = status;
        while left != 0 {
            chains.take(&Chain { bit: left.trailing_zeros() as u8, ..*chain });
            left &= left - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_stacks_are_told_apart_by_each_frame() {
        let mut places = [Chain::default(); 8];
        let mut block = ControlBlock::EMPTY;
        block.count_chains(&mut places);
        let call = |from| Branch { from, to: 0x9000, ..Branch::default() };
        let kernel = Branch { from: 1 << 63 | 0x10, ..call(0) };
        for calls in [&[0x10, 0x20][..], &[0x10, 0x20], &[0x10, 0x21], &[0x10]] {
            let mut chain = Chain::at(0x1000, 3, 0);
            chain.push(&kernel);
            calls.iter().for_each(|&from| chain.push(&call(from)));
            block.count_chain(&chain, 1 << 33);
        }
        let mut seen: Vec<_> =
            block.chains().unwrap().used().map(|one| (one.frames().to_vec(), one.count)).collect();
        seen.sort();
        let expected: [(&[u64], u64); 3] =
            [(&[0x1000, 0x10], 1), (&[0x1000, 0x10, 0x20], 2), (&[0x1000, 0x10, 0x21], 1)];
        assert_eq!(seen, expected.map(|(frames, count)| (frames.to_vec(), count)));
        assert!(block.chains().unwrap().used().all(|one| (one.bit, one.cs) == (33, 3)));
    }

    #[test]
    fn s2_a_stack_has_no_more_calls_than_there_are_records() {
        let mut chain = Chain::at(1, 0, 0);
        (0..100).for_each(|from| chain.push(&Branch { from, to: 2, ..Branch::default() }));
        assert_eq!(chain.frames().len(), 1 + MOST_CALLS);
    }

    /// In a table of one place only the same stack finds it again.
    #[test]
    fn s2_stacks_are_the_same_in_everything_or_other_ones() {
        let first = Chain { bit: 1, ..Chain::at(0x1000, 3, 2) };
        for other in [
            Chain { bit: 2, ..first },
            Chain { cs: 4, ..first },
            Chain { task: 5, ..first },
            Chain { frames: [0x1008; 1 + MOST_CALLS], ..first },
        ] {
            let mut places = [Chain::default(); 1];
            let mut table = Table::new(&mut places).unwrap();
            [first, other, first].iter().for_each(|one| table.take(one));
            let seen: Vec<_> = table.used().map(|one| (one.frames, one.count)).collect();
            assert_eq!((seen, table.elsewhere), (vec![(first.frames, 2)], 1), "{other:?}");
        }
    }

    /// More rows than there are places for one: they begin at several.
    #[test]
    fn stacks_of_other_instructions_and_calls_begin_at_other_places() {
        let call = |from| Branch { from, to: 0x9000, ..Branch::default() };
        for of_call in [false, true] {
            let mut places = vec![Chain::default(); 1024];
            let mut table = Table::new(&mut places).unwrap();
            for n in 0..200 {
                let mut chain = Chain::at(if of_call { 0x1000 } else { 0x1000 + 8 * n }, 3, 0);
                chain.push(&call(if of_call { 0x2000 + 8 * n } else { 0x2000 }));
                table.take(&chain);
            }
            assert_eq!((table.elsewhere, table.used().count()), (0, 200), "{of_call}");
        }
    }

    /// An interrupt within the kernel's handler: both ends are in the upper half.
    #[test]
    fn s2_no_branch_of_the_kernel_is_a_call_of_a_stack() {
        const KERNEL: u64 = 1 << 63;
        let mut chain = Chain::at(0x1000, 3, 0);
        for (from, to) in [(KERNEL | 8, KERNEL | 16), (8, KERNEL), (KERNEL, 8), (8, 16)] {
            chain.push(&Branch { from, to, ..Branch::default() });
        }
        assert_eq!(chain.frames(), [0x1000, 8]);
    }
}
