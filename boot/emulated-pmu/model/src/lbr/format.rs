//! What a record looks like in the registers of a generation.

use super::Record;
use crate::branch::{Branch, BranchKind};
use crate::model::{LbrKind, Spec};
use crate::mutation::{Mutation, Planted};

/// FROM\[63\] or INFO\[63\].
pub(super) const MISPREDICTED: u64 = 1 << 63;
/// INFO\[60\] of an architectural record.
const CYCLES_VALID: u64 = 1 << 60;
/// FROM\[62:61\], the TSX flags of Haswell: 0 without TSX, not part of the sign extension.
const TSX_FLAGS: u64 = 3 << 61;
/// AMD's addresses: 58 bits.
pub(super) const AMD_ADDRESS: u64 = (1 << 58) - 1;
/// AMD's TO\[63\]: the record is valid.
pub(super) const AMD_VALID: u64 = 1 << 63;
/// AMD's TO\[62\]: the branch was speculative.
pub(super) const AMD_SPECULATIVE: u64 = 1 << 62;

/// Type of an architectural record, INFO\[59:56\].
const fn arch_type(kind: BranchKind) -> u64 {
    match kind {
        BranchKind::Conditional => 0,
        BranchKind::IndirectJump => 1,
        BranchKind::RelativeJump => 2,
        BranchKind::IndirectCall => 3,
        BranchKind::RelativeCall => 4,
        BranchKind::Return => 5,
        BranchKind::Far => 8,
    }
}

/// The record of a branch.
pub(super) fn record(spec: &Spec, branch: &Branch, planted: Planted) -> Record {
    let missed = branch.mispredicted && !planted.is(Mutation::LbrMispredictLost);
    let flag = if missed { MISPREDICTED } else { 0 };
    let cycles = branch.cycles.min(0xFFFF);
    let (from, to) = (branch.from, branch.to);
    match &spec.lbr {
        LbrKind::Legacy(legacy) if legacy.flags_in_from => {
            // Format 4 has the TSX flags below the misprediction; format 3 has the address there.
            let haswell = spec.intel().is_some_and(|intel| intel.capabilities & 0x3F == 4);
            let kept = !MISPREDICTED & if haswell { !TSX_FLAGS } else { u64::MAX };
            Record { from: from & kept | flag, to, info: 0 }
        }
        LbrKind::Legacy(legacy) if legacy.info.is_some() => {
            Record { from, to, info: flag | cycles }
        }
        LbrKind::Arch(_) => {
            Record { from, to, info: flag | CYCLES_VALID | arch_type(branch.kind) << 56 | cycles }
        }
        LbrKind::AmdV2 { .. } => {
            Record { from: from & AMD_ADDRESS | flag, to: to & AMD_ADDRESS | AMD_VALID, info: 0 }
        }
        LbrKind::Legacy(_) | LbrKind::AmdSingle | LbrKind::None => Record { from, to, info: 0 },
    }
}
