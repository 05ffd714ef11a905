//! Counter mask, inversion and edge detection.

use super::check::{Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::Selection;
use arch::pmu::workload::Ring0Code;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "modifiers.counter_mask",
        source: "SDM vol. 3, 20.2.1.1: CMASK; no processor retires 127 instructions in a cycle",
        run: counter_mask,
    },
    Check {
        name: "modifiers.counter_mask_of_one",
        source: "SDM vol. 3, 20.2.1.1: CMASK 1 counts cycles in which something retires",
        run: counter_mask_of_one,
    },
    Check {
        name: "modifiers.invert",
        source: "SDM vol. 3, 20.2.1.1: INV; less than 127 instructions retire in every cycle",
        run: invert,
    },
    Check {
        name: "modifiers.edge",
        source: "SDM vol. 3, 20.2.1.1: E; a condition that is always true has one edge",
        run: edge,
    },
];

const TURNS: u64 = 1000;
/// Of AMD's counter mask, all bits above 127 behave as 127 (APM vol. 2, 13.2.1).
const NEVER: u8 = 127;

fn work() -> Work {
    Work::kernel(Ring0Code::Loop, TURNS)
}

fn counter_mask(context: &mut Context) -> Outcome {
    let seen = context.count_one(Selection { cmask: NEVER, ..INSTRUCTIONS }, work())?;
    Ok(Finding::equal(0, seen))
}

fn counter_mask_of_one(context: &mut Context) -> Outcome {
    let masked = Selection { cmask: 1, ..INSTRUCTIONS };
    let list = [(context.first(), masked), (context.second(), context.cycles())];
    let seen = context.count(&list, work())?;
    Ok(Finding::within(TURNS / 8, seen[1] + slack(context), seen[0]))
}

fn invert(context: &mut Context) -> Outcome {
    let inverted = Selection { cmask: NEVER, invert: true, ..INSTRUCTIONS };
    let list = [(context.first(), inverted), (context.second(), context.cycles())];
    let seen = context.count(&list, work())?;
    let apart = slack(context);
    Ok(Finding::within(seen[1].saturating_sub(apart).max(1), seen[1] + apart, seen[0]))
}

fn edge(context: &mut Context) -> Outcome {
    let edges = Selection { cmask: NEVER, invert: true, edge: true, ..INSTRUCTIONS };
    let seen = context.count_one(edges, work())?;
    // An interrupt of system management may end and renew the condition.
    let most = if context.emulated.is_some() { 1 } else { 4 };
    Ok(Finding::within(1, most, seen))
}

/// How far two counters of cycles may be apart: without a global control their windows are shifted, and a processor
/// may start them some cycles apart.
fn slack(context: &Context) -> u64 {
    match (context.emulated.is_some(), context.driver.layout().global.is_some()) {
        (true, false) => 16,
        _ => context.bounds.idle,
    }
}
