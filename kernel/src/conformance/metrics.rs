//! The slots, and PERF_METRICS that divides them.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::registers::PerfMetrics;
use arch::pmu::workload::Ring0Code;
use arch::pmu::{Counter, PmuError, Rings, Selection, numbers};

const SHARES: &str = "SDM vol. 3, 20.3.9.3: MSR_PERF_METRICS";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "slots.width",
        source: "SDM vol. 3, 20.3.9.1: issue slots, 5 in a cycle of Ice Lake, 6 of Golden Cove, 8 of Lion Cove",
        run: width,
    },
    Check {
        name: "slots.fixed_and_general",
        source: "SDM vol. 3, 20.2.1.2: architectural event 7, which fixed counter 3 counts as well",
        run: fixed_and_general,
    },
    Check {
        name: "slots.overflow",
        source: "SDM vol. 3, 20.2.2: status bit 35 is fixed counter 3's",
        run: overflow,
    },
    Check { name: "metrics.sum", source: SHARES, run: sum },
    Check { name: "metrics.retiring", source: SHARES, run: retiring },
    Check { name: "metrics.bad_speculation", source: SHARES, run: bad_speculation },
    Check { name: "metrics.second_level", source: SHARES, run: second_level },
    Check {
        name: "metrics.starts_over",
        source: "SDM vol. 3, 20.3.9.3: writing 0 to fixed counter 3 and to the register starts both",
        run: starts_over,
    },
    Check {
        name: "metrics.needs_enable",
        source: "SDM vol. 3, 20.3.9.3: IA32_PERF_GLOBAL_CTRL[48]",
        run: needs_enable,
    },
    Check {
        name: "metrics.rings",
        source: "SDM vol. 3, 20.3.9.3: the register counts when fixed counter 3 does",
        run: rings,
    },
    Check {
        name: "metrics.status_bit",
        source: "SDM vol. 3, 20.3.9.3: IA32_PERF_GLOBAL_STATUS[48]",
        run: status_bit,
    },
    Check {
        name: "metrics.rdpmc_equals_rdmsr",
        source: "SDM vol. 2, RDPMC: ECX = 20000000H",
        run: rdpmc_equals_rdmsr,
    },
    Check { name: "metrics.reserved", source: "SDM vol. 4: MSR_PERF_METRICS", run: reserved },
];

const SLOTS: Counter = Counter::Fixed(3);
/// Turns of the pieces: some thousand instructions, so that a 255th is some dozen.
const TURNS: u64 = 5_000;

fn needs_register() -> Outcome {
    Ok(Finding::skip("PERF_METRICS"))
}

fn needs_slots() -> Outcome {
    Ok(Finding::skip("fixed counter 3"))
}

/// Slots and shares of `work`, from 0.
fn measured(context: &mut Context, work: Work) -> Result<(u64, PerfMetrics), PmuError> {
    context.fresh()?;
    context.program(SLOTS, &INSTRUCTIONS)?;
    context.driver.enable_metrics()?;
    again(context, work)
}

/// The same, while both are programmed.
fn again(context: &mut Context, work: Work) -> Result<(u64, PerfMetrics), PmuError> {
    context.driver.clear_metrics(context.machine)?;
    context.run(work);
    Ok((context.get(SLOTS)?, context.driver.metrics(context.machine)?))
}

fn work(piece: Ring0Code) -> Work {
    Work::kernel(piece, TURNS)
}

/// How far two shares of the same code may be apart: an emulated PMU is exact, a processor is not.
fn slack(context: &Context) -> u8 {
    if context.emulated.is_some() { 0 } else { 26 }
}

/// The pieces that spend their slots in different ways.
const PIECES: [Ring0Code; 4] =
    [Ring0Code::Loop, Ring0Code::Calls, Ring0Code::Unpredictable, Ring0Code::ColdLoads];

fn width(context: &mut Context) -> Outcome {
    if !context.has().has(SLOTS) {
        return needs_slots();
    }
    let mut all = All::of("4 to 8 slots in each cycle, the same for every code");
    let exact = context.emulated.is_some();
    let mut first = None;
    for piece in PIECES {
        let list = [(SLOTS, INSTRUCTIONS), (Counter::Fixed(1), INSTRUCTIONS)];
        let seen = context.count(&list, work(piece))?;
        let [slots, cycles] = [seen[0], seen[1].max(1)];
        let wide = (slots + cycles / 2) / cycles;
        all.that((4..=8).contains(&wide), format_args!("{piece:?}: {slots} in {cycles} cycles"));
        let whole = !exact || slots.is_multiple_of(cycles);
        all.that(whole, format_args!("{piece:?}: {slots} in {cycles} cycles"));
        all.equal(format_args!("{piece:?}"), *first.get_or_insert(wide), wide);
    }
    Ok(all.finish())
}

fn fixed_and_general(context: &mut Context) -> Outcome {
    // CPUID's list of events may end before this one, where the fixed counter states that it is there.
    if !context.has().has(SLOTS) {
        return needs_slots();
    }
    let event = Selection::of(0xa4, 1);
    let first = context.first();
    let mut all = All::of("both count the same slots");
    for piece in PIECES {
        let seen = context.count(&[(SLOTS, INSTRUCTIONS), (first, event)], work(piece))?;
        let apart = seen[0].abs_diff(seen[1]);
        let good = if context.emulated.is_some() { apart == 0 } else { apart <= seen[0] / 50 };
        all.that(good, format_args!("{piece:?}: {} and {}", seen[0], seen[1]));
    }
    Ok(all.finish())
}

fn overflow(context: &mut Context) -> Outcome {
    let Some(global) = context.driver.layout().global.filter(|_| context.has().has(SLOTS)) else {
        return needs_slots();
    };
    let mut all = All::of("the bit is set after an overflow, and clear without one");
    for (period, overflows) in [(TURNS, true), (1 << 40, false)] {
        context.fresh()?;
        context.program(SLOTS, &INSTRUCTIONS)?;
        context.arm(SLOTS, period)?;
        context.run(work(Ring0Code::Loop));
        let status = context.registers().rdmsr(global.status).unwrap_or(0);
        let set = status & SLOTS.bit() != 0;
        all.that(set == overflows, format_args!("period {period}: status {status:#x}"));
    }
    Ok(all.finish())
}

fn sum(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    // Each of the four is rounded.
    let slack = if context.emulated.is_some() { 0 } else { 4 };
    let mut all = All::of("the four shares of the first level add up to 255");
    for piece in PIECES {
        let (_, shares) = measured(context, work(piece))?;
        let sum = shares.first_level();
        all.that(sum.abs_diff(255) <= slack, format_args!("{piece:?}: {sum}"));
    }
    Ok(all.finish())
}

fn retiring(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    let mut all = All::of(
        "retiring slots: on an emulated PMU the instructions, on a processor 0.5 to 4 times as many",
    );
    for piece in PIECES {
        let (slots, shares) = measured(context, work(piece))?;
        let instructions = context.stated(piece, TURNS).instructions;
        let seen = shares.part(slots, 0);
        let step = slots / 255 + 1;
        let good = match context.emulated {
            Some(_) => (seen..=seen + step).contains(&instructions),
            // Two may retire as one; microcode retires many.
            None => (instructions / 2..=4 * instructions + step).contains(&(seen + step)),
        };
        all.that(good, format_args!("{piece:?}: {seen} of {instructions} instructions"));
    }
    Ok(all.finish())
}

fn bad_speculation(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    let (_, foreseen) = measured(context, work(Ring0Code::Loop))?;
    let (_, guessed) = measured(context, work(Ring0Code::Unpredictable))?;
    let shares = [foreseen, guessed].map(|shares| shares.field(1));
    let seen = alloc::format!("{} and {}", shares[0], shares[1]);
    let expected = "unpredictable jumps waste more slots than predictable ones";
    Ok(Finding::when(shares[1] > shares[0] + 2, expected, seen))
}

/// Whether the register has the second level: then its upper half can be written.
fn has_second_level(context: &mut Context) -> bool {
    let registers = context.registers();
    let taken = registers.wrmsr(numbers::PERF_METRICS, 1 << 56).is_ok();
    let _ = registers.wrmsr(numbers::PERF_METRICS, 0);
    taken
}

fn second_level(context: &mut Context) -> Outcome {
    if !context.has().metrics || !has_second_level(context) {
        return Ok(Finding::skip("the second level of PERF_METRICS"));
    }
    let slack = u32::from(context.emulated.is_none()) * 4;
    let mut all = All::of("each share of the second level is at most its share of the first level");
    for piece in PIECES {
        let (_, shares) = measured(context, work(piece))?;
        for index in 0..4 {
            let [part, whole] = [shares.field(index + 4), shares.field(index)].map(u32::from);
            let good = part <= whole + slack;
            all.that(good, format_args!("{piece:?}: field {} is {part} of {whole}", index + 4));
        }
    }
    Ok(all.finish())
}

fn starts_over(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    let slack = slack(context);
    let (_, alone) = measured(context, work(Ring0Code::Loop))?;
    measured(context, work(Ring0Code::Unpredictable))?;
    let (_, behind) = again(context, work(Ring0Code::Loop))?;
    let mut all = All::of("code has the same shares alone and after other code");
    for index in 0..4 {
        let [one, other] = [alone, behind].map(|shares| shares.field(index));
        let good = one.abs_diff(other) <= slack;
        all.that(good, format_args!("field {index}: {one} alone, {other} after other code"));
    }
    Ok(all.finish())
}

fn needs_enable(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    context.program(SLOTS, &INSTRUCTIONS)?;
    let (slots, shares) = again(context, work(Ring0Code::Loop))?;
    let mut all =
        All::of("without the bit the register keeps the written value while slots are counted");
    all.that(slots > 0, "no slots were counted");
    all.same("the register", 0, shares.0);
    Ok(all.finish())
}

fn rings(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    context.program(SLOTS, &INSTRUCTIONS.in_rings(Rings::USER))?;
    context.driver.enable_metrics()?;
    let (slots, shares) = again(context, work(Ring0Code::Loop))?;
    let mut all = All::of("while fixed counter 3 counts only ring 3, ring 0 changes neither");
    all.equal("slots", 0, slots);
    all.same("the register", 0, shares.0);
    Ok(all.finish())
}

fn status_bit(context: &mut Context) -> Outcome {
    const BIT: u64 = 1 << 48;
    let global = context.driver.layout().global;
    let Some((global, set)) = global.and_then(|global| Some((global, global.set?))) else {
        return Ok(Finding::skip("a register that sets the status"));
    };
    if !context.has().metrics {
        return needs_register();
    }
    let mut all = All::of("the bit can be set and cleared, and a short run does not set it");
    measured(context, work(Ring0Code::Loop))?;
    let status = context.registers().rdmsr(global.status).unwrap_or(0);
    all.that(status & BIT == 0, format_args!("after {TURNS} iterations of a loop: {status:#x}"));
    for (register, expected) in [(set, BIT), (global.clear, 0)] {
        let done = context.registers().wrmsr(register, BIT).is_ok();
        let seen = context.registers().rdmsr(global.status).unwrap_or(0) & BIT;
        let what = format_args!("after a write of MSR {:#x}", register.0);
        all.that(done && seen == expected, format_args!("{what}: {seen:#x}, not {expected:#x}"));
    }
    Ok(all.finish())
}

fn rdpmc_equals_rdmsr(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    let mut all = All::of("both read the same, as written and as counted");
    for counts in [false, true] {
        match counts {
            false => drop(context.registers().wrmsr(numbers::PERF_METRICS, 0x1234_5678)),
            true => drop(measured(context, work(Ring0Code::Calls))?),
        }
        let by_rdmsr = context.registers().rdmsr(numbers::PERF_METRICS).unwrap_or(0);
        let by_rdpmc = context.driver.metrics(context.machine)?;
        all.same("by RDPMC", by_rdmsr, by_rdpmc.0);
    }
    Ok(all.finish())
}

fn reserved(context: &mut Context) -> Outcome {
    if !context.has().metrics {
        return needs_register();
    }
    let mut all = All::of("every bit keeps its written value, or raises #GP");
    for bit in 0..64 {
        let value = 1u64 << bit;
        let registers = context.registers();
        let _ = registers.wrmsr(numbers::PERF_METRICS, 0);
        let expected = match registers.wrmsr(numbers::PERF_METRICS, value) {
            Ok(()) => value,
            Err(_) => 0,
        };
        let seen = registers.rdmsr(numbers::PERF_METRICS).unwrap_or(0);
        all.same(format_args!("bit {bit}"), expected, seen);
        let first_level = bit < 32;
        all.that(!first_level || expected != 0, format_args!("bit {bit} raised #GP"));
    }
    let _ = context.registers().wrmsr(numbers::PERF_METRICS, 0);
    Ok(all.finish())
}
