//! String instructions with a repeat prefix.
//!
//! Silicon retires one instruction, however many iterations it makes. From the registers before and after, this module
//! states how many there were, and what they touched.

use iced_x86::{Code, Instruction};
use pmu_model::uarch::AccessKind;

/// A repeated string instruction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StringOperation {
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
    let of = |element_bytes, source, destination| {
        Some(StringOperation { element_bytes, source, destination })
    };
    match instruction.code() {
        Code::Movsb_m8_m8 => of(1, true, store),
        Code::Movsw_m16_m16 => of(2, true, store),
        Code::Movsd_m32_m32 => of(4, true, store),
        Code::Movsq_m64_m64 => of(8, true, store),
        Code::Stosb_m8_AL => of(1, false, store),
        Code::Stosw_m16_AX => of(2, false, store),
        Code::Stosd_m32_EAX => of(4, false, store),
        Code::Stosq_m64_RAX => of(8, false, store),
        Code::Lodsb_AL_m8 => of(1, true, None),
        Code::Lodsw_AX_m16 => of(2, true, None),
        Code::Lodsd_EAX_m32 => of(4, true, None),
        Code::Lodsq_RAX_m64 => of(8, true, None),
        Code::Insb_m8_DX => of(1, false, store),
        Code::Insw_m16_DX => of(2, false, store),
        Code::Insd_m32_DX => of(4, false, store),
        Code::Outsb_DX_m8 => of(1, true, None),
        Code::Outsw_DX_m16 => of(2, true, None),
        Code::Outsd_DX_m32 => of(4, true, None),
        Code::Cmpsb_m8_m8 => of(1, true, load),
        Code::Cmpsw_m16_m16 => of(2, true, load),
        Code::Cmpsd_m32_m32 => of(4, true, load),
        Code::Cmpsq_m64_m64 => of(8, true, load),
        Code::Scasb_AL_m8 => of(1, false, load),
        Code::Scasw_AX_m16 => of(2, false, load),
        Code::Scasd_EAX_m32 => of(4, false, load),
        Code::Scasq_RAX_m64 => of(8, false, load),
        _ => None,
    }
}

impl StringOperation {
    /// The count register's part that counts, by address size.
    #[must_use]
    pub fn count_mask(instruction: &Instruction) -> u64 {
        // A string operand's kind has the address size.
        use iced_x86::OpKind;
        for operand in 0..instruction.op_count() {
            match instruction.op_kind(operand) {
                OpKind::MemoryESRDI | OpKind::MemorySegRDI | OpKind::MemorySegRSI => {
                    return u64::MAX;
                }
                OpKind::MemoryESEDI | OpKind::MemorySegEDI | OpKind::MemorySegESI => {
                    return 0xffff_ffff;
                }
                OpKind::MemoryESDI | OpKind::MemorySegDI | OpKind::MemorySegSI => return 0xffff,
                _ => {}
            }
        }
        u64::MAX
    }
}
