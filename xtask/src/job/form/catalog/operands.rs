//! Operand classes of an encoding.

use crate::job::form::branch;
use crate::job::form::compatibility;
use crate::job::form::privileged;
use crate::job::form::registers::Kind;
use crate::job::form::text::Operand;
use iced_x86::{Code, OpCodeOperandKind};

/// The lists of operand classes that an encoding can have: two where an operand is a register or memory.
///
/// # Errors
/// It has an operand of which there is no class.
pub fn of(code: Code) -> Result<Vec<Vec<Operand>>, String> {
    let op = code.op_code();
    // Memory of a size that no class has, or of none, such as LEA's: `m`.
    let bits = op.memory_size().size() * 8;
    let sizes = [8, 16, 32, 64, 128, 256, 512];
    let memory = Operand::Memory(sizes.contains(&bits).then_some(bits as u16));
    let mut lists: Vec<Vec<Operand>> = vec![Vec::new()];
    for &kind in op.op_kinds() {
        let choices = choices(code, kind, &memory)?;
        lists = choices
            .iter()
            .flat_map(|choice| {
                lists.iter().map(move |list| {
                    let mut list = list.clone();
                    list.push(choice.clone());
                    list
                })
            })
            .collect();
    }
    Ok(lists)
}

/// What an operand can be.
fn choices(code: Code, kind: OpCodeOperandKind, memory: &Operand) -> Result<Vec<Operand>, String> {
    use OpCodeOperandKind as K;
    let general = |bits| Operand::Register { kind: Kind::General, bits };
    let vector = |bits| Operand::Register { kind: Kind::Vector, bits };
    let mmx = Operand::Register { kind: Kind::Mmx, bits: 64 };
    let mask = Operand::Register { kind: Kind::Mask, bits: 64 };
    let fixed = |name: &str| Operand::Fixed(name.to_string());
    let refused = |reason: &str| Err(reason.to_string());
    let one = |operand| Ok(vec![operand]);
    let or_memory = |operand| Ok(vec![operand, memory.clone()]);
    match kind {
        K::r8_or_mem => or_memory(general(8)),
        K::r16_or_mem => or_memory(general(16)),
        K::r32_or_mem => or_memory(general(32)),
        K::r64_or_mem => or_memory(general(64)),
        K::mm_or_mem => or_memory(mmx),
        K::xmm_or_mem => or_memory(vector(128)),
        K::ymm_or_mem => or_memory(vector(256)),
        K::zmm_or_mem => or_memory(vector(512)),
        K::k_or_mem => or_memory(mask),
        K::mem => one(memory.clone()),
        K::r8_reg | K::r8_opcode => one(general(8)),
        K::r16_reg | K::r16_rm | K::r16_opcode => one(general(16)),
        K::r32_reg | K::r32_rm | K::r32_opcode | K::r32_vvvv => one(general(32)),
        K::r64_reg | K::r64_rm | K::r64_opcode | K::r64_vvvv => one(general(64)),
        K::mm_reg | K::mm_rm => one(mmx),
        K::k_reg | K::k_rm | K::k_vvvv => one(mask),
        K::xmm_reg | K::xmm_rm | K::xmm_vvvv | K::xmm_is4 | K::xmm_is5 => one(vector(128)),
        K::ymm_reg | K::ymm_rm | K::ymm_vvvv | K::ymm_is4 | K::ymm_is5 => one(vector(256)),
        K::zmm_reg | K::zmm_rm | K::zmm_vvvv => one(vector(512)),
        K::al => one(fixed("al")),
        K::cl => one(fixed("cl")),
        K::ax => one(fixed("ax")),
        K::dx => one(fixed("dx")),
        K::eax => one(fixed("eax")),
        K::rax => one(fixed("rax")),
        K::imm8_const_1 => one(fixed("1")),
        K::imm8 | K::imm4_m2z | K::imm8sex16 | K::imm8sex32 | K::imm8sex64 => {
            one(Operand::Immediate(8))
        }
        K::imm16 => one(Operand::Immediate(16)),
        K::imm32 | K::imm32sex64 => one(Operand::Immediate(32)),
        K::imm64 => one(Operand::Immediate(64)),
        K::mem_vsib32x => one(Operand::Indexed { index: 32, bits: 128 }),
        K::mem_vsib32y => one(Operand::Indexed { index: 32, bits: 256 }),
        K::mem_vsib32z => one(Operand::Indexed { index: 32, bits: 512 }),
        K::mem_vsib64x => one(Operand::Indexed { index: 64, bits: 128 }),
        K::mem_vsib64y => one(Operand::Indexed { index: 64, bits: 256 }),
        K::mem_vsib64z => one(Operand::Indexed { index: 64, bits: 512 }),
        K::seg_reg | K::es | K::cs | K::ss | K::ds | K::fs | K::gs => {
            refused("it works on a segment register")
        }
        // 32-bit code has no CR8.
        K::cr_reg => {
            let all = privileged::registers("cr").into_iter();
            Ok(all
                .filter(|one| code.op_code().mode64() || compatibility::lacks(one).is_none())
                .collect())
        }
        K::dr_reg => Ok(privileged::registers("dr")),
        K::tr_reg => refused("it is privileged, and works on the machine's state"),
        K::st0 => one(fixed("st0")),
        K::sti_opcode => one(Operand::Register { kind: Kind::X87, bits: 80 }),
        K::tmm_reg | K::tmm_rm | K::tmm_vvvv => {
            one(Operand::Register { kind: Kind::Tile, bits: 8192 })
        }
        K::sibmem => one(Operand::Strided),
        K::bnd_reg
        | K::bnd_or_mem_mpx
        | K::mem_mpx
        | K::mem_mib
        | K::r32_or_mem_mpx
        | K::r64_or_mem_mpx => refused("it works on bounds registers, which MPX has to enable"),
        K::seg_rSI | K::es_rDI | K::seg_rDI | K::seg_rBX_al => {
            refused("it accesses memory that no operand names, and moves the pointers to it")
        }
        K::br64_1 | K::br32_1 => Ok(branch::operands(code, 8)),
        K::br64_4 | K::br32_4 => Ok(branch::operands(code, 32)),
        K::br16_1 | K::br16_2 => refused("its target is cut to 16 bits"),
        K::xbegin_2 | K::xbegin_4 | K::brdisp_2 | K::brdisp_4 | K::farbr2_2 | K::farbr4_2 => {
            refused("it leaves the straight line")
        }
        K::mem_offs => refused("its address stands in the instruction"),
        K::r16_reg_mem | K::r32_reg_mem | K::r64_reg_mem => {
            refused("a register of it is a pointer to memory that it writes")
        }
        K::kp1_reg | K::xmmp3_vvvv | K::zmmp3_vvvv => refused("an operand is several registers"),
        K::None => refused("it has an operand of no kind"),
        other => refused(&format!("it has an operand of kind {other:?}")),
    }
}
