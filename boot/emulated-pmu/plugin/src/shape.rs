//! How the addresses of an instruction's accesses are found, and when it is known that they count.

use crate::leaves::{self, End};
use iced_x86::{Instruction, Mnemonic};
use pmu_model::uarch::AccessKind;
use step::Touch;

/// What is done about the accesses of an instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// It has none.
    None,
    /// One, by one access of QEMU's, after which nothing can fail.
    Single,
    /// A load and a store, of which the store is the last thing that can fail.
    Pair,
    /// One, by several accesses of QEMU's that cover it from its start on, after which nothing can fail.
    Spanning,
    /// One whose start QEMU accesses first; the instruction can fail after it, or QEMU leaves parts out, or adds some.
    Deferred,
    /// Any number, by the registers.
    Registers,
}

/// Most bytes of an access that QEMU covers wholly: a vector of 256 bits.
const MAX_COVERED: u32 = 32;

impl Shape {
    /// Of an instruction with these accesses.
    pub fn of(instruction: &Instruction, touches: &[Touch], end: End) -> Self {
        if step::maintenance(instruction).is_some() {
            return Self::Registers;
        }
        let [first, rest @ ..] = touches else { return Self::None };
        match (end, rest) {
            (End::Load | End::Store, []) => Self::Single,
            (End::Store, [_]) => Self::Pair,
            (_, []) if is_conditional(instruction) => Self::Registers,
            (_, []) if leaves::is_system(instruction, None) || first.bytes > MAX_COVERED => {
                Self::Deferred
            }
            // The segment is loaded after the pointer.
            (_, []) if instruction.is_jmp_far_indirect() => Self::Deferred,
            (_, []) if is_read_beyond(instruction) => Self::Deferred,
            // Load and store of the same place may be two accesses or one.
            (_, []) if first.kind == AccessKind::LoadStore => Self::Deferred,
            (_, []) => Self::Spanning,
            _ => Self::Registers,
        }
    }

    /// Whether its accesses are known to be done only when the next instruction starts.
    pub fn is_deferred(self) -> bool {
        matches!(self, Self::Deferred | Self::Registers)
    }
}

/// Whether QEMU 10 reads on after the operand, whose width it takes for that of the destination.
fn is_read_beyond(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Vinserti128 | Mnemonic::Vinsertf128 | Mnemonic::Vcvtdq2pd
    )
}

/// Whether QEMU may leave its access out, or begin elsewhere.
fn is_conditional(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    instruction.is_vsib()
        || matches!(instruction.mnemonic(), Maskmovq | Maskmovdqu | Vmaskmovdqu | Enter)
        // From the last byte on; the parts that it has registers for.
        || matches!(instruction.mnemonic(), Fbld | Fbstp | Fldenv)
        || matches!(instruction.mnemonic(), Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq)
        || matches!(instruction.mnemonic(), Xsave | Xsave64 | Xsaveopt | Xsaveopt64 | Xsavec)
        || matches!(instruction.mnemonic(), Xsavec64 | Xsaves | Xsaves64 | Xrstor | Xrstor64)
        || matches!(instruction.mnemonic(), Xrstors | Xrstors64 | Cmpxchg16b | Cmpxchg8b)
}
