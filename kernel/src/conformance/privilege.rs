//! Ring 0 and the rings above told apart.

use super::check::{All, Check, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::workload::{Ring0Code, Ring3Code};
use arch::pmu::{Counter, Rings};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "privilege.user",
        source: "the code's listing; SDM vol. 3, 20.2.1.1: USR",
        run: user,
    },
    Check {
        name: "privilege.kernel",
        source: "the code's listing; SDM vol. 3, 20.2.1.1: OS",
        run: kernel,
    },
    Check {
        name: "privilege.none",
        source: "SDM vol. 3, 20.2.1.1 and 20.2.2: without either bit nothing is counted",
        run: none,
    },
];

const TURNS: u64 = 500;

/// The counters that can count instructions.
fn counters(context: &Context) -> impl Iterator<Item = Counter> + use<> {
    context.has().generals().chain(context.has().fixeds().take(1))
}

fn user(context: &mut Context) -> Outcome {
    // The INT at the end counts for one ring or the other, and the IRET at the beginning may count once more
    // (Weaver: deterministic counters).
    const EDGES: u64 = 2;
    let mut all = All::of(
        "a loop in ring 3: its instructions and at most 2 more; twice the iterations add exactly its own",
    );
    for counter in counters(context) {
        let event = INSTRUCTIONS.in_rings(Rings::USER);
        let mut run = |turns| {
            context
                .count(&[(counter, event)], Work::user(Ring3Code::Loop, turns))
                .map(|seen| seen[0])
        };
        let (once, twice) = (run(TURNS)?, run(2 * TURNS)?);
        let least = Ring3Code::Loop.instructions(TURNS);
        let good = (least..=least + EDGES).contains(&once);
        all.that(good, format_args!("{counter}: {once}, not {least} to {}", least + EDGES));
        all.equal(format_args!("{counter}, doubled"), least, twice.wrapping_sub(once));
        let kernel = context.count(&[(counter, event)], Work::kernel(Ring0Code::Loop, TURNS))?[0];
        all.equal(format_args!("{counter}, ring 0"), 0, kernel);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn kernel(context: &mut Context) -> Outcome {
    let mut all = All::of("ring 0's own instructions, and none of a loop in ring 3");
    for counter in counters(context) {
        let event = INSTRUCTIONS.in_rings(Rings::KERNEL);
        let seen = context.count(&[(counter, event)], Work::kernel(Ring0Code::Loop, TURNS))?[0];
        all.equal(counter, context.stated(Ring0Code::Loop, TURNS).instructions, seen);
        let mut run = |turns| {
            context
                .count(&[(counter, event)], Work::user(Ring3Code::Loop, turns))
                .map(|seen| seen[0])
        };
        let (once, twice) = (run(TURNS)?, run(2 * TURNS)?);
        all.equal(format_args!("{counter}, a loop in ring 3 doubled"), once, twice);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn none(context: &mut Context) -> Outcome {
    let mut all = All::of("nothing");
    for counter in counters(context) {
        let event = INSTRUCTIONS.in_rings(Rings::empty());
        for work in [Work::kernel(Ring0Code::Loop, TURNS), Work::user(Ring3Code::Loop, TURNS)] {
            let seen = context.count(&[(counter, event)], work)?[0];
            all.equal(counter, 0, seen);
        }
    }
    Ok(all.finish())
}
