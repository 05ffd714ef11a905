//! A branch as the last-branch records and the branch events see it.

use strum::{EnumCount, VariantArray};

use crate::Ring;

/// The kinds that the filters of the last-branch records distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EnumCount, VariantArray)]
pub enum BranchKind {
    /// Jcc, JrCXZ, LOOPcc.
    Conditional,
    /// Near relative CALL.
    RelativeCall,
    /// Near indirect CALL.
    IndirectCall,
    /// Near RET.
    Return,
    /// Near relative JMP.
    RelativeJump,
    /// Near indirect JMP.
    IndirectJump,
    /// Everything that changes CS or the privilege: far CALL, JMP and RET, INT n, IRET, SYSCALL and
    /// its kin, and interrupts and exceptions.
    Far,
}

impl BranchKind {
    /// Every kind, in the order of its discriminant.
    pub const ALL: [Self; Self::COUNT] = *Self::VARIANTS.first_chunk().unwrap();
}

/// A retired branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Linear address of the branch instruction.
    pub from: u64,
    /// Linear address where execution continued. For a conditional jump that was not taken: where it
    /// would have gone, as the predictor looks at it.
    pub to: u64,
    /// Its kind.
    pub kind: BranchKind,
    /// False for a conditional jump that fell through.
    pub taken: bool,
    /// Whether the predictor was wrong.
    pub mispredicted: bool,
    /// The ring in which the branch ended.
    pub ring: Ring,
    /// Core cycles since the branch that was recorded before it (Intel SDM volume 3, on LBR_INFO: since the last update of
    /// the stack); the record saturates at 65,535.
    pub cycles: u64,
}
