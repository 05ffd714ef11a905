//! Throughput: instructions of a form that do not wait for each other.

use super::address::Address;
use super::chain::Made;
use super::effects::Effects;
use super::registers::{Free, Kind, Reg};
use super::{Case, Form, FormError, branch, case, effects, privileged, stack, start, vsib};

/// Instructions in a body, if there are registers for them: more than the product of latency and rate of all but a few
/// instructions. Vector instructions have both high.
const MOST: usize = 8;
const MOST_VECTOR: usize = 12;

/// Bytes between the memory operands of two instructions: a cache line.
const STRIDE: usize = 64;

/// Instructions of a form of which none waits for another.
pub struct Apart {
    /// The instructions.
    pub instructions: Vec<String>,
    /// Their registers, with widths.
    pub used: Vec<(Reg, u16)>,
}

/// As many independent instructions as there are registers to write to, at most `most` if that is given. Their memory begins so many
/// lines behind R14.
pub fn independent(
    form: &Form,
    effects: &Effects,
    free: &mut Free,
    most: Option<usize>,
    line: usize,
) -> Result<Apart, FormError> {
    let written = |index: &usize| effects.operands[*index].write;
    let indices = 0..form.operands.len();
    // What is only read is shared: nothing writes to it, so nobody waits for it.
    let mut shared = vec![None; form.operands.len()];
    for index in indices.clone().filter(|index| !written(index)) {
        if let Some(register) = form.register(index) {
            let none = || effects::refused(form, "it has more operands than there are registers");
            shared[index] = Some(free.take(register).ok_or_else(none)?);
        }
    }
    let own = indices.filter(written).filter_map(|index| Some((index, form.register(index)?)));
    let own: Vec<(usize, (Kind, u16))> = own.collect();
    let is_vector = own.iter().any(|(_, (kind, _))| *kind == Kind::Vector);
    let mut most = most.unwrap_or(if is_vector { MOST_VECTOR } else { MOST });
    for (_, register) in &own {
        let needed = own.iter().filter(|(_, other)| other.0 == register.0).count();
        most = most.min(free.left(*register) / needed);
    }
    let waits = own.iter().any(|(index, _)| effects.operands[*index].read);
    if most == 1 && waits && form.is_compatibility() {
        let reason = "no register is left for a second one, so that each waits for the one before";
        return Err(effects::refused(form, reason));
    }
    if most == 0 {
        return Err(effects::refused(form, "no register is left for its result"));
    }
    let (mut instructions, mut used) = (Vec::new(), Vec::new());
    for copy in 0..most {
        let mut registers = shared.clone();
        for &(index, register) in &own {
            registers[index] = free.take(register);
        }
        let operands = registers.iter().enumerate();
        used.extend(operands.filter_map(|(index, reg)| {
            let (_, bits) = form.register(index)?;
            (*reg).map(|reg: Reg| (reg, bits))
        }));
        let displacement = (STRIDE * (line + copy)) as u32;
        instructions.push(form.with(&registers, Address { displacement, ..form.place() }));
    }
    used.sort_by_key(|(reg, _)| reg.number);
    used.dedup();
    Ok(Apart { instructions, used })
}

impl Apart {
    /// Code that makes registers and memory ready, where the memory ends behind `line` lines and what these have.
    pub fn init(&self, form: &Form, effects: &Effects, line: usize) -> String {
        let memory = if form.memory().is_some() { line + self.instructions.len() } else { 0 };
        start::init(form, effects, &self.used, memory)
    }
}

/// Code with independent instructions.
pub fn throughput(form: &Form, effects: &Effects) -> Result<Made, FormError> {
    if effects.stack.is_moved() {
        return stack::throughput(form, effects);
    }
    if let Some(undone) = effects.undone {
        return Ok(privileged::throughput(form, undone));
    }
    if effects.branch {
        return branch::throughput(form, effects);
    }
    if form.indexed().is_some() {
        return vsib::throughput(form, effects);
    }
    let mut free = Free::of(form, &effects.taken());
    let apart = independent(form, effects, &mut free, None, 0)?;
    let chained = |(reg, access): &(Reg, effects::Access)| access.both() && reg.kind == Kind::X87;
    // FXCH only renames ST(0).
    if form.mnemonic != "fxch" && effects.implicit.iter().any(chained) {
        return Err(effects::refused(form, "each waits for what the one before left in ST(0)"));
    }
    let (breaks, breaking) = breaks(form, effects);
    let init = apart.init(form, effects, 0);
    let kind = case::Kind::Throughput { copies: apart.instructions.len() as u32, with: Vec::new() };
    let instructions = apart.instructions.into_iter();
    let lines: Vec<String> =
        instructions.flat_map(|line| breaks.iter().cloned().chain([line])).collect();
    let case = Case { form: form.to_string(), kind, breaking };
    Ok(Made { case, init, body: lines.join("\n") })
}

/// Implicit registers and flags that go from one instruction to the next get new values in between. Pointers do not: the
/// instruction needs them.
fn breaks(form: &Form, effects: &Effects) -> (Vec<String>, Vec<String>) {
    let changed = effects.implicit.iter().filter(|(reg, access)| {
        access.both() && !reg.is_pointer(form.bits) && reg.kind != Kind::X87
    });
    let registers = changed.map(|(reg, _)| (start::load_implicit(form, *reg), form.named(*reg)));
    let flags = effects.flags.both().then(|| (form.new_flags(), "flags".to_string()));
    registers.chain(flags).unzip()
}
