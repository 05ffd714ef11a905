//! A branch as the last-branch records and the branch events see it.

use crate::Ring;

/// The kinds that the filters of the last-branch records tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A retired branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Linear address of the branch instruction.
    pub from: u64,
    /// Linear address where execution went on. For a conditional jump that was not taken: where it
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
    /// Core cycles since the branch before it; the record saturates at 65,535.
    pub cycles: u64,
}
