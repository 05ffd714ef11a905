//! Ports: instructions of a form alone, and behind instructions that keep ports busy. [`crate::ports`] finds the ports by what
//! they show.

use super::apart::{self, Apart};
use super::chain::Made;
use super::effects::{self, Effects};
use super::registers::{Free, Reg};
use super::{Case, Form, FormError, case};
use crate::ports::BLOCKING;

/// Forms that may keep ports busy. On the processors of uops.info each has one micro-operation, and together they are on most sets of
/// ports that there are. No branch is among them, and no store, which has two.
pub const BLOCKERS: [&str; 16] = [
    "mov r32, imm32",
    "add r64, r64",
    "shl r64, imm8",
    "lea r64, m",
    "imul r64, r64",
    "popcnt r64, r64",
    "setc r8",
    "mov r64, m64",
    "movq xmm, r64",
    "movq r64, xmm",
    "paddd xmm, xmm",
    "pslld xmm, imm8",
    "pshufd xmm, xmm, imm8",
    "pmuludq xmm, xmm",
    "addps xmm, xmm",
    "divps xmm, xmm",
];

/// A form that takes no port: the front end's rate.
pub const NOTHING: &str = "nop";

/// Instructions of the form in a body with blocking instructions.
const COPIES: usize = 2;
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

fn made(
    form: &Form,
    copies: usize,
    behind: Option<&Form>,
    init: String,
    body: Vec<String>,
) -> Made {
    let behind = behind.map(ToString::to_string);
    let kind = case::Kind::Ports { copies: copies as u32, behind };
    let case = Case { form: form.to_string(), kind, breaking: Vec::new() };
    Made { case, init, body: body.join("\n") }
}

/// The form alone. Nothing is written anew in between: that would take ports.
pub fn alone(form: &Form, effects: &Effects) -> Result<Made, FormError> {
    let mut free = Free::without(&effects.taken());
    let Apart { instructions, used } = apart::independent(form, effects, &mut free, None, 0)?;
    let apart = Apart { instructions, used };
    let init = apart.init(form, effects, 0);
    Ok(made(form, apart.instructions.len(), None, init, apart.instructions))
}

/// Each instruction of the form behind blocking ones.
pub fn behind(
    (form, effects): (&Form, &Effects),
    (blocker, its): (&Form, &Effects),
) -> Result<Made, FormError> {
    let mut free = Free::without(&[effects.taken(), its.taken()].concat());
    let own = apart::independent(form, effects, &mut free, Some(COPIES), 0)?;
    // The form's init code uses these, and comes last.
    free.forbid(&[0, 1, 2].map(Reg::general));
    let block = apart::independent(blocker, its, &mut free, None, LINES).map_err(|_| {
        effects::refused(form, "no register is left for instructions that keep ports busy")
    })?;
    let init = block.init(blocker, its, LINES) + &own.init(form, effects, 0);
    let mut blocking = block.instructions.iter().cycle();
    let mut body = Vec::new();
    for instruction in &own.instructions {
        body.extend(blocking.by_ref().take(BLOCKING as usize).cloned());
        body.push(instruction.clone());
    }
    Ok(made(form, own.instructions.len(), Some(blocker), init, body))
}
