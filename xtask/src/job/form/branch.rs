//! Branches: each leads to the instruction after it, taken or not, or calls what returns at once. They have a throughput
//! only.
//!
//! A conditional one has its flags from one comparison at the start of a body.

use super::chain::Made;
use super::effects::{Effects, refused};
use super::encoding::Encoding;
use super::registers::Reg;
use super::text::Operand;
use super::{Case, Form, FormError, case};
use iced_x86::{
    Code, ConditionCode, FlowControl, Instruction, Mnemonic, OpCodeOperandKind, OpKind,
};
use protocol::bits::Bits;

/// Branches in a body: the comparison is one of 17 instructions.
const COPIES: usize = 16;

/// Whether it is a branch that can be measured.
///
/// # Errors
/// It goes to where nothing leads back from.
pub fn check(instruction: &Instruction) -> Result<bool, &'static str> {
    let near =
        matches!(instruction.code(), Code::Jmp_rm64 | Code::Call_rm64 | Code::Retnq | Code::Retnd);
    match instruction.flow_control() {
        FlowControl::Next => Ok(false),
        FlowControl::ConditionalBranch
            if matches!(instruction.mnemonic(), Mnemonic::Jkzd | Mnemonic::Jknzd) =>
        {
            Err("it is of a coprocessor (Knights Corner) that boots nothing")
        }
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch | FlowControl::Call => {
            Ok(true)
        }
        FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return if near => {
            Ok(true)
        }
        _ => Err("it leaves the straight line"),
    }
}

/// The encoding of a branch whose target stands in it, by the name and the width that a form has.
pub fn encoding(mnemonic: &str, bits: u16, code: Bits) -> Option<Code> {
    use OpCodeOperandKind as K;
    let wanted = match (code, bits) {
        (Bits::SixtyFour, 8) => K::br64_1,
        (Bits::SixtyFour, _) => K::br64_4,
        (Bits::Compatibility, 8) => K::br32_1,
        (Bits::Compatibility, _) => K::br32_4,
    };
    let mut all = Code::values().filter(|code| {
        let is = |kinds: &[OpCodeOperandKind]| kinds == [wanted];
        is(code.op_code().op_kinds())
            && format!("{:?}", code.mnemonic()).eq_ignore_ascii_case(mnemonic)
    });
    match code {
        Bits::SixtyFour => all.next(),
        // LOOP counts in ECX, or by a prefix in CX.
        Bits::Compatibility => all.max_by_key(|code| code.op_code().address_size()),
    }
}

/// What iced-x86 has a target as.
pub fn op_kind(bits: Bits) -> OpKind {
    match bits {
        Bits::SixtyFour => OpKind::NearBranch64,
        Bits::Compatibility => OpKind::NearBranch32,
    }
}

/// Sets the target.
pub fn lead(instruction: &mut Instruction, target: u64, bits: Bits) {
    match bits {
        Bits::SixtyFour => instruction.set_near_branch64(target),
        Bits::Compatibility => instruction.set_near_branch32(target as u32),
    }
}

/// A target as a form has it.
pub fn text(bits: u16, taken: Option<bool>) -> String {
    let suffix = match taken {
        Some(true) => " {taken}",
        Some(false) => " {not-taken}",
        None => "",
    };
    format!("rel{bits}{suffix}")
}

/// The target that this is the text of.
pub fn parse(word: &str) -> Option<Operand> {
    let all = [8, 32]
        .into_iter()
        .flat_map(|bits| [None, Some(true), Some(false)].map(|taken| (bits, taken)));
    let found = all.into_iter().find(|&(bits, taken)| text(bits, taken) == word);
    found.map(|(bits, taken)| Operand::Branch { bits, taken })
}

/// What only 32-bit code has, as JCXZ.
const ONLY_32_BIT: &str = "a target of 32-bit code, which a form ends in `[32-bit]` for";

/// The encoding that a form with a target is bound to: an assembler would choose the shortest.
///
/// # Errors
/// The target, and why the instruction has none of this kind.
pub fn bound(
    mnemonic: &str,
    all: &[Operand],
    code: Bits,
) -> Result<Option<Encoding>, (String, &'static str)> {
    let Some(target @ &Operand::Branch { bits, taken }) = all.first() else { return Ok(None) };
    let word = text(bits, taken);
    let no_target = "no target of this instruction";
    let found = encoding(mnemonic, bits, code).ok_or_else(|| {
        let in_32_bit = encoding(mnemonic, bits, Bits::Compatibility).is_some();
        (word.clone(), if in_32_bit { ONLY_32_BIT } else { no_target })
    });
    let code = found?;
    let known = operands(code, bits);
    if !known.contains(target) || all.len() > 1 {
        let either = known.len() > 1 && all.len() == 1;
        let why = if either { "a branch that is {taken} or {not-taken}" } else { no_target };
        return Err((word, why));
    }
    Ok(Some(Encoding { code, lock: false, named: false }))
}

/// The forms that a branch with this operand has: a conditional one is taken or not.
pub fn operands(code: Code, bits: u16) -> Vec<Operand> {
    let mut instruction = Instruction::default();
    instruction.set_code(code);
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => {
            [true, false].map(|taken| Operand::Branch { bits, taken: Some(taken) }).to_vec()
        }
        _ => vec![Operand::Branch { bits, taken: None }],
    }
}

/// Bytes between a branch and what it leads to: a call goes beyond the jump that its return comes to.
pub fn distance(code: Code) -> u64 {
    let is_call = matches!(code, Code::Call_rel32_64 | Code::Call_rel32_32);
    if is_call { JUMP_BYTES } else { 0 }
}

/// A jump over the return, and the return.
const JUMP: &str = ".byte 0xeb, 0x01";
const JUMP_BYTES: u64 = 2;
const RETURN: &str = "ret";
/// A call of what is after the next jump.
const CALL: &str = ".byte 0xe8, 0x02, 0x00, 0x00, 0x00";

/// What the form does, seen from the instruction.
struct Branch {
    mnemonic: Mnemonic,
    condition: ConditionCode,
    taken: bool,
}

/// Zero, one and the least number, for comparisons.
const INIT: &str = "xor r8d, r8d\nmov r9d, 1\nmov r10d, 0x80000000\n";

/// Comparisons of these, with ZF, PF, CF, OF and SF after them.
const COMPARISONS: [(&str, [bool; 5]); 4] = [
    ("cmp r8d, r8d", [true, true, false, false, false]),
    ("cmp r8d, r9d", [false, true, true, false, true]),
    ("cmp r10d, r9d", [false, true, false, true, false]),
    ("cmp r9d, r8d", [false, false, false, false, false]),
];

/// Whether a condition holds, by ZF, PF, CF, OF and SF.
fn holds(condition: ConditionCode, [zf, pf, cf, of, sf]: [bool; 5]) -> bool {
    use ConditionCode as C;
    match condition {
        C::None => true,
        C::o => of,
        C::no => !of,
        C::b => cf,
        C::ae => !cf,
        C::e => zf,
        C::ne => !zf,
        C::be => cf || zf,
        C::a => !cf && !zf,
        C::s => sf,
        C::ns => !sf,
        C::p => pf,
        C::np => !pf,
        C::l => sf != of,
        C::ge => sf == of,
        C::le => zf || sf != of,
        C::g => !zf && sf == of,
    }
}

/// Branches one after the other.
pub fn throughput(form: &Form, effects: &Effects) -> Result<Made, FormError> {
    let mut branch =
        Branch { mnemonic: Mnemonic::INVALID, condition: ConditionCode::None, taken: true };
    if let Some(encoding) = form.encoding {
        let mut instruction = Instruction::default();
        instruction.set_code(encoding.code);
        (branch.mnemonic, branch.condition) =
            (instruction.mnemonic(), instruction.condition_code());
    }
    let taken = form.operands.iter().find_map(|one| match one {
        Operand::Branch { taken, .. } => *taken,
        _ => None,
    });
    branch.taken = taken.unwrap_or(true);
    let (own, with) = branch.once(form);
    let flags = effects.flags.read.then(|| branch.flags(form)).transpose()?;
    let lines = flags
        .iter()
        .map(|line| form.in_own_registers(line))
        .chain((0..COPIES).flat_map(|_| own.clone()));
    let body = lines.collect::<Vec<_>>().join("\n");
    let counter = match branch.mnemonic {
        Mnemonic::Jrcxz | Mnemonic::Jecxz | Mnemonic::Jcxz => u32::from(!branch.taken),
        _ => 0,
    };
    let init = form.in_own_registers(&format!("{INIT}mov ecx, {counter}\nmov [r14], r14\n"));
    let with = with.iter().map(|one| form.beside(one)).collect();
    let kind = case::Kind::Throughput { copies: COPIES as u32, with };
    let breaking = flags.iter().map(|_| "flags".to_string()).collect();
    Ok(Made { case: Case { form: form.to_string(), kind, breaking }, init, body })
}

impl Branch {
    /// The comparison after which it goes where it should.
    fn flags(&self, form: &Form) -> Result<&'static str, FormError> {
        // The counter of LOOPE and LOOPNE lets them through, so that the flag decides.
        let fits = |(_, flags): &&(&str, [bool; 5])| holds(self.condition, *flags) == self.taken;
        let found = COMPARISONS.iter().find(fits);
        found.map(|(line, _)| *line).ok_or_else(|| refused(form, "no comparison leads it there"))
    }

    /// The instructions of one branch, and the forms of those beside it.
    fn once(&self, form: &Form) -> (Vec<String>, Vec<String>) {
        let r11 = Reg::general(11);
        let registers: Vec<_> =
            (0..form.operands.len()).map(|index| form.register(index).map(|_| r11)).collect();
        let own = form.with(&registers, form.place());
        let memory = form.memory().is_some();
        let (mut before, mut with): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
        // Bytes of `jmp r11`, `jmp [r14]` and the calls are 3; the store before them has 3, too.
        let mut point = |beyond: u64| {
            let store = if memory { 3 } else { 0 };
            before.push(format!("lea r11, [rip + {}]", 3 + store + beyond));
            with.push("lea r64, m");
            if memory {
                before.push("mov [r14], r11".to_string());
                with.push("mov m64, r64");
            }
        };
        let indirect = memory || !registers.iter().all(Option::is_none);
        match &*form.mnemonic {
            "call" => {
                if indirect {
                    point(JUMP_BYTES);
                }
                with.extend(["ret", "jmp rel8"]);
                before.extend([own, JUMP.to_string(), RETURN.to_string()]);
            }
            "ret" => {
                with.extend(["call rel32", "jmp rel8"]);
                before.extend([CALL.to_string(), JUMP.to_string(), own]);
            }
            name if name.starts_with("loop") => {
                with.push("mov r32, imm32");
                // One is left after the first of 3, none after the first of 1.
                let count = if self.taken || name != "loop" { 3 } else { 1 };
                before.extend([format!("mov ecx, {count}"), own]);
            }
            _ => {
                if indirect {
                    point(0);
                }
                before.push(own);
            }
        }
        (before, with.into_iter().map(String::from).collect())
    }
}

#[cfg(test)]
mod tests;
