//! A form that is bound to one encoding, and its bytes with registers and an address.
//!
//! Many instructions can be encoded in several ways that an assembler chooses from: `add` has two between registers, AVX
//! has a VEX and an EVEX one. iced-x86 encodes each.

use super::address::Address;
use super::branch;
use super::evex;
use super::registers::{Kind, Reg};
use super::text::Operand;
use iced_x86::{Code, Encoder, Instruction, OpCodeOperandKind, OpKind, Register};

/// One of the encodings that iced-x86 knows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Encoding {
    /// Opcode, prefixes and kinds of operands.
    pub code: Code,
    /// With a LOCK prefix.
    pub lock: bool,
    /// Another form has the same text, so this one is named with its opcode.
    pub named: bool,
}

/// What an immediate of the form's instructions is. Not 1, which has encodings of its own in shifts.
pub const IMMEDIATE: u8 = 3;

impl Encoding {
    /// Machine code of an instruction.
    ///
    /// # Errors
    /// iced-x86 cannot encode it, for its reason.
    pub fn bytes(
        self,
        operands: &[Operand],
        registers: &[Option<Reg>],
        address: Address,
    ) -> Result<Vec<u8>, String> {
        let mut instruction = Instruction::default();
        instruction.set_code(self.code);
        instruction.set_has_lock_prefix(self.lock);
        let kinds = self.code.op_code().op_kinds();
        let given = |index: usize| registers.get(index).copied().flatten();
        for (index, operand) in operands.iter().enumerate() {
            let mask = given(index).map(|reg| register_of(reg, 64));
            evex::decorate(&mut instruction, operand, mask);
        }
        // What is in braces stands after all others.
        let written = operands.iter().filter(|operand| evex::is_written(operand));
        for (index, (operand, kind)) in (0..).zip(written.zip(kinds)) {
            let register = given(index as usize);
            match operand {
                Operand::Mask { .. } | Operand::Control(_) => {}
                Operand::Branch { .. } => {
                    instruction.set_op_kind(index, branch::op_kind(address.bits));
                }
                Operand::Memory(_)
                | Operand::Broadcast { .. }
                | Operand::Indexed { .. }
                | Operand::Strided => {
                    instruction.set_op_kind(index, OpKind::Memory);
                    instruction.set_memory_base(register_of(address.base, address.width()));
                    instruction.set_memory_displacement64(address.displacement.into());
                    if *operand == Operand::Strided {
                        instruction.set_memory_index(Register::R13);
                    }
                    if let (Operand::Indexed { bits, .. }, Some(register)) = (operand, register) {
                        instruction.set_memory_index(register_of(register, *bits));
                    }
                    // The encoder takes a longer one where the value needs it.
                    instruction.set_memory_displ_size(u32::from(address.displacement != 0));
                }
                Operand::Register { bits, .. } => {
                    let register = register.ok_or("no register is given")?;
                    instruction.set_op_kind(index, OpKind::Register);
                    instruction.set_op_register(index, register_of(register, *bits));
                }
                Operand::Immediate(_) => immediate(&mut instruction, index, *kind)?,
                Operand::Fixed(name) => match fixed(*kind, name) {
                    Some(register) => {
                        instruction.set_op_kind(index, OpKind::Register);
                        instruction.set_op_register(index, register);
                    }
                    None => {
                        instruction.set_op_kind(index, OpKind::Immediate8);
                        instruction.set_immediate8(1);
                    }
                },
            }
        }
        let mut encoder = Encoder::new(address.width().into());
        let mut encode = |instruction: &Instruction| {
            encoder.encode(instruction, 0).map_err(|error| error.to_string())?;
            Ok(encoder.take_buffer())
        };
        let bytes = encode(&instruction)?;
        if !operands.iter().any(|one| matches!(one, Operand::Branch { .. })) {
            return Ok(bytes);
        }
        branch::lead(
            &mut instruction,
            bytes.len() as u64 + branch::distance(self.code),
            address.bits,
        );
        encode(&instruction)
    }

    /// Whether two operands may not be one register.
    pub fn unique(self) -> bool {
        let code = self.code.op_code();
        code.requires_unique_dest_reg_num() || code.requires_unique_reg_nums()
    }
}

/// Immediates as iced-x86 keeps them.
fn immediate(
    instruction: &mut Instruction,
    index: u32,
    kind: OpCodeOperandKind,
) -> Result<(), String> {
    use OpCodeOperandKind as K;
    let second = (0..index).any(|one| instruction.op_kind(one) == OpKind::Immediate8);
    let (kind, value) = match kind {
        K::imm8 | K::imm4_m2z if second => (OpKind::Immediate8_2nd, 0),
        K::imm4_m2z => (OpKind::Immediate8, 0),
        K::imm8 => (OpKind::Immediate8, IMMEDIATE.into()),
        K::imm8sex16 => (OpKind::Immediate8to16, IMMEDIATE.into()),
        K::imm8sex32 => (OpKind::Immediate8to32, IMMEDIATE.into()),
        K::imm8sex64 => (OpKind::Immediate8to64, IMMEDIATE.into()),
        K::imm16 => (OpKind::Immediate16, 0x1234),
        K::imm32 => (OpKind::Immediate32, 0x1234_5678),
        K::imm32sex64 => (OpKind::Immediate32to64, 0x1234_5678),
        K::imm64 => (OpKind::Immediate64, 0x1234_5678_9abc_def0),
        other => return Err(format!("{other:?} is no immediate")),
    };
    instruction.set_op_kind(index, kind);
    match kind {
        OpKind::Immediate8_2nd => instruction.set_immediate8_2nd(value as u8),
        _ => instruction.set_immediate_u64(index, value),
    }
    Ok(())
}

/// Registers that an encoding insists on.
fn fixed(kind: OpCodeOperandKind, name: &str) -> Option<Register> {
    use OpCodeOperandKind as K;
    Some(match kind {
        K::al => Register::AL,
        K::cl => Register::CL,
        K::ax => Register::AX,
        K::dx => Register::DX,
        K::eax => Register::EAX,
        K::rax => Register::RAX,
        K::st0 => Register::ST0,
        K::cr_reg => Register::CR0 + number(name),
        K::dr_reg => Register::DR0 + number(name),
        _ => return None,
    })
}

/// Of a control or debug register.
fn number(name: &str) -> u32 {
    name.trim_start_matches(char::is_alphabetic).parse().unwrap_or_default()
}

/// iced-x86's name of a register at a width.
pub fn register_of(reg: Reg, bits: u16) -> Register {
    let number = u32::from(reg.number);
    // From the fifth on, byte registers that need a REX prefix (SPL), which stand behind AH to BH.
    let first = match (reg.kind, bits) {
        (Kind::General, 8) if number < 4 => Register::AL,
        (Kind::General, 8) => Register::AH,
        (Kind::General, 16) => Register::AX,
        (Kind::General, 32) => Register::EAX,
        (Kind::General, _) => Register::RAX,
        (Kind::Vector, 256) => Register::YMM0,
        (Kind::Vector, 512) => Register::ZMM0,
        (Kind::Vector, _) => Register::XMM0,
        (Kind::Mmx, _) => Register::MM0,
        (Kind::Mask, _) => Register::K0,
        (Kind::X87, _) => Register::ST0,
        (Kind::Tile, _) => Register::TMM0,
    };
    first + number
}

#[cfg(test)]
mod tests {
    use super::super::registers::pool;
    use super::*;
    use protocol::bits::Bits;

    #[test]
    fn registers_have_the_names_that_the_assembler_gets() {
        for kind in [Kind::General, Kind::Vector, Kind::Mmx, Kind::Mask, Kind::X87, Kind::Tile] {
            let widths: &[u16] = match kind {
                Kind::General => &[8, 16, 32, 64],
                Kind::Vector => &[128, 256, 512],
                _ => &[64],
            };
            for reg in pool(kind, Bits::SixtyFour) {
                for &bits in widths {
                    let name = format!("{:?}", register_of(reg, bits)).to_lowercase();
                    // Intel's names of the new byte registers end in l, the assembler's in b.
                    let new = name.starts_with('r') && name.ends_with('l') && name != "rl";
                    let name = if new { name.replace('l', "b") } else { name };
                    let plain = reg.name(bits).replace(['(', ')'], "");
                    assert_eq!(name, plain, "{reg:?} {bits}");
                }
            }
        }
    }
}
