//! Branches on their way into the records.

use super::Pmu;
use super::freeze::DEBUGCTL_LBR;
use crate::Ring;
use crate::branch::{Branch, BranchKind};
use crate::model::LbrKind;
use crate::mutation::Mutation;

impl Pmu {
    /// Whether branch records are being written.
    pub(super) fn records_branches(&self) -> bool {
        let legacy = self.debugctl & DEBUGCTL_LBR != 0;
        let on = match self.spec().lbr {
            LbrKind::None => false,
            LbrKind::Legacy(_) | LbrKind::AmdSingle => legacy,
            LbrKind::Arch(_) | LbrKind::AmdV2 { .. } => self.lbr.is_on(),
        };
        on && !self.records_are_frozen()
    }

    /// Records a branch, if it was taken and passes the filters. True if a record was written: then
    /// the instruction's delta has one [`crate::Occurrence::LbrInsert`].
    pub fn record_branch(&mut self, branch: &Branch) -> bool {
        if !self.records_branches() || !branch.taken || self.is(Mutation::LbrNeverRecords) {
            return false;
        }
        let spec = self.spec();
        self.lbr.record(spec, branch, self.planted)
    }

    /// So many taken branches passed the filters, outside call-stack mode, and at least as many as there are records follow
    /// them: they are gone again, and only the place of the newest record reports them.
    pub fn skip_branches(&mut self, count: u64) {
        if self.records_branches() && !self.is(Mutation::LbrNeverRecords) {
            let spec = self.spec();
            self.lbr.skip(spec, count, self.planted);
        }
    }

    /// The kinds of taken branches that would be recorded now if they ended in `ring`, as bits by [`BranchKind::ALL`]'s
    /// order. `None`: that depends on the branches before it, as the records are a stack of calls.
    #[must_use]
    pub fn recorded_kinds(&self, ring: Ring) -> Option<u32> {
        if !self.records_branches() || self.is(Mutation::LbrNeverRecords) {
            return Some(0);
        }
        let spec = self.spec();
        let passes = |kind| {
            let branch =
                Branch { from: 0, to: 0, kind, taken: true, mispredicted: false, ring, cycles: 0 };
            self.is(Mutation::LbrFilterIgnored) || self.lbr.passes(spec, &branch)
        };
        let kinds = (0..).zip(BranchKind::ALL).filter(|(_, kind)| passes(*kind));
        let kinds = kinds.fold(0, |bits, (place, _)| bits | 1 << place);
        // In a ring that the filters keep out nothing is pushed or popped.
        (kinds == 0 || !self.lbr.call_stack(spec)).then_some(kinds)
    }

    /// An interrupt or exception is being delivered: the newest record becomes the last one before
    /// it (0x1DD and 0x1DE). Call it before recording the transfer itself.
    pub fn record_event_delivery(&mut self) {
        if self.records_branches() {
            let spec = self.spec();
            self.lbr.deliver_event(spec);
        }
    }
}
