//! Branches that the processor recorded before each sample, counted by where they come from and go to.

use super::chains::Chain;
use super::service::{Interrupted, Raw};
use super::{ControlBlock, hash};
use crate::msr::Msr;
use crate::pmu::capabilities::LbrKind;
use crate::pmu::driver::{Gate, Write};
use crate::pmu::lbr::{self, Branch};
use core::convert::Infallible;

/// How often a branch was in the records, of one task.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Edge {
    /// Address of the branch.
    pub from: u64,
    /// Where it went.
    pub to: u64,
    /// The task, as in a sample.
    pub task: u32,
    /// How often. 0: the place is free.
    pub count: u64,
    /// Of these, how many were mispredicted; `None` where records do not tell.
    pub mispredicted: Option<u64>,
    /// Cycles from the branch before, of all of them; `None` where records do not tell.
    pub cycles: Option<u64>,
}

/// The records of a processor, and a table of a fixed size for them.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    kind: LbrKind,
    /// The writes that let branches be recorded, and that stop it.
    on: Write,
    off: Write,
    places: *mut Edge,
    /// A power of two.
    len: usize,
    /// Branches that found no place.
    pub elsewhere: u64,
}

impl Edges {
    /// Places at which a branch may lie.
    const PROBES: usize = 64;

    /// A table in the first 2^n of `places`, which have to outlive the block's use, for records of this kind; `on` and `off`
    /// switch them by the register `switch`. `None` if there are no places.
    #[must_use]
    pub fn new(
        kind: LbrKind,
        (switch, on, off): (Msr, u64, u64),
        places: &mut [Edge],
    ) -> Option<Self> {
        let len = 1 << places.len().checked_ilog2()?;
        let (on, off) = (Write::new(switch, on), Write::new(switch, off));
        let mut edges = Self { kind, on, off, places: places.as_mut_ptr(), len, elsewhere: 0 };
        edges.clear();
        Some(edges)
    }

    pub(super) fn clear(&mut self) {
        self.elsewhere = 0;
        for index in 0..self.len {
            *self.at(index) = Edge::default();
        }
    }

    fn at(&mut self, index: usize) -> &mut Edge {
        // SAFETY: `new` took the places as a slice of at least `len`; the index is below it. The block's holder promised that
        // they live as long as it is used, and one processor's handler alone uses them.
        unsafe { &mut *self.places.add(index & (self.len - 1)) }
    }

    pub(super) const fn kind(&self) -> LbrKind {
        self.kind
    }

    /// A branch of the records: counted, or a call of the stack.
    fn see(&mut self, branch: &Branch, task: u32, chain: &mut Chain, stacks: bool) {
        if stacks {
            chain.push(branch);
        } else if (branch.from | branch.to) >> 63 == 0 {
            self.count(branch, task);
        }
    }

    fn count(&mut self, branch: &Branch, task: u32) {
        let key = branch.from ^ branch.to.rotate_left(13) ^ hash::owner(task, 0);
        let start = hash::start(key);
        for step in 0..Self::PROBES.min(self.len) {
            let edge = self.at(start.wrapping_add(step));
            if edge.count == 0 {
                (edge.from, edge.to, edge.task) = (branch.from, branch.to, task);
            }
            if (edge.from, edge.to, edge.task) == (branch.from, branch.to, task) {
                edge.count += 1;
                let add = |sum: &mut Option<u64>, more: Option<u64>| {
                    if let Some(more) = more {
                        *sum = Some(sum.unwrap_or(0) + more);
                    }
                };
                add(&mut edge.mispredicted, branch.mispredicted.map(u64::from));
                add(&mut edge.cycles, branch.cycles.map(u64::from));
                return;
            }
        }
        self.elsewhere += 1;
    }

    /// The places in use, in no order.
    pub fn used(&self) -> impl Iterator<Item = &Edge> {
        // SAFETY: as in `at`; whoever holds the block by reference does not let the handler run.
        let all = unsafe { core::slice::from_raw_parts(self.places, self.len) };
        all.iter().filter(|edge| edge.count > 0)
    }
}

impl ControlBlock {
    /// Counts what the processor's branch records hold at each interrupt of an overflow. They are recorded already.
    pub fn count_edges(&mut self, edges: Edges) {
        self.edges = Some(edges);
    }

    /// The branches, if they are counted.
    #[must_use]
    pub fn edges(&self) -> Option<&Edges> {
        self.edges.as_ref()
    }

    /// `gate`, with branches that are recorded while it is open.
    #[must_use]
    pub fn with_records(&self, gate: Gate) -> Gate {
        self.edges
            .map_or(gate, |edges| gate.with(Msr(edges.on.msr), edges.on.value, edges.off.value))
    }

    /// The writes that let branches be recorded, and that stop it.
    pub(super) fn recording(&self) -> Option<[Write; 2]> {
        self.edges.map(|edges| [edges.on, edges.off])
    }
}

/// Counts what the records hold; they stand still. Branches of the kernel, in the upper half of addresses, are the way in and
/// out of its handlers. Where stacks are counted, the records are the calls that led to `from`.
pub(super) fn take(block: &mut ControlBlock, raw: &mut impl Raw, from: &Interrupted, status: u64) {
    let Some(mut edges) = block.edges else { return };
    let mut chain = Chain::at(from.rip, from.cs, block.task);
    let stacks = block.chains.is_some();
    let mut read = |msr: Msr| Ok::<u64, Infallible>(raw.rdmsr(msr.0));
    let Ok(()) = lbr::each(edges.kind, &mut read, &mut |branch| {
        edges.see(&branch, block.task, &mut chain, stacks);
    });
    block.edges = Some(edges);
    block.count_chain(&chain, status);
}

/// The same of the records that are in a PEBS record, which are those of its own instant.
pub(super) fn take_recorded(
    block: &mut ControlBlock,
    place: &Interrupted,
    status: u64,
    records: &[[u64; 3]],
) {
    let Some(mut edges) = block.edges else { return };
    let mut chain = Chain::at(place.rip, place.cs, block.task);
    let stacks = block.chains.is_some();
    for &[from, to, info] in records {
        if let Some(branch) = lbr::recorded(edges.kind, from, to, info) {
            edges.see(&branch, block.task, &mut chain, stacks);
        }
    }
    block.edges = Some(edges);
    block.count_chain(&chain, status);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn edges(places: &mut [Edge]) -> Edges {
        Edges::new(LbrKind::AmdV2 { entries: 16 }, (Msr(0), 0, 0), places).unwrap()
    }

    #[test]
    fn s2_what_records_do_not_tell_is_not_counted_as_none() {
        let mut places = [Edge::default(); 4];
        let mut table = edges(&mut places);
        let plain = Branch { from: 1, to: 2, mispredicted: None, cycles: None };
        table.count(&plain, 0);
        let missed = Branch { mispredicted: Some(true), cycles: Some(7), ..plain };
        let foreseen = Branch { mispredicted: Some(false), cycles: Some(5), ..plain };
        for branch in [missed, foreseen, foreseen] {
            table.count(&Branch { from: 9, ..branch }, 0);
        }
        let mut seen: Vec<_> = table.used().copied().collect();
        seen.sort_by_key(|edge| edge.from);
        assert_eq!((seen[0].mispredicted, seen[0].cycles), (None, None));
        assert_eq!((seen[1].count, seen[1].mispredicted, seen[1].cycles), (3, Some(1), Some(17)));
        table.clear();
        assert_eq!(table.used().count(), 0);
        assert!(Edges::new(LbrKind::Single, (Msr(0), 0, 0), &mut []).is_none());
    }

    proptest! {
        /// Against a map that knows no bounds.
        #[test]
        fn s2_counts_of_branches_are_exact_and_nothing_is_lost(
            seen in prop::collection::vec((0u64..12, 0u64..12, 0u32..2), 0..300), size in 1usize..200,
        ) {
            let mut places = vec![Edge::default(); size];
            let mut table = edges(&mut places);
            let mut expected = BTreeMap::new();
            for &(from, to, task) in &seen {
                table.count(&Branch { from: from << 4, to: to << 4, ..Branch::default() }, task);
                *expected.entry((from << 4, to << 4, task)).or_insert(0u64) += 1;
            }
            let mut sum = table.elsewhere;
            for edge in table.used() {
                prop_assert_eq!(edge.count, expected[&(edge.from, edge.to, edge.task)]);
                sum += edge.count;
            }
            prop_assert_eq!(sum, seen.len() as u64);
        }
    }

    /// The way into the kernel's handlers, out of them, and within: none is a branch of the sampled code.
    #[test]
    fn s2_no_branch_of_the_kernel_is_counted() {
        const KERNEL: u64 = 1 << 63;
        let mut places = [Edge::default(); 4];
        let mut table = edges(&mut places);
        for (from, to) in [(KERNEL | 8, KERNEL | 16), (8, KERNEL), (KERNEL, 8), (8, 16)] {
            let branch = Branch { from, to, ..Branch::default() };
            table.see(&branch, 0, &mut Chain::at(0, 0, 0), false);
        }
        let seen: Vec<_> = table.used().map(|edge| (edge.from, edge.to, edge.count)).collect();
        assert_eq!((seen, table.elsewhere), (vec![(8, 16, 1)], 0));
    }

    /// More branches than there are places for one: they begin at several.
    #[test]
    fn branches_with_other_ends_begin_at_other_places() {
        let mut places = vec![Edge::default(); 1024];
        let mut table = edges(&mut places);
        for n in 0..200 {
            table.count(&Branch { from: 0x1000 + 8 * n, to: 0x9000, ..Branch::default() }, 0);
        }
        assert_eq!((table.elsewhere, table.used().count()), (0, 200));
    }
}
