//! Which branches are recorded.

use super::Lbr;
use crate::Ring;
use crate::branch::{Branch, BranchKind};
use crate::model::{LbrKind, Spec};

/// LBR_SELECT and AMD's LbrSelect: a set bit suppresses.
mod select {
    pub const KERNEL: u64 = 1 << 0;
    pub const USER: u64 = 1 << 1;
    pub const JCC: u64 = 1 << 2;
    pub const RELATIVE_CALL: u64 = 1 << 3;
    pub const INDIRECT_CALL: u64 = 1 << 4;
    pub const RETURN: u64 = 1 << 5;
    pub const INDIRECT_JUMP: u64 = 1 << 6;
    pub const RELATIVE_JUMP: u64 = 1 << 7;
    pub const FAR: u64 = 1 << 8;
    /// Haswell and later.
    pub const CALL_STACK: u64 = 1 << 9;
}

/// ARCH_LBR_CTL: a set bit records.
mod control {
    pub const KERNEL: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;
    pub const CALL_STACK: u64 = 1 << 3;
    pub const JCC: u64 = 1 << 16;
    pub const RELATIVE_JUMP: u64 = 1 << 17;
    pub const INDIRECT_JUMP: u64 = 1 << 18;
    pub const RELATIVE_CALL: u64 = 1 << 19;
    pub const INDIRECT_CALL: u64 = 1 << 20;
    pub const RETURN: u64 = 1 << 21;
    pub const OTHER: u64 = 1 << 22;
}

/// The bit of a select register that suppresses a kind.
const fn suppressed_by(kind: BranchKind) -> u64 {
    match kind {
        BranchKind::Conditional => select::JCC,
        BranchKind::RelativeCall => select::RELATIVE_CALL,
        BranchKind::IndirectCall => select::INDIRECT_CALL,
        BranchKind::Return => select::RETURN,
        BranchKind::RelativeJump => select::RELATIVE_JUMP,
        BranchKind::IndirectJump => select::INDIRECT_JUMP,
        BranchKind::Far => select::FAR,
    }
}

/// The bit of ARCH_LBR_CTL that records a kind.
const fn recorded_by(kind: BranchKind) -> u64 {
    match kind {
        BranchKind::Conditional => control::JCC,
        BranchKind::RelativeCall => control::RELATIVE_CALL,
        BranchKind::IndirectCall => control::INDIRECT_CALL,
        BranchKind::Return => control::RETURN,
        BranchKind::RelativeJump => control::RELATIVE_JUMP,
        BranchKind::IndirectJump => control::INDIRECT_JUMP,
        BranchKind::Far => control::OTHER,
    }
}

/// Nehalem's and Westmere's erratum, as Linux works around it: a relative call needs both kinds of
/// jumps to be recorded, an indirect call indirect jumps.
const fn needed_on_nehalem(kind: BranchKind) -> u64 {
    match kind {
        BranchKind::RelativeCall => select::RELATIVE_JUMP | select::INDIRECT_JUMP,
        BranchKind::IndirectCall => select::INDIRECT_JUMP,
        _ => 0,
    }
}

impl Lbr {
    /// Whether the filters let a branch through.
    pub(crate) fn passes(&self, spec: &Spec, branch: &Branch) -> bool {
        let suppressing = match &spec.lbr {
            LbrKind::None | LbrKind::AmdSingle => 0,
            LbrKind::Arch(_) => {
                let ring = match branch.ring {
                    Ring::Kernel => control::KERNEL,
                    Ring::User => control::USER,
                };
                let wanted = ring | recorded_by(branch.kind);
                return self.control & wanted == wanted;
            }
            LbrKind::Legacy(legacy) if legacy.calls_need_jumps => {
                suppressed_by(branch.kind) | needed_on_nehalem(branch.kind)
            }
            LbrKind::Legacy(_) | LbrKind::AmdV2 { .. } => suppressed_by(branch.kind),
        };
        let ring = match branch.ring {
            Ring::Kernel => select::KERNEL,
            Ring::User => select::USER,
        };
        self.select & (ring | suppressing) == 0
    }

    /// Whether calls and returns are kept as a stack.
    pub(crate) fn call_stack(&self, spec: &Spec) -> bool {
        match spec.lbr {
            LbrKind::Legacy(_) => self.select & select::CALL_STACK != 0,
            LbrKind::Arch(_) => self.control & control::CALL_STACK != 0,
            LbrKind::None | LbrKind::AmdV2 { .. } | LbrKind::AmdSingle => false,
        }
    }
}
