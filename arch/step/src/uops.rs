//! What an instruction is to the execution ports of the emulated PMU.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use pmu_model::uarch::UopClass;

/// The class of what it computes; `None`: it does nothing but move between a register and memory, or nothing at all. Its accesses
/// are not in it.
///
/// Branches are told first, then the instructions that are listed by their names; what else works on a vector register is `vec`, and the
/// rest `alu`.
#[must_use]
pub fn uop_class(instruction: &Instruction) -> Option<UopClass> {
    if instruction.flow_control() != FlowControl::Next {
        return Some(UopClass::Branch);
    }
    let mnemonic = instruction.mnemonic();
    if mnemonic == Mnemonic::Nop || is_move(mnemonic) && has_memory(instruction) {
        return None;
    }
    if matches!(mnemonic, Mnemonic::Push | Mnemonic::Pop) {
        return None;
    }
    let class = named(mnemonic);
    Some(class.unwrap_or(if has_vector(instruction) { UopClass::Vec } else { UopClass::Alu }))
}

fn has_memory(instruction: &Instruction) -> bool {
    instruction.op_kinds().any(|kind| kind == OpKind::Memory)
}

fn has_vector(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|index| {
        let register = instruction.op_register(index);
        instruction.op_kind(index) == OpKind::Register
            && (register.is_vector_register() || register.is_mm())
    })
}

/// Moves that only load or only store where an operand is memory.
fn is_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(mnemonic, Mov | Movzx | Movsx | Movsxd | Movbe | Movnti | Lddqu | Vlddqu)
        || matches!(mnemonic, Movd | Movq | Vmovd | Vmovq | Movntdq | Vmovntdq | Movntq)
        || matches!(mnemonic, Movups | Movupd | Movaps | Movapd | Movdqu | Movdqa)
        || matches!(mnemonic, Vmovups | Vmovupd | Vmovaps | Vmovapd | Vmovdqu | Vmovdqa)
        || matches!(mnemonic, Movss | Movsd | Vmovss | Vmovsd)
}

fn named(mnemonic: Mnemonic) -> Option<UopClass> {
    use Mnemonic::*;
    Some(match mnemonic {
        Shl | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd | Sarx | Shlx | Shrx | Rorx => {
            UopClass::Shift
        }
        Mul | Imul | Mulx => UopClass::Mul,
        Div | Idiv => UopClass::Div,
        Lea => UopClass::Lea,
        Popcnt | Lzcnt | Tzcnt | Bsf | Bsr | Pdep | Pext | Crc32 => UopClass::Bit,
        Divps | Divpd | Divss | Divsd | Vdivps | Vdivpd | Vdivss | Vdivsd | Sqrtps | Sqrtpd
        | Sqrtss | Sqrtsd | Vsqrtps | Vsqrtpd | Vsqrtss | Vsqrtsd => UopClass::Fdiv,
        Addps | Addpd | Addss | Addsd | Vaddps | Vaddpd | Vaddss | Vaddsd | Subps | Subpd
        | Subss | Subsd | Vsubps | Vsubpd | Vsubss | Vsubsd | Mulps | Mulpd | Mulss | Mulsd
        | Vmulps | Vmulpd | Vmulss | Vmulsd | Minps | Minpd | Minss | Minsd | Maxps | Maxpd
        | Maxss | Maxsd => UopClass::Fp,
        Pshufb | Pshufd | Pshufhw | Pshuflw | Pshufw | Vpshufb | Vpshufd | Vpshufhw | Vpshuflw
        | Shufps | Shufpd | Vshufps | Vshufpd | Palignr | Vpalignr | Punpcklbw | Punpcklwd
        | Punpckldq | Punpcklqdq | Punpckhbw | Punpckhwd | Punpckhdq | Punpckhqdq | Unpcklps
        | Unpckhps | Unpcklpd | Unpckhpd | Movddup | Vmovddup => UopClass::Shuffle,
        _ => return None,
    })
}
