//! 32-bit code: what a form's instructions have there in place of what 64-bit code has.
//!
//! EBX has the address that R14 has in 64-bit code. There are eight registers of a kind, and no 64-bit general ones.

use super::address::Address;
use super::registers::{Kind, Reg};
use super::text::Operand;
use super::{Form, FormError};
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use protocol::bits::Bits;

/// What marks a form of 32-bit code, at its end.
pub const SUFFIX: &str = "[32-bit]";

/// The form's text without the mark, and whether it has one.
pub fn marked(text: &str) -> (&str, Bits) {
    match text.trim().strip_suffix(SUFFIX) {
        Some(rest) => (rest.trim_end(), Bits::Compatibility),
        None => (text, Bits::SixtyFour),
    }
}

/// Which code the form with this text is of.
pub fn bits_of(text: &str) -> Bits {
    marked(text).1
}

/// Why 32-bit code has no such operand.
pub fn lacks(operand: &Operand) -> Option<&'static str> {
    const GENERAL: &str = "no operand of 32-bit code, which has no 64-bit general registers";
    const TILE: &str = "no operand of 32-bit code, which has no AMX";
    match operand {
        Operand::Register { kind: Kind::General, bits: 64 } => Some(GENERAL),
        Operand::Fixed(name) if name.starts_with('r') => Some(GENERAL),
        Operand::Fixed(name) if name == "cr8" => Some("no register of 32-bit code"),
        Operand::Register { kind: Kind::Tile, .. } | Operand::Strided => Some(TILE),
        Operand::Immediate(64) => Some("no constant of 32-bit code"),
        _ => None,
    }
}

impl Form {
    /// Whether it is of 32-bit code.
    pub fn is_compatibility(&self) -> bool {
        self.bits == Bits::Compatibility
    }

    /// Bits of an address, and of the widest general registers.
    pub fn word(&self) -> u16 {
        self.bits.number().into()
    }

    /// The register that has the address of a snippet's memory.
    pub fn pointer(&self) -> Reg {
        Reg::general(if self.is_compatibility() { 3 } else { 14 })
    }

    /// Its name.
    pub fn base(&self) -> &'static str {
        if self.is_compatibility() { "ebx" } else { "r14" }
    }

    /// The address of a snippet's memory.
    pub fn place(&self) -> Address {
        self.at(self.pointer())
    }

    /// Where a register points to.
    pub fn at(&self, base: Reg) -> Address {
        Address { base, displacement: 0, bits: self.bits }
    }

    /// An instruction that reads no flags and writes all: its operand is ready from the start.
    pub fn new_flags(&self) -> String {
        format!("test {0}, {0}", self.base())
    }

    /// An implicit register as this code names it.
    pub fn named(&self, reg: Reg) -> String {
        match reg.kind {
            Kind::General => reg.name(self.word()),
            _ => reg.to_string(),
        }
    }

    /// Code that is written for 64 bits, with the registers of this code in place of those that 32-bit code does not have.
    pub fn in_own_registers(&self, code: &str) -> String {
        // Names that begin with another one come before it.
        const IN_32_BIT: [(&str, &str); 6] = [
            ("r8d", "esi"),
            ("r8w", "si"),
            ("r8", "esi"),
            ("r9d", "edi"),
            ("r10d", "ebp"),
            ("r14", "ebx"),
        ];
        let names = IN_32_BIT.iter().filter(|_| self.is_compatibility());
        names.fold(code.to_string(), |code, (of_64, of_32)| code.replace(of_64, of_32))
    }

    /// The text of another form, as one of the same code.
    pub fn beside(&self, other: &str) -> String {
        if self.is_compatibility() { format!("{other} {SUFFIX}") } else { other.to_string() }
    }

    /// The same form in code of so many bits.
    ///
    /// # Errors
    /// It has an operand that is not there.
    pub fn in_code_of(&self, bits: Bits) -> Result<Self, FormError> {
        match (self.bits, bits) {
            (Bits::SixtyFour, Bits::Compatibility) => format!("{self} {SUFFIX}").parse(),
            _ => Ok(self.clone()),
        }
    }
}

/// An instruction of 32-bit code with the registers of its operands replaced by ones that no instruction uses by itself, and
/// those: byte registers overlap with implicit ones.
pub fn apart(
    form: &Form,
    instruction: &mut Instruction,
    given: &[Option<Reg>],
) -> Vec<Option<Reg>> {
    let fresh = (8..).zip(given).map(|(number, reg)| match reg {
        Some(Reg { kind: Kind::General, .. }) => Some(Reg::general(number)),
        other => *other,
    });
    let fresh: Vec<Option<Reg>> = fresh.collect();
    let replaced: Vec<Register> = (0..instruction.op_count())
        .map(|index| {
            let register = instruction.op_register(index);
            let place = given.iter().position(|reg| reg.is_some() && *reg == Reg::of(register));
            let new = place.and_then(|place| fresh[place]).filter(|_| register.is_gpr());
            new.map_or(register, |reg| super::encoding::register_of(reg, bits_in(register)))
        })
        .collect();
    for (index, register) in (0..).zip(replaced) {
        if instruction.op_kind(index) == OpKind::Register {
            instruction.set_op_register(index, register);
        }
    }
    if (form.memory().is_some() || form.indexed().is_some())
        && instruction.memory_base() == Register::EBX
    {
        instruction.set_memory_base(Register::R14);
    }
    fresh
}

fn bits_in(register: Register) -> u16 {
    (register.size() * 8) as u16
}

/// Why an instruction that 32-bit code has cannot stand in a snippet of it.
pub fn unsafe_here(instruction: &Instruction) -> Option<&'static str> {
    use Code as C;
    if matches!(instruction.mnemonic(), Mnemonic::Les | Mnemonic::Lds) {
        return Some("it works on a segment register");
    }
    match instruction.code() {
        C::Popad | C::Popaw => Some("it overwrites EBX, which points to memory"),
        C::Mov_cr_r32 | C::Mov_dr_r32 => Some("it would cut the register to 32 bits"),
        C::Lgdt_m1632 | C::Lidt_m1632 | C::Lgdt_m1632_16 | C::Lidt_m1632_16 => {
            Some("it would cut the table's address to 32 bits")
        }
        C::Jmp_rm32 | C::Call_rm32 => {
            Some("32-bit code has no address relative to EIP, by which its target would be found")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
