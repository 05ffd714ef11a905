//! Counting what was counted by hand.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use alloc::vec::Vec;
use arch::pmu::driver::Write;
use arch::pmu::workload::Ring0Code;
use arch::pmu::{Counter, Selection};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "counting.instructions",
        source: "the code's listing; SDM vol. 3, 20.2.1.2: instruction retired",
        run: instructions,
    },
    Check {
        name: "counting.branches",
        source: "the code's listing; SDM vol. 3, 20.2.1.2: branch instruction retired; an AMD guest's VMRUNs count \
                 (kvm-unit-tests)",
        run: branches,
    },
    Check {
        name: "counting.all_at_once",
        source: "the code's listing: every counter sees the same window",
        run: all_at_once,
    },
    Check {
        name: "counting.linear",
        source: "the code's listing: twice the iterations, twice the count",
        run: linear,
    },
    Check {
        name: "counting.repeatable",
        source: "the code's listing: 100 runs, one value",
        run: repeatable,
    },
    Check {
        name: "counting.nothing",
        source: "the listing of the window: start and stop have a constant cost, which cancels",
        run: nothing,
    },
    Check {
        name: "counting.enable_bit",
        source: "SDM vol. 3, 20.2.1.1: EN; APM vol. 2, 13.2.1",
        run: enable_bit,
    },
    Check {
        name: "counting.global_enable",
        source: "SDM vol. 3, 20.2.2: IA32_PERF_GLOBAL_CTRL; APM vol. 2, 13.2.1",
        run: global_enable,
    },
    Check {
        name: "counting.write_while_running",
        source: "the code's listing; SDM vol. 3, 20.2.8: counters can be written at any time",
        run: write_while_running,
    },
    Check {
        name: "amd.instructions_retired_counter",
        source: "APM vol. 2, 13.2.1: IRPerfCount, HWCR[30]",
        run: irperf,
    },
];

pub(super) const FIXED_CHECKS: &[Check] = &[
    Check {
        name: "fixed.instructions",
        source: "the code's listing; SDM vol. 3, table 20-2",
        run: fixed_instructions,
    },
    Check { name: "fixed.each_counts", source: "SDM vol. 3, table 20-2", run: fixed_each_counts },
    Check {
        name: "fixed.control_fields",
        source: "SDM vol. 3, 20.2.2: IA32_FIXED_CTR_CTRL has four bits for each counter",
        run: fixed_control_fields,
    },
    Check {
        name: "fixed.metrics",
        source: "SDM vol. 3, 20.3.9.3: the four fractions of the slots add up to 1",
        run: metrics,
    },
];

/// Turns of loops that are counted exactly.
const TURNS: u64 = 100;

const PIECES: [Ring0Code; 4] =
    [Ring0Code::Empty, Ring0Code::Loop, Ring0Code::NotTaken, Ring0Code::Calls];

/// Those, and one whose branches differ from turn to turn.
const COUNTED: [Ring0Code; 5] = [
    Ring0Code::Empty,
    Ring0Code::Loop,
    Ring0Code::NotTaken,
    Ring0Code::Calls,
    Ring0Code::Unpredictable,
];

fn instructions(context: &mut Context) -> Outcome {
    let mut all = All::of("each counter, each piece of code: the instructions of its listing");
    for counter in context.has().generals() {
        for piece in COUNTED {
            let seen = context.count(&[(counter, INSTRUCTIONS)], Work::kernel(piece, TURNS))?[0];
            let stated = context.stated(piece, TURNS).instructions;
            all.equal(format_args!("{counter}, {piece:?}"), stated, seen);
        }
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn branches(context: &mut Context) -> Outcome {
    let Some(event) = context.branches() else {
        return Ok(Finding::skip("the event of retired branches"));
    };
    let mut all = All::of("each counter, each piece of code: the branches of its listing");
    for counter in context.has().generals() {
        for piece in PIECES {
            let seen = context.count(&[(counter, event)], Work::kernel(piece, TURNS))?[0];
            let stated = context.stated(piece, TURNS).branches;
            let good = (stated..=stated + vmruns(context)).contains(&seen);
            all.that(good, format_args!("{counter}, {piece:?}: {seen}, not {stated}"));
        }
    }
    Ok(all.finish().explained_by(context.branches_erratum()))
}

/// Branches that a hypervisor adds: on AMD each return to the guest, a VMRUN, counts as one (kvm-unit-tests,
/// `x86/pmu.c`). A window has a few, for its own accesses to the PMU.
fn vmruns(context: &Context) -> u64 {
    const A_WINDOW: u64 = 8;
    let virtual_amd = context.hypervisor && context.emulated.is_none() && !context.has().is_intel();
    if virtual_amd { A_WINDOW } else { 0 }
}

fn all_at_once(context: &mut Context) -> Outcome {
    let mut all = All::of("all counters at once: the instructions of the listing");
    let list: Vec<(Counter, Selection)> =
        context.has().generals().map(|counter| (counter, INSTRUCTIONS)).collect();
    let seen = context.count(&list, Work::kernel(Ring0Code::NotTaken, TURNS))?;
    let stated = context.stated(Ring0Code::NotTaken, TURNS).instructions;
    for ((counter, _), seen) in list.iter().zip(seen) {
        all.equal(counter, stated, seen);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn linear(context: &mut Context) -> Outcome {
    let mut all = All::of(
        "2 and 10 times the iterations: 2 and 10 times the instructions, without the window's own",
    );
    let empty = context.count_one(INSTRUCTIONS, Work::kernel(Ring0Code::Loop, 1))?;
    let one = context.count_one(INSTRUCTIONS, Work::kernel(Ring0Code::Loop, 1 + TURNS))?;
    let one = one.wrapping_sub(empty);
    for times in [2, 10] {
        let work = Work::kernel(Ring0Code::Loop, 1 + times * TURNS);
        let seen = context.count_one(INSTRUCTIONS, work)?.wrapping_sub(empty);
        all.equal(format_args!("{times} times"), one.wrapping_mul(times), seen);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn repeatable(context: &mut Context) -> Outcome {
    let work = Work::kernel(Ring0Code::Calls, 10);
    let first = context.count_one(INSTRUCTIONS, work)?;
    let mut all = All::of("100 runs count the same");
    for run in 1..100 {
        let seen = context.count_one(INSTRUCTIONS, work)?;
        all.equal(format_args!("run {run}"), first, seen);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn nothing(context: &mut Context) -> Outcome {
    let work = Work::kernel(Ring0Code::Empty, 1);
    let overhead = context.count_one(INSTRUCTIONS, work)?;
    let stated = context.stated(Ring0Code::Empty, 1).instructions;
    let mut cancelled = context.count_one(INSTRUCTIONS, work)?.abs_diff(overhead);
    for _ in 0..10 {
        cancelled = cancelled.max(context.count_one(INSTRUCTIONS, work)?.abs_diff(overhead));
    }
    let expected = alloc::format!("{stated} instructions from start to stop, 0 when cancelled");
    let seen = alloc::format!("{overhead} instructions, {cancelled} when cancelled");
    Ok(Finding::when(overhead == stated && cancelled == 0, expected, seen)
        .explained_by(context.instructions_erratum()))
}

fn enable_bit(context: &mut Context) -> Outcome {
    if context.driver.layout().global.is_none() {
        return Ok(Finding::skip(
            "a global control; without one the enable bit alone starts counting",
        ));
    }
    let mut all = All::of(
        "a counter whose EN is clear does not count, for every value of the global control",
    );
    for counter in context.has().generals() {
        context.fresh()?;
        context.program(counter, &INSTRUCTIONS)?;
        let select = context.driver.layout().select(counter.index() as u8);
        let value = context.registers().rdmsr(select).unwrap_or(0);
        let _ = context.registers().wrmsr(select, value & !(1 << 22));
        context.run(Work::kernel(Ring0Code::Loop, TURNS));
        all.equal(counter, 0, context.get(counter)?);
    }
    Ok(all.finish())
}

fn global_enable(context: &mut Context) -> Outcome {
    let Some(global) = context.driver.layout().global else {
        return Ok(Finding::skip("a global control"));
    };
    let mut all =
        All::of("a counter whose global enable is clear does not count while the others do");
    for counter in context.has().counters() {
        context.fresh()?;
        for other in context.has().counters() {
            context.program(other, &INSTRUCTIONS)?;
        }
        let others = context.driver.programmed() & !counter.bit();
        let gate = arch::pmu::Gate::EMPTY.with(global.control, others, 0);
        context.machine.run(&gate, Work::kernel(Ring0Code::Loop, 20 * TURNS));
        all.equal(counter, 0, context.get(counter)?);
        for other in context.has().generals().chain(context.has().certain_fixeds()) {
            let is_well = other == counter || context.get(other)? > 0;
            all.that(is_well, format_args!("{other} counted nothing without {counter}"));
        }
    }
    Ok(all.finish())
}

fn write_while_running(context: &mut Context) -> Outcome {
    let mut all = All::of("the written value plus the instructions after the write");
    for counter in context.has().generals() {
        context.fresh()?;
        context.program(counter, &INSTRUCTIONS)?;
        let value = 0x1000;
        let write = Write::new(context.driver.layout().counter(counter), value);
        context.run(Work::Rewrite { turns: TURNS, write });
        // After the write: the rest of the piece, and the four instructions up to the closing WRMSR.
        let expected = value + Ring0Code::after_rewrite(TURNS) + 4;
        all.equal(counter, expected, context.get(counter)?);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn irperf(context: &mut Context) -> Outcome {
    use arch::pmu::numbers::{AMD_HWCR, AMD_IRPERF};
    const ENABLE: u64 = 1 << 30;
    if !context.has().irperf {
        return Ok(Finding::skip("the instructions-retired counter"));
    }
    let Ok(before) = context.registers().rdmsr(AMD_HWCR) else {
        return Ok(Finding::fail("HWCR can be read", "it raised an exception"));
    };
    let _ = context.registers().wrmsr(AMD_HWCR, before | ENABLE);
    let first = context.first();
    context.program(first, &INSTRUCTIONS)?;
    let mut counted = [0; 2];
    for (seen, turns) in counted.iter_mut().zip([TURNS, 3 * TURNS]) {
        let start = context.registers().rdmsr(AMD_IRPERF).unwrap_or(0);
        context.run(Work::kernel(Ring0Code::Loop, turns));
        *seen = context.registers().rdmsr(AMD_IRPERF).unwrap_or(0).wrapping_sub(start);
    }
    let _ = context.registers().wrmsr(AMD_HWCR, before);
    let erratum = context.errata().find(|row| row.id == "1054");
    // Everything else between the two readings is the same both times.
    Ok(Finding::equal(4 * TURNS, counted[1].wrapping_sub(counted[0])).explained_by(erratum))
}

fn fixed_instructions(context: &mut Context) -> Outcome {
    let (fixed, general) = (Counter::Fixed(0), context.first());
    if !context.has().has(fixed) {
        return Ok(Finding::skip("fixed counter 0"));
    }
    let mut all = All::of("the instructions of the listing, as on a general-purpose counter");
    for piece in PIECES {
        let list = [(fixed, INSTRUCTIONS), (general, INSTRUCTIONS)];
        let seen = context.count(&list, Work::kernel(piece, TURNS))?;
        let stated = context.stated(piece, TURNS).instructions;
        all.equal(format_args!("{piece:?}"), stated, seen[0]);
        all.equal(format_args!("{piece:?}, both"), seen[1], seen[0]);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn fixed_each_counts(context: &mut Context) -> Outcome {
    let mut all = All::of("each fixed counter counts, and does not count without its enable");
    for counter in context.has().certain_fixeds() {
        let work = Work::kernel(Ring0Code::Loop, 20 * TURNS);
        let seen = context.count(&[(counter, INSTRUCTIONS)], work)?[0];
        all.that(seen > 0, format_args!("{counter} counted nothing"));
        context.driver.release(context.machine, counter)?;
        context.set(counter, 0)?;
        if let Some(global) = context.driver.layout().global {
            let gate = arch::pmu::Gate::EMPTY.with(global.control, counter.bit(), 0);
            context.machine.run(&gate, work);
        }
        all.equal(format_args!("{counter}, not enabled"), 0, context.get(counter)?);
    }
    Ok(all.finish())
}

fn fixed_control_fields(context: &mut Context) -> Outcome {
    let Some(global) = context.driver.layout().global.filter(|_| context.has().fixed != 0) else {
        return Ok(Finding::skip("fixed counters"));
    };
    let mut all = All::of("a field enables its own counter and no other");
    for counter in context.has().certain_fixeds() {
        context.fresh()?;
        context.program(counter, &INSTRUCTIONS)?;
        let bits = u64::from(context.has().fixed) << 32;
        let gate = arch::pmu::Gate::EMPTY.with(global.control, bits, 0);
        context.machine.run(&gate, Work::kernel(Ring0Code::Loop, 20 * TURNS));
        for other in context.has().fixeds() {
            let seen = context.get(other)?;
            let good = (seen > 0) == (other == counter);
            all.that(good, format_args!("with the field of {counter}, {other} counted {seen}"));
        }
    }
    Ok(all.finish())
}

fn metrics(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return Ok(Finding::skip("PERF_METRICS"));
    }
    let slots = Counter::Fixed(3);
    context.program(slots, &INSTRUCTIONS)?;
    context.driver.enable_metrics()?;
    context.driver.clear_metrics(context.machine)?;
    context.run(Work::kernel(Ring0Code::Loop, 50 * TURNS));
    let seen = context.driver.metrics(context.machine)?;
    // Each of the four is rounded to a 255th.
    let expected = "retiring above 0, the four fractions 251 to 259 of 255";
    let sum = seen.first_level();
    let good = seen.field(0) > 0 && (251..=259).contains(&sum);
    Ok(Finding::when(good, expected, format_args!("retiring {}, together {sum}", seen.field(0))))
}
