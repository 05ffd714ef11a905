//! The data that an instruction touches.

use crate::{Maintenance, maintenance};
use iced_x86::{
    CodeSize, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use pmu_model::uarch::AccessKind;

/// One access, by linear address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Touch {
    /// First byte.
    pub linear: u64,
    /// Bytes.
    pub bytes: u32,
    /// Load, store or both.
    pub kind: AccessKind,
    /// With LOCK semantics.
    pub locked: bool,
    /// A store with a non-temporal hint.
    pub non_temporal: bool,
}

/// Calls `each` for every access of `instruction`, in the decoder's order. `register` gives the registers as they are
/// before the instruction; for a segment register, its base. Repeated string instructions are not for this function.
pub fn accesses(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    mut register: impl FnMut(Register) -> u64,
    mut each: impl FnMut(Touch),
) {
    if let Some(Maintenance::FlushLine { .. }) = maintenance(instruction) {
        // It is checked as a load is (SDM vol. 2, CLFLUSH), and loads nothing.
        return;
    }
    let locked = instruction.has_lock_prefix()
        || (instruction.mnemonic() == Mnemonic::Xchg && instruction.memory_size().size() > 0);
    let hint = is_non_temporal(instruction.mnemonic());
    for memory in factory.info(instruction).used_memory() {
        let kind = match memory.access() {
            OpAccess::Read | OpAccess::CondRead => AccessKind::Load,
            OpAccess::Write | OpAccess::CondWrite => AccessKind::Store,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => AccessKind::LoadStore,
            OpAccess::None | OpAccess::NoMemAccess => continue,
        };
        // The element index matters to gathers alone, whose first element stands for all.
        let Some(linear) = memory.virtual_address(0, |name, _, _| Some(register(name))) else {
            continue;
        };
        let linear = linear.wrapping_add(bit_string(instruction, &mut register));
        // Outside 64-bit mode linear addresses have 32 bits (SDM vol. 1, 3.3.7).
        let is_wide = instruction.code_size() == CodeSize::Code64;
        let linear = if is_wide { linear } else { linear & 0xffff_ffff };
        let bytes = memory.memory_size().size().max(1) as u32;
        let non_temporal = hint && kind == AccessKind::Store;
        each(Touch { linear, bytes, kind, locked, non_temporal });
    }
}

/// Whether its stores have a non-temporal hint (SDM vol. 1, 10.4.6.2; AMD APM vol. 4, MOVNTSD and MOVNTSS).
fn is_non_temporal(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(mnemonic, Movnti | Movntdq | Movntps | Movntpd | Movntq | Movntsd | Movntss)
        || matches!(mnemonic, Vmovntdq | Vmovntps | Vmovntpd)
        || matches!(mnemonic, Maskmovq | Maskmovdqu | Vmaskmovdqu)
}

/// How far after its operand's address a bit test by a register goes: bit strings reach as far as the register says
/// (SDM vol. 2, 3.1.1.9).
fn bit_string(instruction: &Instruction, mut register: impl FnMut(Register) -> u64) -> u64 {
    use Mnemonic::{Bt, Btc, Btr, Bts};
    let tests = matches!(instruction.mnemonic(), Bt | Btc | Btr | Bts);
    let by_register = instruction.op1_kind() == OpKind::Register;
    if !tests || !by_register || instruction.op0_kind() != OpKind::Memory {
        return 0;
    }
    let name = instruction.op1_register();
    let value = register(name);
    let bit = match name.size() {
        2 => i64::from(value as i16),
        4 => i64::from(value as i32),
        _ => value as i64,
    };
    let bytes = name.size() as i64;
    (bit.div_euclid(8 * bytes) * bytes) as u64
}
