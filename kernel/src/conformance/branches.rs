//! Branch records.

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use super::machine::Work;
use alloc::vec::Vec;
use arch::pmu::lbr::{self, Branch};
use arch::pmu::registers::LbrSelect;
use arch::pmu::workload::{Ring0Code, calls_sites};
use arch::pmu::{Gate, LbrKind, PmuError, window};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "lbr.order",
        source: "the code's listing; SDM vol. 3, 18.4.8: newest at LBR_TOS; 19.1: newest at 0",
        run: order,
    },
    Check {
        name: "lbr.filter",
        source: "the code's listing; SDM vol. 3, 18.9.2: MSR_LBR_SELECT; 19.1.2: IA32_LBR_CTL",
        run: filter,
    },
    Check {
        name: "lbr.ring_filter",
        source: "SDM vol. 3, 18.9.2 and 19.1.2: branches of ring 0 are not recorded",
        run: ring_filter,
    },
    Check {
        name: "lbr.call_stack",
        source: "SDM vol. 3, 18.11 and 19.1.2: in call-stack mode a call pushes and a return pops",
        run: call_stack,
    },
    Check {
        name: "lbr.mispredicted",
        source: "a generator's bits cannot be predicted: some of the recorded jumps are marked",
        run: mispredicted,
    },
];

const TURNS: u64 = 40;

/// The records of `piece` with a filter.
fn records(
    context: &mut Context,
    filter: LbrSelect,
    piece: Ring0Code,
) -> Result<Vec<Branch>, PmuError> {
    let has = context.has().clone();
    lbr::start(context.machine, &has, filter)?;
    lbr::stop(context.machine, &has)?;
    let (msr, on, off) = lbr::switch(context.machine, &has, filter)?;
    let gate = Gate::EMPTY.with(msr, on, off);
    context.machine.run(&gate, Work::kernel(piece, TURNS));
    lbr::records(context.machine, &has)
}

/// Everything but one kind of branch kept out.
fn only(kind: LbrSelect) -> LbrSelect {
    let rings = LbrSelect::NOT_KERNEL | LbrSelect::NOT_USER | LbrSelect::CALL_STACK;
    LbrSelect::all() - rings - kind
}

/// The branches of [`Ring0Code::Calls`] from the newest back.
fn newest_first() -> impl Iterator<Item = [u64; 2]> {
    let (at, [call_site, back]) = (calls_sites(), window::call_site());
    let turns = (0..TURNS).flat_map(move |turn| {
        let jump = (turn + 1 < TURNS).then_some([at.jump, at.call]);
        [Some([at.leaf, at.after]), Some([at.call, at.leaf]), jump].into_iter().flatten()
    });
    core::iter::once([at.piece_return, back]).chain(turns).chain([[call_site, at.call]])
}

fn order(context: &mut Context) -> Outcome {
    if context.has().lbr == LbrKind::None {
        return Ok(Finding::skip("branch records"));
    }
    let seen = records(context, LbrSelect::empty(), Ring0Code::Calls)?;
    let mut all =
        All::of("the last branches of the listing, newest first, as many as there are entries");
    all.equal("entries", usize::from(context.has().lbr.entries()), seen.len());
    for (age, (record, [from, to])) in seen.iter().zip(newest_first()).enumerate() {
        all.same(format_args!("from, {age} back"), from, record.from);
        all.same(format_args!("to, {age} back"), to, record.to);
    }
    Ok(all.finish())
}

/// Whether there is a filter of branch types.
fn filters(context: &Context) -> bool {
    match context.has().lbr {
        LbrKind::Legacy { filter, .. } | LbrKind::Architectural { filter, .. } => filter,
        LbrKind::AmdV2 { .. } => true,
        LbrKind::None | LbrKind::Single => false,
    }
}

fn filter(context: &mut Context) -> Outcome {
    if !filters(context) {
        return Ok(Finding::skip("a filter of branch records"));
    }
    let at = calls_sites();
    let seen = records(context, only(LbrSelect::NOT_RETURN), Ring0Code::Calls)?;
    let mut all = All::of("returns only: that of the code, and before it that of the function");
    all.that(seen.len() > 1, format_args!("{} records", seen.len()));
    for (age, record) in seen.iter().enumerate() {
        let from = if age == 0 { at.piece_return } else { at.leaf };
        all.same(format_args!("from, {age} back"), from, record.from);
    }
    Ok(all.finish())
}

fn ring_filter(context: &mut Context) -> Outcome {
    if !filters(context) {
        return Ok(Finding::skip("a filter of branch records"));
    }
    // No record states something only where there are some without the filter.
    let without = records(context, LbrSelect::empty(), Ring0Code::Calls)?.len();
    if without == 0 {
        return Ok(Finding::fail("records without the filter, no record with it", "none at all"));
    }
    let seen = records(context, LbrSelect::NOT_KERNEL, Ring0Code::Calls)?;
    Ok(Finding::equal(0, seen.len()))
}

fn call_stack(context: &mut Context) -> Outcome {
    if !context.has().call_stacks {
        return Ok(Finding::skip("branch records in call-stack mode (Haswell and later)"));
    }
    let calls = LbrSelect::NOT_RELATIVE_CALL | LbrSelect::NOT_INDIRECT_CALL;
    // No record states something only where there are some without the mode.
    let without = records(context, only(calls | LbrSelect::NOT_RETURN), Ring0Code::Calls)?.len();
    let mode = only(calls | LbrSelect::NOT_RETURN) | LbrSelect::CALL_STACK;
    let stack = records(context, mode, Ring0Code::Calls)?;
    let mut all = All::of(
        "calls and returns are recorded; in call-stack mode no call is left after its return",
    );
    all.that(without > 0, format_args!("{without} records of calls and returns"));
    let at = calls_sites();
    let left = stack.iter().filter(|record| record.from == at.call).count();
    all.that(left == 0, format_args!("{left} calls that have returned are in the stack"));
    Ok(all.finish())
}

fn mispredicted(context: &mut Context) -> Outcome {
    const ATTEMPTS: u32 = 8;
    if context.has().lbr == LbrKind::None {
        return Ok(Finding::skip("branch records"));
    }
    let kind = if filters(context) { only(LbrSelect::NOT_CONDITIONAL) } else { LbrSelect::empty() };
    let mut marked = 0;
    for _ in 0..ATTEMPTS {
        let seen = records(context, kind, Ring0Code::Unpredictable)?;
        if seen.is_empty() {
            return Ok(Finding::fail("at least one record", "no record"));
        }
        if seen.iter().all(|record| record.mispredicted.is_none()) {
            return Ok(Finding::skip("a misprediction flag in branch records"));
        }
        marked += seen.iter().filter(|record| record.mispredicted == Some(true)).count();
        if marked > 0 {
            break;
        }
    }
    Ok(Finding::when(marked > 0, "at least one record", format_args!("{marked} records")))
}
