//! Forms that move the x87 stack. Each instruction stands beside others that move it back; what these take is measured by
//! itself, and subtracted.
//!
//! A push is taken back by FFREE and FINCSTP, of which each can be repeated alone, because one only marks a register as
//! empty and the other only turns the stack. A pop gets its operand from FLD1.

use super::chain::{Made, Missing};
use super::effects::{Effects, refused};
use super::registers::{Free, Kind, Reg};
use super::{Case, Form, FormError, apart, case, start};
use iced_x86::{Instruction, Mnemonic};

/// What an instruction does to the stack.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stack {
    /// Added to the top: negative for a push.
    increment: i32,
}

/// Registers of the stack that are filled if it is moved: one push more has room, and one operand more is there.
const DEPTH: usize = 6;

impl Stack {
    /// What `instruction` does.
    ///
    /// # Errors
    /// Something that nothing takes back.
    pub fn of(instruction: &Instruction) -> Result<Self, &'static str> {
        let info = instruction.fpu_stack_increment_info();
        match instruction.mnemonic() {
            // Two turn the stack, and free no register; two leave it as each body finds it.
            Mnemonic::Fincstp | Mnemonic::Fdecstp | Mnemonic::Fninit | Mnemonic::Finit => {
                Ok(Self::default())
            }
            Mnemonic::Ffreep => Err("it empties a register besides the one that it pops"),
            Mnemonic::Ftstp => Err("no processor of 64 bits is documented to have it"),
            _ if info.writes_top() && info.increment() == 0 => {
                Err("it replaces the whole x87 stack")
            }
            _ if info.writes_top() => Ok(Self { increment: info.increment() }),
            _ => Ok(Self::default()),
        }
    }

    /// Whether the stack is another one after it.
    pub fn is_moved(self) -> bool {
        self.increment != 0
    }

    /// Registers to fill before the body.
    pub fn depth(self) -> usize {
        if self.is_moved() { DEPTH } else { 8 }
    }

    /// What stands before an instruction, what after it, and the forms of both.
    fn partners(self) -> (Vec<&'static str>, Vec<&'static str>, Vec<String>) {
        let pushes = usize::try_from(self.increment).unwrap_or_default();
        let (before, after) = match pushes {
            0 => (Vec::new(), vec!["ffree st(0)", "fincstp"]),
            _ => (vec!["fld1"; pushes], Vec::new()),
        };
        let forms = before.iter().chain(&after).map(|line| line.replace("(0)", "")).collect();
        (before, after, forms)
    }
}

/// Instructions that do not wait for each other, each with its partners.
pub fn throughput(form: &Form, effects: &Effects) -> Result<Made, FormError> {
    let chained = |reg: &Reg| reg.kind == Kind::X87;
    if effects.implicit.iter().any(|(reg, access)| access.both() && chained(reg)) {
        return Err(refused(form, "each waits for what the one before left on the x87 stack"));
    }
    let mut free = Free::of(form, &effects.taken());
    // Empty even with what is pushed for a pop.
    free.forbid(&[Reg { kind: Kind::X87, number: 7 }]);
    let apart = apart::independent(form, effects, &mut free, None, 0)?;
    let init = apart.init(form, effects, 0);
    let (before, after, with) = effects.stack.partners();
    let with = with.iter().map(|one| form.beside(one)).collect();
    let copies = apart.instructions.len() as u32;
    let lines = apart.instructions.iter().flat_map(|line| {
        let own = std::iter::once(line.as_str());
        before.iter().copied().chain(own).chain(after.iter().copied())
    });
    let body = lines.collect::<Vec<_>>().join("\n");
    let kind = case::Kind::Throughput { copies, with };
    let case = Case { form: form.to_string(), kind, breaking: Vec::new() };
    Ok(Made { case, init, body })
}

/// What leads from ST(0) of a load back to its operand, and from a store's operand back to ST(0).
fn back(form: &Form) -> Option<(String, String)> {
    let memory = form.memory().and_then(|(_, bits)| bits);
    let size = match memory {
        Some(16) => "word",
        Some(32) => "dword",
        _ => "qword",
    };
    let of_memory = |other: &str, bits: u16| {
        (format!("{other} {size} ptr [{}]", form.base()), format!("{other} m{bits}"))
    };
    Some(match (&*form.mnemonic, memory, form.register(0)) {
        ("fld", Some(bits @ (32 | 64)), _) => of_memory("fstp", bits),
        ("fstp", Some(bits @ (32 | 64)), _) => of_memory("fld", bits),
        ("fild", Some(bits), _) => of_memory("fistp", bits),
        ("fistp" | "fisttp", Some(bits), _) => of_memory("fild", bits),
        // The operand has the next number after the push.
        ("fld", None, Some((Kind::X87, _))) => ("fstp st(2)".to_string(), "fstp st".to_string()),
        ("fstp", None, Some((Kind::X87, _))) => ("fld st(0)".to_string(), "fld st".to_string()),
        _ => return None,
    })
}

/// Chains. Loads and stores lead back into each other, so only their sum is known. Arithmetic that pops waits for the
/// register that it writes, and gets its other operand anew.
pub fn latencies(form: &Form, effects: &Effects) -> Vec<Result<Made, Missing>> {
    let registers: Vec<Option<Reg>> = (0..form.operands.len())
        .map(|index| form.register(index).map(|_| Reg { kind: Kind::X87, number: 1 }))
        .collect();
    let made = |from: &str, to: &str, body: String, back: Vec<String>, breaking: &[&str]| {
        let lines = usize::from(form.memory().is_some());
        let init = start::init(form, effects, &[], lines);
        let kind = case::Kind::Latency { from: from.to_string(), to: to.to_string(), back };
        let breaking = breaking.iter().map(ToString::to_string).collect();
        Ok(Made { case: Case { form: form.to_string(), kind, breaking }, init, body })
    };
    let own = form.with(&registers, form.place());
    let both = effects.operands.iter().position(|access| access.both());
    if let Some(index) = both.filter(|&index| form.register(index).is_some()) {
        let place = (index + 1).to_string();
        return vec![made(&place, &place, format!("fld1\n{own}"), Vec::new(), &["st0"])];
    }
    if let Some((line, named)) = back(form) {
        let operand = if form.memory().is_some() { "memory" } else { "1" };
        let pushes = effects.stack.increment < 0;
        let (from, to) = if pushes { (operand, "st0") } else { ("st0", operand) };
        let back = vec![form.beside(&named)];
        return vec![made(from, to, format!("{own}\n{line}"), back, &[])];
    }
    let reads = effects.operands.iter().any(|access| access.read)
        || effects.implicit.iter().any(|(_, access)| access.read);
    let writes = effects.flags.write || effects.operands.iter().any(|access| access.write);
    let waits = reads && (writes || effects.implicit.iter().any(|(_, access)| access.write));
    let reason = "no simple way leads back from where it moved the x87 stack to".to_string();
    let pair = "sources -> destinations".to_string();
    waits.then_some(Err(Missing { pair, reason })).into_iter().collect()
}

/// FXCH: what is in ST(0) goes to the other register, and back with the next one.
pub fn exchange(form: &Form, effects: &Effects) -> Made {
    let other = Reg { kind: Kind::X87, number: 1 };
    let places = (0..form.operands.len()).map(|index| form.register(index).map(|_| other));
    let registers: Vec<Option<Reg>> = places.collect();
    let to = registers.iter().position(Option::is_some).unwrap_or_default() + 1;
    let kind =
        case::Kind::Latency { from: "st0".to_string(), to: to.to_string(), back: Vec::new() };
    let case = Case { form: form.to_string(), kind, breaking: Vec::new() };
    let init = start::init(form, effects, &[(other, 80)], 0);
    Made { case, init, body: form.with(&registers, form.place()) }
}

/// Whether a mnemonic's memory operand is a number of the x87 unit with a fraction.
pub fn takes_floats(mnemonic: &str) -> bool {
    const FLOATS: [&str; 11] =
        ["fadd", "fsub", "fsubr", "fmul", "fdiv", "fdivr", "fcom", "fcomp", "fld", "fst", "fstp"];
    FLOATS.contains(&mnemonic)
}

/// A number near 1 as memory of so many bits has it, wherever in a row of these qwords it starts. Of 80 bits it is one
/// with the sign and the integer bit set.
pub fn one(bits: Option<u16>) -> u64 {
    match bits {
        Some(32) => 0x3f80_0000_3f80_0000,
        Some(_) => 1.0_f64.to_bits(),
        None => 0xbfff_bfff_bfff_bfff,
    }
}

#[cfg(test)]
mod tests;
