//! String instructions with a repeat prefix.
//!
//! Silicon retires one instruction, however many iterations it makes. From the registers before and after, this module
//! tells how many there were, and what they touched.

use iced_x86::{Code, Instruction, Register};
use pmu_model::uarch::AccessKind;

/// What ends the repetition, besides the count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Repeat {
    /// The count alone: MOVS, STOS, LODS, INS, OUTS.
    Count,
    /// Also a comparison: CMPS and SCAS.
    Comparison,
}

/// A repeated string instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StringOperation {
    /// What ends it.
    pub repeat: Repeat,
    /// Bytes of an element.
    pub element_bytes: u8,
    /// It reads at RSI.
    pub source: bool,
    /// What it does at RDI, if it goes there.
    pub destination: Option<AccessKind>,
}

/// The instruction as a repeated string instruction, if it is one.
pub(super) fn operation(instruction: &Instruction) -> Option<StringOperation> {
    if !instruction.has_rep_prefix() && !instruction.has_repne_prefix() {
        return None;
    }
    let load = Some(AccessKind::Load);
    let store = Some(AccessKind::Store);
    let of = |element_bytes, repeat, source, destination| {
        Some(StringOperation { repeat, element_bytes, source, destination })
    };
    match instruction.code() {
        Code::Movsb_m8_m8 => of(1, Repeat::Count, true, store),
        Code::Movsw_m16_m16 => of(2, Repeat::Count, true, store),
        Code::Movsd_m32_m32 => of(4, Repeat::Count, true, store),
        Code::Movsq_m64_m64 => of(8, Repeat::Count, true, store),
        Code::Stosb_m8_AL => of(1, Repeat::Count, false, store),
        Code::Stosw_m16_AX => of(2, Repeat::Count, false, store),
        Code::Stosd_m32_EAX => of(4, Repeat::Count, false, store),
        Code::Stosq_m64_RAX => of(8, Repeat::Count, false, store),
        Code::Lodsb_AL_m8 => of(1, Repeat::Count, true, None),
        Code::Lodsw_AX_m16 => of(2, Repeat::Count, true, None),
        Code::Lodsd_EAX_m32 => of(4, Repeat::Count, true, None),
        Code::Lodsq_RAX_m64 => of(8, Repeat::Count, true, None),
        Code::Insb_m8_DX => of(1, Repeat::Count, false, store),
        Code::Insw_m16_DX => of(2, Repeat::Count, false, store),
        Code::Insd_m32_DX => of(4, Repeat::Count, false, store),
        Code::Outsb_DX_m8 => of(1, Repeat::Count, true, None),
        Code::Outsw_DX_m16 => of(2, Repeat::Count, true, None),
        Code::Outsd_DX_m32 => of(4, Repeat::Count, true, None),
        Code::Cmpsb_m8_m8 => of(1, Repeat::Comparison, true, load),
        Code::Cmpsw_m16_m16 => of(2, Repeat::Comparison, true, load),
        Code::Cmpsd_m32_m32 => of(4, Repeat::Comparison, true, load),
        Code::Cmpsq_m64_m64 => of(8, Repeat::Comparison, true, load),
        Code::Scasb_AL_m8 => of(1, Repeat::Comparison, false, load),
        Code::Scasw_AX_m16 => of(2, Repeat::Comparison, false, load),
        Code::Scasd_EAX_m32 => of(4, Repeat::Comparison, false, load),
        Code::Scasq_RAX_m64 => of(8, Repeat::Comparison, false, load),
        _ => None,
    }
}

impl StringOperation {
    /// The count register's part that counts, by address size.
    #[must_use]
    pub fn count_mask(instruction: &Instruction) -> u64 {
        // The base register of a string operand has the address size.
        let narrow = [Register::ESI, Register::EDI];
        let is_32_bit = (0..instruction.op_count()).any(|operand| {
            use iced_x86::OpKind::{MemoryESEDI, MemorySegEDI, MemorySegESI};
            matches!(instruction.op_kind(operand), MemoryESEDI | MemorySegEDI | MemorySegESI)
        }) || narrow.contains(&instruction.memory_base());
        if is_32_bit { 0xffff_ffff } else { u64::MAX }
    }

    /// How often QEMU's translator, under icount, counts an execution that made `iterations` of `count` wanted ones and
    /// then went on: once for each, and once for noticing that the count is used up.
    #[must_use]
    pub fn translator_counts(self, count: u64, iterations: u64) -> u64 {
        let used_up = iterations == count;
        match self.repeat {
            Repeat::Comparison if iterations > 0 && !used_up => iterations,
            // A comparison that fails in the very last iteration ends it by whichever is looked at first; see the
            // calibration's note: the flags are looked at behind the count.
            _ => iterations + 1,
        }
    }
}
