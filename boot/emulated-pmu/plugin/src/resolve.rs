//! Deciding what a block left open.

use crate::cells::OPEN;
use crate::facts::Branch;
use crate::opened::{ITERATED, Opened};
use crate::tally::{self, Tally};
use crate::vcpu::{Passes, Vcpu};
use pmu_model::{BranchKind, Occurrence};

/// Where the guest went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Where {
    /// To a block whose offset is that after the instruction.
    FellThrough,
    /// To a block with this offset.
    Offset(u16),
    /// Out of the guest, where it stood at this linear address, between two instructions.
    Left(u64),
    /// The same at an instruction that has begun and is not done.
    Failed(u64),
}

impl Where {
    /// The offset in the page, if it is not known to be that after the instruction.
    #[inline]
    pub fn offset(self) -> Option<u16> {
        match self {
            Self::FellThrough => None,
            Self::Offset(offset) => Some(offset),
            Self::Left(rip) | Self::Failed(rip) => Some((rip & crate::facts::OFFSET) as u16),
        }
    }

    /// Whether the guest stands where the branch is, so that it may not have been executed.
    #[inline]
    fn may_be_at(self, branch: &Branch) -> bool {
        branch.can_fail() && self.offset() == Some(branch.from)
    }

    /// Whether an instruction at this offset began and is not done.
    fn is_failure_at(self, ip: u16) -> bool {
        matches!(self, Self::Failed(_)) && self.offset() == Some(ip)
    }
}

/// Decides `opened`, and closes it. Part of each callback, which knows what kind of place it is.
#[inline(always)]
pub fn next(vcpu: &mut Vcpu, opened: &Opened, to: Where) {
    // Nearly all are branches that were executed, in this or in another way.
    match opened {
        Opened::Branch { branch, counted, .. }
            if !to.may_be_at(branch) && vcpu.is_plain(branch, *counted) =>
        {
            if *counted {
                if branch.kind == BranchKind::Conditional && fell(branch, to) {
                    vcpu.fell(branch);
                }
            } else {
                plain(vcpu, branch, to);
            }
        }
        _ => rarer(vcpu, opened, to),
    }
    vcpu.close();
}

/// Whether a conditional jump, of which offsets tell the way, was not taken.
#[inline(always)]
fn fell(branch: &Branch, to: Where) -> bool {
    to.offset().is_none_or(|offset| offset == branch.next)
}

/// A branch was executed of which the predictor has to know, and nobody else. Code of its own for each of the kinds that are
/// frequent: this runs at the end of nearly every block.
#[inline(always)]
fn plain(vcpu: &mut Vcpu, branch: &Branch, to: Where) {
    use BranchKind::{Conditional, RelativeCall, Return};
    let (taken, offset) = (!fell(branch, to), to.offset());
    match branch.kind {
        Conditional => _ = vcpu.predict(branch, Conditional, taken, None),
        RelativeCall => _ = vcpu.predict(branch, RelativeCall, true, None),
        Return => _ = vcpu.predict(branch, Return, true, offset),
        _ => other(vcpu, branch, offset),
    }
}

/// The same for the other kinds.
#[inline(never)]
fn other(vcpu: &mut Vcpu, branch: &Branch, to: Option<u16>) {
    vcpu.predict(branch, branch.kind, true, to);
}

#[inline(never)]
fn rarer(vcpu: &mut Vcpu, opened: &Opened, to: Where) {
    let iterated = *vcpu.word(OPEN) == ITERATED;
    let restarts =
        !iterated && matches!(to, Where::Offset(offset) if vcpu.restarts(opened, offset));
    match opened {
        Opened::Early { ip, tally, .. } if restarts || to.is_failure_at(*ip) => {
            vcpu.sums.add(tally, u64::MAX);
            vcpu.memory.drop_pending();
        }
        Opened::Early { .. } => vcpu.commit(),
        Opened::Repeat { ip, .. } if restarts || to.is_failure_at(*ip) && !iterated => {
            vcpu.sums.add(&Tally::one(tally::STRING_STARTS), u64::MAX);
            vcpu.memory.drop_pending();
        }
        Opened::Repeat { next, passes, .. } => {
            if to.offset().is_none_or(|offset| offset == *next) {
                vcpu.string_ends += 1;
                if *passes {
                    vcpu.end_qualified_string();
                }
                vcpu.memory.end_string();
            }
        }
        Opened::Branch { branch, early, .. }
            if restarts || branch.can_fail() && to.is_failure_at(branch.from) =>
        {
            vcpu.sums.add(early, u64::MAX);
            vcpu.memory.drop_pending();
        }
        Opened::Branch { branch, bytes, counted, .. } => {
            vcpu.commit();
            self::branch(vcpu, branch, *bytes, *counted, to);
        }
    }
}

/// A branch is done about which more must be known.
fn branch(vcpu: &mut Vcpu, branch: &Branch, bytes: u16, counted: bool, to: Where) {
    let mut fell = branch.kind == BranchKind::Conditional && fell(branch, to);
    if let Some(condition) = branch.undecided {
        // Without a line the guest could not be made to leave.
        fell = !vcpu.behind.is_some_and(|behind| condition.holds(&behind));
    }
    if fell && branch.ambiguous {
        fell = rip(vcpu, to).wrapping_sub(vcpu.block_start) == u64::from(bytes);
    }
    if !counted {
        let missed = vcpu.predict(branch, branch.kind, !fell, to.offset());
        if !fell && vcpu.records(branch) {
            let to = rip(vcpu, to);
            vcpu.record(branch, bytes, to, missed);
        }
    } else if fell {
        vcpu.fell(branch);
    } else if branch.passes == Passes::ByData {
        // No conditional jump accesses anything.
        vcpu.pass_branch(branch, Occurrence::of(branch.kind, true, branch.backward, false));
    }
}

/// Where the guest stands.
fn rip(vcpu: &mut Vcpu, to: Where) -> u64 {
    match to {
        Where::Left(rip) | Where::Failed(rip) => rip,
        Where::FellThrough | Where::Offset(_) => vcpu.rip(),
    }
}
