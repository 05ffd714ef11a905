//! What an instruction reads and writes, found by assembling one and looking at it.

use super::branch;
use super::compatibility;
use super::privileged::{self, Undone};
use super::registers::{Free, Kind, Reg};
use super::stack::Stack;
use super::{Form, FormError};
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    RflagsBits,
};
use protocol::bits::Bits;

/// What happens to a thing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Access {
    /// Its value matters.
    pub read: bool,
    /// It gets a new one.
    pub write: bool,
}

impl Access {
    /// A conditional write keeps the old value at times, and so needs it.
    fn add(&mut self, access: OpAccess) {
        use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
        self.read |= matches!(access, Read | CondRead | ReadWrite | ReadCondWrite | CondWrite);
        self.write |= matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite);
    }

    /// Whether it is needed and changed.
    pub fn both(self) -> bool {
        self.read && self.write
    }
}

/// What an instruction of a form reads and writes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Effects {
    /// Each operand: the register, or the memory's content.
    pub operands: Vec<Access>,
    /// Registers that are no operands of the form, or fixed ones.
    pub implicit: Vec<(Reg, Access)>,
    /// The arithmetic flags.
    pub flags: Access,
    /// What it does to the x87 stack.
    pub stack: Stack,
    /// How it is made harmless, if it works on the machine's state.
    pub undone: Option<&'static Undone>,
    /// It is a branch.
    pub branch: bool,
    /// It accesses memory besides its operand, or memory that none of its operands names.
    pub hidden_memory: bool,
}

/// Registers of an instruction that is only looked at: no operand shares one.
pub fn probe(form: &Form) -> Result<(Vec<Option<Reg>>, String), FormError> {
    // An implicit register could be any of the old ones.
    let mut free = Free::of(form, &[0, 1, 2].map(Reg::general));
    // In 32-bit code only old ones have bytes: BL and DL, which no instruction uses without naming them.
    let mut bytes = [3, 2].map(Reg::general).into_iter().filter(|_| form.is_compatibility());
    let registers = (0..form.operands.len()).map(|index| {
        let Some(register) = form.register(index) else { return Ok(None) };
        let reason = "it has more operands than there are registers";
        let byte = if register == (Kind::General, 8) { bytes.next() } else { None };
        byte.or_else(|| free.take(register)).map(Some).ok_or_else(|| refused(form, reason))
    });
    let registers = registers.collect::<Result<Vec<_>, _>>()?;
    let text = form.with(&registers, form.place());
    Ok((registers, text))
}

pub fn refused(form: &Form, reason: &str) -> FormError {
    FormError::Refused { form: form.to_string(), reason: reason.to_string() }
}

impl Effects {
    /// Looks at the code of [`probe`]'s text.
    ///
    /// # Errors
    /// It is an instruction that cannot be measured by itself.
    pub fn of(form: &Form, registers: &[Option<Reg>], code: &[u8]) -> Result<Self, FormError> {
        let all: Vec<Instruction> =
            Decoder::with_ip(form.word().into(), code, 0, DecoderOptions::NONE)
                .into_iter()
                .collect();
        let [mut instruction] = all[..] else {
            return Err(refused(form, &format!("it assembles to {} instructions", all.len())));
        };
        if let Some(reason) =
            compatibility::unsafe_here(&instruction).filter(|_| form.is_compatibility())
        {
            return Err(refused(form, reason));
        }
        let branch = branch::check(&instruction).map_err(|reason| refused(form, reason))?;
        let undone = privileged::of(&instruction);
        if undone.is_none() && instruction.is_privileged() {
            return Err(refused(form, "it is privileged, and works on the machine's state"));
        }
        let stack = Stack::of(&instruction).map_err(|reason| refused(form, reason))?;
        if let Some(reason) = unsafe_here(&instruction).filter(|_| undone.is_none()) {
            return Err(refused(form, reason));
        }
        let mut effects = Self {
            operands: vec![Access::default(); form.operands.len()],
            stack,
            branch,
            undone,
            ..Self::default()
        };
        let apart;
        let registers = match form.bits {
            Bits::SixtyFour => registers,
            Bits::Compatibility => {
                apart = compatibility::apart(form, &mut instruction, registers);
                &apart
            }
        };
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&instruction);
        for used in info.used_registers() {
            let (register, access) = (used.register(), used.access());
            let Some(reg) = Reg::of(register).filter(|&reg| reg != Reg::general(14)) else {
                continue;
            };
            match registers.iter().position(|&other| other == Some(reg)) {
                Some(index) => effects.operands[index].add(access),
                None => effects.implicit(reg).add(access),
            }
        }
        let memory = form.memory().map(|(index, _)| index);
        let is_pointer = |reg: Option<Reg>| reg.is_some_and(|reg| reg.is_pointer(form.bits));
        for used in info.used_memory() {
            let hidden = Reg::of(used.base()).filter(|reg| *reg != Reg::general(14));
            match memory.filter(|_| used.base() == Register::R14) {
                Some(index) => effects.operands[index].add(used.access()),
                // The elements of a gather are no place by themselves: it waits for the registers.
                None if form.indexed().is_some() && used.base() == Register::R14 => {}
                None if used.base() == Register::None || is_pointer(hidden) => {
                    effects.hidden_memory = true;
                }
                None => return Err(refused(form, "a register of it is a pointer to memory")),
            }
        }
        effects.flags.read = instruction.rflags_read() != 0;
        effects.flags.write = instruction.rflags_modified() != 0;
        Ok(effects)
    }

    fn implicit(&mut self, reg: Reg) -> &mut Access {
        let index = self.implicit.iter().position(|(other, _)| *other == reg);
        let index = index.unwrap_or_else(|| {
            self.implicit.push((reg, Access::default()));
            self.implicit.len() - 1
        });
        &mut self.implicit[index].1
    }

    /// It is measured by code of its own, which has a throughput only.
    pub fn needs_others(&self) -> bool {
        self.branch || self.undone.is_some()
    }

    /// Registers that operands must not get.
    pub fn taken(&self) -> Vec<Reg> {
        self.implicit.iter().map(|(reg, _)| *reg).collect()
    }
}

/// Flags that the firmware works with: direction, interrupts, alignment check.
const KEPT_FLAGS: u32 = RflagsBits::DF | RflagsBits::IF | RflagsBits::AC | RflagsBits::UIF;

/// Why an instruction in the middle of a snippet would bring down what is behind it, or wait for what does not come.
fn unsafe_here(instruction: &Instruction) -> Option<&'static str> {
    use Mnemonic as M;
    match instruction.mnemonic() {
        M::Mwait | M::Mwaitx | M::Umwait | M::Tpause | M::Monitor | M::Monitorx | M::Umonitor => {
            return Some("it waits, or prepares to wait");
        }
        M::Fldcw
        | M::Ldmxcsr
        | M::Vldmxcsr
        | M::Fldenv
        | M::Frstor
        | M::Fxrstor
        | M::Fxrstor64
        | M::Xrstor
        | M::Xrstor64
        | M::Xrstors
        | M::Xrstors64 => {
            return Some("it loads the state of the floating-point unit from memory");
        }
        M::Xgetbv | M::Rdpmc => return Some("RCX selects a register, of which few exist"),
        M::Enter | M::Leave => return Some("it moves the stack to where RBP points"),
        M::Wrfsbase | M::Wrgsbase | M::Swapgs | M::Lss | M::Lfs | M::Lgs => {
            return Some("it works on a segment register");
        }
        _ => {}
    }
    let kept = instruction.rflags_modified() & KEPT_FLAGS & !clears(instruction);
    (kept != 0).then_some("it changes a flag that the firmware works with")
}

/// CLD leaves the direction as the firmware has it.
fn clears(instruction: &Instruction) -> u32 {
    if instruction.mnemonic() == Mnemonic::Cld { RflagsBits::DF } else { 0 }
}
