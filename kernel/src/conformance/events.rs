//! The architectural events that depend on the machine's timing and caches: bounds, not exact counts.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::workload::Ring0Code;
use arch::pmu::{Counter, Selection};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "events.cycles",
        source: "SDM vol. 3, 20.2.1.2: unhalted core cycles; at most 16 instructions retire in one",
        run: cycles,
    },
    Check {
        name: "events.cycles_fixed_and_general",
        source: "SDM vol. 3, table 20-2: fixed counter 1 counts the same as 3C/00",
        run: cycles_fixed_and_general,
    },
    Check {
        name: "events.reference_rate",
        source: "SDM vol. 3, table 20-2: fixed counter 2 ticks at the TSC's rate",
        run: reference_rate,
    },
    Check {
        name: "events.reference_general",
        source: "SDM vol. 3, 20.2.1.2: unhalted reference cycles (3C/01)",
        run: reference_general,
    },
    Check {
        name: "events.mispredictions",
        source: "a generator's bits cannot be predicted: some of 500 jumps are mispredicted, and not more than 500",
        run: mispredictions,
    },
    Check {
        name: "events.cache_references",
        source: "SDM vol. 3, 20.2.1.2: LLC references (2E/4F); each line was flushed before its load",
        run: cache_references,
    },
    Check {
        name: "events.cache_misses",
        source: "SDM vol. 3, 20.2.1.2: LLC misses (2E/41); each line was flushed before its load",
        run: cache_misses,
    },
    Check {
        name: "events.slots",
        source: "SDM vol. 3, 20.2.1.2: topdown slots (A4/01), at least one a cycle",
        run: slots,
    },
];

const TURNS: u64 = 1000;
/// Most instructions that any processor retires in a cycle; Lion Cove retires 12.
const WIDEST: u64 = 16;

fn cycles(context: &mut Context) -> Outcome {
    let event = context.cycles();
    let mut all = All::of("cycles on each counter, at least a 16th of the instructions");
    // None: by another code.
    let able = match context.has().cycles {
        0 => u32::MAX,
        some => some,
    };
    for counter in context.has().generals().filter(|counter| counter.bit() & u64::from(able) != 0) {
        let seen = context.count(&[(counter, event)], Work::kernel(Ring0Code::Loop, TURNS))?[0];
        let least = 2 * TURNS / WIDEST;
        all.that(seen >= least, format_args!("{counter}: {seen}, less than {least}"));
    }
    Ok(all.finish())
}

fn cycles_fixed_and_general(context: &mut Context) -> Outcome {
    let (fixed, general, event) = (Counter::Fixed(1), context.first(), context.cycles());
    if !context.has().has(fixed) {
        return Ok(Finding::skip("fixed counter 1"));
    }
    let work = Work::kernel(Ring0Code::Loop, TURNS);
    let seen = context.count(&[(fixed, event), (general, event)], work)?;
    if seen[1] == 0 {
        return Ok(Finding::fail("a count", "none on a general-purpose counter"));
    }
    // Both see the same window; a processor may start them some cycles apart.
    let apart = context.bounds.clocks;
    let (least, most) = (seen[1].saturating_sub(apart), seen[1].saturating_add(apart));
    Ok(Finding::within(least, most, seen[0]))
}

fn reference_rate(context: &mut Context) -> Outcome {
    let (cycles, reference) = (Counter::Fixed(1), Counter::Fixed(2));
    if !context.has().has(reference) {
        return Ok(Finding::skip("fixed counter 2"));
    }
    context.program(cycles, &INSTRUCTIONS)?;
    context.program(reference, &INSTRUCTIONS)?;
    // Once before it counts: what runs for the first time takes time that no counter of cycles has, in a hypervisor.
    context.run(Work::kernel(Ring0Code::Loop, 1));
    // The TSC's window is the larger one by the writes of the gate, which a hypervisor may make long: take away what
    // it is with nothing in it.
    let empty = context.run(Work::kernel(Ring0Code::Empty, 1));
    let start = [context.get(cycles)?, context.get(reference)?];
    let ticks = context.run(Work::kernel(Ring0Code::Loop, 100 * TURNS)).saturating_sub(empty);
    // The difference of two readings, also of a counter that does not go upwards.
    let mask = context.has().mask(reference);
    let cycles = context.get(cycles)?.wrapping_sub(start[0]) & mask;
    let seen = context.get(reference)?.wrapping_sub(start[1]) & mask;
    if seen == 0 {
        return Ok(Finding::fail("a count", "none"));
    }
    let apart = ticks / 20 + 1000;
    let most = ticks.saturating_add(apart);
    let finding = Finding::within(ticks.saturating_sub(apart), most, seen);
    Ok(Finding { seen: alloc::format!("{seen}, in {cycles} core cycles"), ..finding })
}

fn reference_general(context: &mut Context) -> Outcome {
    let Some(event) = context.architectural(2, Selection::of(0x3c, 1), Selection::of(0, 0)) else {
        return Ok(Finding::skip("the event of reference cycles"));
    };
    if !context.has().is_intel() {
        return Ok(Finding::skip("the event of reference cycles"));
    }
    let seen = context.count_one(event, Work::kernel(Ring0Code::Loop, 10 * TURNS))?;
    Ok(Finding::when(seen > 0, "more than 0", seen))
}

fn mispredictions(context: &mut Context) -> Outcome {
    let (Some(missed), Some(branches)) = (context.mispredictions(), context.branches()) else {
        return Ok(Finding::skip("the events of retired and of mispredicted branches"));
    };
    let list = [(context.first(), missed), (context.second(), branches)];
    let seen = context.count(&list, Work::kernel(Ring0Code::Unpredictable, 500))?;
    let stated = context.stated(Ring0Code::Unpredictable, 500).branches;
    if seen[1] < stated {
        let expected = alloc::format!("{stated} or more branches, some of them mispredicted");
        return Ok(Finding::fail(expected, alloc::format!("{} branches", seen[1])));
    }
    Ok(Finding::within(1, seen[1], seen[0]))
}

fn cache(context: &mut Context, bit: u32, umask: u16) -> Outcome {
    const LINES: u64 = 64;
    let none = Selection::of(0, 0);
    let event = context.architectural(bit, Selection::of(0x2e, umask), none);
    let Some(event) = event.filter(|event| *event != none) else {
        return Ok(Finding::skip("an architectural event of the last-level cache"));
    };
    let seen = context.count_one(event, Work::kernel(Ring0Code::ColdLoads, LINES))?;
    // A prefetcher may have brought a line back between its flush and its load, and requests others.
    Ok(Finding::within(LINES / 2, 20 * LINES, seen))
}

fn cache_references(context: &mut Context) -> Outcome {
    cache(context, 3, 0x4f)
}

fn cache_misses(context: &mut Context) -> Outcome {
    cache(context, 4, 0x41)
}

fn slots(context: &mut Context) -> Outcome {
    if !context.has().is_intel() || context.has().events & 1 << 7 == 0 {
        return Ok(Finding::skip("the event of topdown slots"));
    }
    let list = [(context.first(), Selection::of(0xa4, 1)), (context.second(), context.cycles())];
    let seen = context.count(&list, Work::kernel(Ring0Code::Loop, TURNS))?;
    let expected = alloc::format!("at least {} and at most {WIDEST} times that", seen[1]);
    let good = seen[1] > 0 && seen[0] >= seen[1] && seen[0] <= WIDEST.saturating_mul(seen[1]);
    Ok(Finding::when(good, expected, seen[0]))
}
