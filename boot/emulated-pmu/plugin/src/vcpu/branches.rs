//! Branches of a vCPU, to its predictor and to its records.

use super::Vcpu;
use crate::cells::SINGLE_INSTRUCTIONS;
use crate::facts::{Branch, OFFSET};
use crate::tally::{self, QUALIFIED};
use crate::vcpu::Passes;
use plugin_channel::{Parts, Record};
use pmu_model::uarch::Resolved;
use pmu_model::{BranchKind, Occurrence};

impl Vcpu {
    /// Whether nothing must be known of a branch, which was counted as taken or not at all, but the offset at which the
    /// guest continues.
    #[inline]
    pub fn is_plain(&self, branch: &Branch, counted: bool) -> bool {
        let recorded = !counted && self.parts.contains(Parts::RECORDS);
        // Its access decides whether it passes.
        branch.passes != Passes::ByData
            && !branch.ambiguous
            && branch.undecided.is_none()
            && !recorded
            && self.memory.has_no_access()
    }

    /// Whether a branch that was taken is recorded.
    pub fn records(&self, branch: &Branch) -> bool {
        self.parts.contains(Parts::RECORDS) && self.recorder.wants(branch.kind)
    }

    /// A conditional jump that was counted as one that was taken has fallen through.
    #[inline]
    pub fn fell(&mut self, branch: &Branch) {
        let taken = Occurrence::of(branch.kind, true, branch.backward, false);
        let sums = &mut self.sums.0;
        sums[taken as usize] = sums[taken as usize].wrapping_sub(1);
        let fell = &mut sums[Occurrence::JccNotTaken as usize];
        *fell = fell.wrapping_add(1);
        if branch.passes == Passes::Always {
            let taken = &mut self.sums.0[QUALIFIED + taken as usize];
            *taken = taken.wrapping_sub(1);
            let fell = &mut self.sums.0[QUALIFIED + Occurrence::JccNotTaken as usize];
            *fell = fell.wrapping_add(1);
        }
    }

    /// A branch is done that was taken, or not, and went to an offset, if that is known. `kind` is its own: who knows it says
    /// it, which leaves less to be decided here. True if it was mispredicted.
    #[inline(always)]
    pub fn predict(
        &mut self,
        branch: &Branch,
        kind: BranchKind,
        taken: bool,
        to: Option<u16>,
    ) -> bool {
        let conditional = kind == BranchKind::Conditional;
        let target = to.filter(|_| !conditional).unwrap_or(branch.target);
        let addresses = (branch.from.into(), target.into(), branch.next.into());
        let resolved = Resolved::new(addresses, kind, taken, branch.backward);
        let parts = self.model_parts();
        let missed = self.core.branch(&resolved, parts, &mut self.sums);
        self.pass_branch(branch, Occurrence::of(kind, taken, branch.backward, missed));
        missed
    }

    /// A branch was taken, to the linear address `to`.
    pub fn record(&mut self, branch: &Branch, bytes: u16, to: u64, missed: bool) {
        let length = branch.next.wrapping_sub(branch.from) & OFFSET as u16;
        let from = self.block_start.wrapping_add(bytes.into()).wrapping_sub(length.into());
        let kind = branch.kind as u32;
        let record = Record { from, to, kind, mispredicted: missed.into(), instructions: 0 };
        let done = self.instructions();
        self.recorder.record(record, done);
    }

    /// Instructions done since the last exit, in a mode with records.
    fn instructions(&mut self) -> u64 {
        let counted = *self.word(SINGLE_INSTRUCTIONS);
        let collected = self.sums.0[tally::INSTRUCTIONS];
        counted.wrapping_add(collected).wrapping_add(self.string_ends)
    }
}
