//! What a counter does when it goes through 0.

use super::check::{All, Check, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::Counter;
use arch::pmu::workload::Ring0Code;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "overflow.status_bit",
        source: "SDM vol. 3, 20.2.2: IA32_PERF_GLOBAL_STATUS; without a status register the top bit",
        run: status_bit,
    },
    Check {
        name: "overflow.fixed_status_bit",
        source: "SDM vol. 3, 20.2.2: IA32_PERF_GLOBAL_STATUS[32 and up]",
        run: fixed_status_bit,
    },
    Check {
        name: "overflow.exact",
        source: "the code's listing: the n-th event overflows, not the one before it",
        run: exact,
    },
    Check {
        name: "overflow.goes_on",
        source: "SDM vol. 3, 20.2.2: the counter continues from 0",
        run: goes_on,
    },
    Check {
        name: "overflow.width",
        source: "SDM vol. 2, CPUID leaf 0xA: the counter wraps at its width",
        run: width,
    },
];

const TURNS: u64 = 50;

fn work() -> Work {
    Work::kernel(Ring0Code::Loop, TURNS)
}

/// Each counter alone overflows; exactly its bit shows.
fn each(context: &mut Context, counters: impl Iterator<Item = Counter>, mut all: All) -> Outcome {
    for counter in counters {
        context.fresh()?;
        context.program(counter, &INSTRUCTIONS)?;
        context.arm(counter, 5)?;
        context.run(Work::kernel(Ring0Code::Loop, 20 * TURNS));
        let seen = context.driver.status(context.machine)?.counters();
        all.same(counter, counter.bit(), seen);
    }
    Ok(all.finish())
}

fn status_bit(context: &mut Context) -> Outcome {
    let counters = context.has().generals();
    each(context, counters, All::of("each general-purpose counter's overflow sets its own bit"))
}

fn fixed_status_bit(context: &mut Context) -> Outcome {
    let counters = context.has().certain_fixeds();
    each(context, counters, All::of("each fixed counter's overflow sets its own bit"))
}

/// Counters of instructions: the first, the last, and the fixed one.
fn of_instructions(context: &Context) -> alloc::vec::Vec<Counter> {
    let last = context.has().generals().last();
    [Some(context.first()), last]
        .into_iter()
        .flatten()
        .chain(context.has().fixeds().take(1))
        .collect()
}

fn exact(context: &mut Context) -> Outcome {
    let mut all =
        All::of("overflow at the last event of the window; none with a period one longer");
    for counter in of_instructions(context) {
        for (later, expected) in [(0, counter.bit()), (1, 0)] {
            context.fresh()?;
            context.program(counter, &INSTRUCTIONS)?;
            let stated = context.stated(Ring0Code::Loop, TURNS).instructions;
            context.arm(counter, stated + later)?;
            context.run(work());
            let seen = context.driver.status(context.machine)?.counters();
            all.same(format_args!("{counter}, period {later} longer"), expected, seen);
        }
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn goes_on(context: &mut Context) -> Outcome {
    let mut all = All::of("after the overflow the counter has the number of events since");
    for counter in of_instructions(context) {
        context.fresh()?;
        context.program(counter, &INSTRUCTIONS)?;
        let stated = context.stated(Ring0Code::Straight, 1).instructions;
        context.arm(counter, stated - 200)?;
        context.run(Work::kernel(Ring0Code::Straight, 1));
        all.equal(counter, 200, context.get(counter)?);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn width(context: &mut Context) -> Outcome {
    let mut all = All::of("no overflow when the lower bits wrap, one when the full width wraps");
    for counter in of_instructions(context) {
        // All ones below the top bit, where that can be written.
        let half = context.has().mask(counter) >> 1;
        context.fresh()?;
        context.program(counter, &INSTRUCTIONS)?;
        if context.set(counter, half).is_err() {
            continue;
        }
        context.run(work());
        let stated = context.stated(Ring0Code::Loop, TURNS).instructions;
        all.same(counter, half + stated, context.get(counter)?);
        if context.driver.layout().global.is_some() {
            let status = context.driver.status(context.machine)?.counters();
            all.same(format_args!("{counter}, status"), 0, status);
        }
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}
