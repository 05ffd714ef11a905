//! Ports: instructions of a form alone, and behind instructions that keep ports busy. [`crate::ports`] finds the ports by what
//! they show.

use super::apart;
use super::chain::Made;
use super::effects::{self, Effects};
use super::registers::{Free, Kind, Reg};
use super::{Case, Form, FormError, case};
use crate::ports::BLOCKING;

/// Forms that may keep ports busy: those that turn out to have one micro-operation do. No branch is among them, and no store, whose
/// address and data are one each.
pub const BLOCKERS: [&str; 13] = [
    "mov r32, imm32",
    "shl r64, imm8",
    "lea r64, m",
    "imul r64, r64",
    "popcnt r64, r64",
    "mov r64, m64",
    "movq xmm, r64",
    "movq r64, xmm",
    "paddd xmm, xmm",
    "pslld xmm, imm8",
    "pshufd xmm, xmm, imm8",
    "addps xmm, xmm",
    "divps xmm, xmm",
];

/// Those of them that are taken to have one port, which is shared with no set that it does not lie in. Where they have more, more stays
/// untold.
const OF_ONE_PORT: [&str; 2] = ["imul r64, r64", "divps xmm, xmm"];

/// A form that takes no port: the front end's rate.
pub const NOTHING: &str = "nop";

/// Instructions of the form in a body with blocking instructions, each in a row of its own.
const ROWS: usize = 4;
/// How many different ones they are, that is registers that they write to.
const DIFFERENT: usize = 2;
/// The same of two forms that keep ports busy at once: of vectors, and of others.
const DIFFERENT_VECTORS: usize = 6;
const DIFFERENT_OTHERS: usize = 3;
/// Pairs of numbers of instructions by which it is seen whether the ports of two forms hold each other up: sets of as many ports, and
/// of half as many and twice as many.
pub const PAIRS: [(u32, u32); 3] =
    [(BLOCKING, BLOCKING), (BLOCKING, 2 * BLOCKING), (2 * BLOCKING, BLOCKING)];
/// Lines of memory before those of the blocking instructions.
const LINES: usize = 16;

/// The events by which ports are told: those of every processor, of which one has some.
pub const EVENTS: [&str; 19] = [
    "cycles",
    "uops-retired",
    // Sandy Bridge to Skylake.
    "uops_dispatched_port.port_0",
    "uops_dispatched_port.port_1",
    "uops_dispatched_port.port_2",
    "uops_dispatched_port.port_3",
    "uops_dispatched_port.port_4",
    "uops_dispatched_port.port_5",
    "uops_dispatched_port.port_6",
    "uops_dispatched_port.port_7",
    // Ice Lake and later.
    "uops_dispatched.port_0",
    "uops_dispatched.port_1",
    "uops_dispatched.port_2_3",
    "uops_dispatched.port_2_3_10",
    "uops_dispatched.port_4_9",
    "uops_dispatched.port_5",
    "uops_dispatched.port_5_11",
    "uops_dispatched.port_6",
    "uops_dispatched.port_7_8",
];

fn made(form: &Form, copies: usize, init: String, body: Vec<String>) -> Made {
    let kind = case::Kind::Ports { copies: copies as u32, row: 1, behind: None };
    let case = Case { form: form.to_string(), kind, breaking: Vec::new() };
    Made { case, init, body: body.join("\n") }
}

/// Others beside each instruction would take ports, too.
fn repeatable(form: &Form, effects: &Effects) -> Result<(), FormError> {
    match effects.needs_others() || effects.stack.is_moved() || form.indexed().is_some() {
        true => Err(effects::refused(form, "it cannot be repeated without other instructions")),
        false => Ok(()),
    }
}

/// The form alone. Nothing is written anew in between: that would take ports.
pub fn alone(form: &Form, effects: &Effects) -> Result<Made, FormError> {
    repeatable(form, effects)?;
    let mut free = Free::of(form, &effects.taken());
    let apart = apart::independent(form, effects, &mut free, None, 0)?;
    let init = apart.init(form, effects, 0);
    Ok(made(form, apart.instructions.len(), init, apart.instructions))
}

/// Each instruction of the form behind [`BLOCKING`] others.
pub fn behind(one: (&Form, &Effects), blocker: (&Form, &Effects)) -> Result<Made, FormError> {
    mixed(one, blocker, DIFFERENT, (BLOCKING, 1), ROWS)
}

/// Whether it matters with which others a form that keeps ports busy shares some.
pub fn is_paired(blocker: &Form) -> bool {
    !OF_ONE_PORT.contains(&blocker.to_string().as_str())
}

/// Two forms that keep ports busy, so many of the second one and then so many of the first.
pub fn pair(
    one: (&Form, &Effects),
    other: (&Form, &Effects),
    (before, row): (u32, u32),
) -> Result<Made, FormError> {
    let is_vector = |(form, _): (&Form, &Effects)| {
        (0..form.operands.len())
            .any(|index| matches!(form.register(index), Some((Kind::Vector, _))))
    };
    let different = if is_vector(one) { DIFFERENT_VECTORS } else { DIFFERENT_OTHERS };
    mixed(one, other, different, (before, row), 1)
}

fn mixed(
    (form, effects): (&Form, &Effects),
    (blocker, its): (&Form, &Effects),
    different: usize,
    (before, row): (u32, u32),
    rows: usize,
) -> Result<Made, FormError> {
    repeatable(form, effects)?;
    let mut free = Free::of(form, &[effects.taken(), its.taken()].concat());
    let own = apart::independent(form, effects, &mut free, Some(different), 0)?;
    // The form's init code uses these, and comes last.
    free.forbid(&[0, 1, 2].map(Reg::general));
    let block = apart::independent(blocker, its, &mut free, None, LINES).map_err(|_| {
        effects::refused(form, "no register is left for instructions that keep ports busy")
    })?;
    let init = block.init(blocker, its, LINES) + &own.init(form, effects, 0);
    let mut blocking = block.instructions.iter().cycle();
    let mut instructions = own.instructions.iter().cycle();
    let mut body: Vec<String> = Vec::new();
    for _ in 0..rows {
        body.extend(blocking.by_ref().take(before as usize).cloned());
        body.extend(instructions.by_ref().take(row as usize).cloned());
    }
    let mut made = made(form, rows * row as usize, init, body);
    if let case::Kind::Ports { row: rows, behind, .. } = &mut made.case.kind {
        (*rows, *behind) = (row, Some((before, blocker.to_string())));
    }
    Ok(made)
}
