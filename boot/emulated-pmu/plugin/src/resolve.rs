//! Deciding what a block left open.

use crate::cells::OPEN;
use crate::facts::Branch;
use crate::opened::{BEGUN, ITERATED, LOADED, Opened};
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

/// What became of an element of a repeated string instruction that began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Element {
    /// It is done, and others may follow.
    Done,
    /// There was none left, and the instruction ended.
    Ended,
    /// It raised an exception, or begins once more.
    Failed,
}

/// What became of it. `state`: the word of what is open. `noted`, `count`: RCX before an element with two loads, and now.
pub const fn element(opened: &Opened, state: u64, noted: u64, count: u64) -> Element {
    let &Opened::Repeat { pair, count_mask, .. } = opened else { return Element::Done };
    let changed = (count ^ noted) & count_mask != 0;
    match state {
        LOADED => Element::Done,
        _ if pair && changed => Element::Done,
        _ if count & count_mask == 0 => Element::Ended,
        _ => Element::Failed,
    }
}

/// Decides a repeated string instruction in a mode in which the guest does not leave for its faults, and closes it. `count`: RCX.
pub fn string(vcpu: &mut Vcpu, opened: &Opened, to: Where, count: u64) {
    let &Opened::Repeat { ip, next, .. } = opened else { return vcpu.close() };
    let state = *vcpu.word(OPEN);
    let falls = to.offset().is_none_or(|offset| offset == next);
    let element = element(opened, state, vcpu.noted_count, count);
    // What comes after its load may fail.
    if element == Element::Failed || to.is_failure_at(ip) {
        vcpu.sums.add(&Tally::one(tally::STRING_STARTS), u64::MAX);
    } else if falls || element == Element::Ended {
        vcpu.string_ends += 1;
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
    let restarts = matches!(to, Where::Offset(offset) if opened.restarts_at(offset)) && !iterated;
    match opened {
        Opened::Early { ip, tally } if restarts || to.is_failure_at(*ip) => {
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

/// Whether [`string`] decides what is open.
pub const fn is_string(state: u64) -> bool {
    matches!(state, BEGUN | LOADED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e1_what_became_of_an_element_of_a_string_is_seen_by_its_count() {
        use Element::{Done, Ended, Failed};
        let of = |pair, state, noted, count| {
            let (ip, next, count_mask) = (0x10, 0x12, 0xffff_ffff);
            let opened =
                Opened::Repeat { ip, next, stores: false, passes: false, pair, count_mask };
            element(&opened, state, noted, count)
        };
        // A load that was done, with more to come or not.
        assert_eq!([of(false, LOADED, 0, 5), of(false, LOADED, 0, 0)], [Done; 2]);
        // One of the two loads is not enough.
        assert_eq!([of(false, BEGUN, 9, 5), of(true, BEGUN, 5, 5)], [Failed; 2]);
        assert_eq!([of(true, BEGUN, 5, 4), of(true, BEGUN, 1, 0)], [Done; 2]);
        // Nothing was left, in the part of RCX that counts.
        assert_eq!([of(false, BEGUN, 9, 0), of(true, BEGUN, 0, 1 << 32)], [Ended; 2]);
    }
}
