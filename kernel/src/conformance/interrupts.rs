//! The performance monitoring interrupt.

use super::bounds::{Overflow, overflow};
use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::pmi::{ControlBlock, Delivery};
use arch::pmu::workload::{Ring0Code, Ring3Code};
use arch::pmu::{Counter, PmuError, Rings, Selection};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "pmi.each_counter",
        source: "SDM vol. 3, 20.2.1.1: INT; APM vol. 2, 13.2.1",
        run: each_counter,
    },
    Check {
        name: "pmi.each_fixed_counter",
        source: "SDM vol. 3, 20.2.2: IA32_FIXED_CTR_CTRL, PMI",
        run: each_fixed_counter,
    },
    Check {
        name: "pmi.only_with_int",
        source: "SDM vol. 3, 20.2.1.1: without INT an overflow raises no interrupt",
        run: only_with_int,
    },
    Check {
        name: "pmi.count",
        source: "the code's listing: one interrupt each period, none lost, none spurious",
        run: count,
    },
    Check {
        name: "pmi.count_as_nmi",
        source: "the code's listing; SDM vol. 3, 10.5.1: delivery mode NMI",
        run: count_as_nmi,
    },
    Check {
        name: "pmi.two_at_once",
        source: "SDM vol. 3, 20.2.2: one interrupt may report several overflows, each with its status bit",
        run: two_at_once,
    },
    Check {
        name: "pmi.latency",
        source: "the code's listing: instructions that retire between overflow and interrupt",
        run: latency,
    },
    Check {
        name: "pmi.path",
        source: "barecount: at most 45 instructions from the interrupted to the resumed one, 60 without a status register",
        run: path,
    },
    Check {
        name: "pmi.path_with_sample",
        source: "barecount: at most 60 instructions from the interrupted to the resumed one, 100 without a status register",
        run: path_with_sample,
    },
];

/// A period that does not end within a check.
const FAR: u64 = 1 << 30;

/// Programs `counter` with an interrupt after `period` events, and then none for long.
pub(super) fn once(
    context: &mut Context,
    counter: Counter,
    event: Selection,
    period: u64,
) -> Result<(), PmuError> {
    context.program(counter, &event)?;
    context.arm(counter, period)?;
    Ok(())
}

/// A block in which no counter comes again soon.
pub(super) fn far(block: &mut ControlBlock, driver: &arch::pmu::Driver) -> Result<(), PmuError> {
    let has = driver.capabilities();
    for counter in has.counters().filter(|counter| driver.programmed() & counter.bit() != 0) {
        block.reload(driver, counter, driver.preset(counter, FAR)?)?;
    }
    Ok(())
}

fn each(context: &mut Context, counters: impl Iterator<Item = Counter>, mut all: All) -> Outcome {
    for counter in counters {
        context.fresh()?;
        once(context, counter, INSTRUCTIONS.with_interrupt(), 50)?;
        context.deliver(Delivery::Fixed, far)?;
        context.run(Work::kernel(Ring0Code::Loop, 1000));
        let block = context.machine.withdraw();
        let seen = (block.pmis, block.overflows(counter), block.spurious);
        all.that(
            seen == (1, 1, 0),
            format_args!(
                "{counter}: {} interrupts, {} overflows, {} spurious",
                seen.0, seen.1, seen.2
            ),
        );
    }
    Ok(all.finish())
}

fn each_counter(context: &mut Context) -> Outcome {
    let counters = context.has().generals();
    each(context, counters, All::of("one interrupt, with its counter's overflow"))
}

fn each_fixed_counter(context: &mut Context) -> Outcome {
    let counters = context.has().certain_fixeds();
    each(context, counters, All::of("one interrupt, with its counter's overflow"))
}

fn only_with_int(context: &mut Context) -> Outcome {
    let mut all = All::of("no interrupt from an overflow without INT");
    for counter in context.has().counters() {
        context.fresh()?;
        once(context, counter, INSTRUCTIONS, 50)?;
        context.deliver(Delivery::Fixed, far)?;
        context.run(Work::kernel(Ring0Code::Loop, 1000));
        let block = context.machine.withdraw();
        all.equal(counter, 0, block.pmis + block.spurious);
    }
    Ok(all.finish())
}

/// Turns of a loop in ring 3 that make 20 periods of 1,000 and 100 instructions more.
const USER_TURNS: u64 = 10_050;
const PERIOD: u64 = 1000;
const PERIODS: u64 = 20;

/// Interrupts of a counter that counts ring 3 alone, so that the handler does not count.
pub(super) fn in_ring_3(
    context: &mut Context,
    delivery: Delivery,
    change: impl FnOnce(&mut ControlBlock, &arch::pmu::Driver) -> Result<(), PmuError>,
) -> Result<ControlBlock, PmuError> {
    let counter = context.first();
    let event = INSTRUCTIONS.in_rings(Rings::USER).with_interrupt();
    context.program(counter, &event)?;
    let preset = context.arm(counter, PERIOD)?;
    context.deliver(delivery, |block, driver| {
        block.reload(driver, counter, preset)?;
        change(block, driver)
    })?;
    context.run(Work::user(Ring3Code::Loop, USER_TURNS));
    Ok(context.machine.withdraw())
}

/// Instructions of ring 3 in [`in_ring_3`], without the INT.
pub(super) const IN_RING_3: u64 = Ring3Code::Loop.instructions(USER_TURNS);

/// Fewest periods: each begins again when the handler has reloaded the counter, so what a processor counts between
/// overflow and interrupt is lost to it.
pub(super) fn fewest(context: &Context) -> u64 {
    match context.bounds.skid {
        0 => PERIODS,
        skid => IN_RING_3 / (PERIOD + skid),
    }
}

fn counted(context: &mut Context, delivery: Delivery) -> Outcome {
    let counter = context.first();
    let block = in_ring_3(context, delivery, |_, _| Ok(()))?;
    let least = fewest(context);
    let good = (least..=PERIODS).contains(&block.overflows(counter))
        && block.pmis == block.overflows(counter)
        && block.spurious == 0;
    let expected = alloc::format!("{least} to {PERIODS} interrupts, none spurious");
    let seen = alloc::format!(
        "{} interrupts, {} overflows, {} spurious, {} back to back",
        block.pmis,
        block.overflows(counter),
        block.spurious,
        block.back_to_back
    );
    Ok(Finding::when(good, expected, seen))
}

fn count(context: &mut Context) -> Outcome {
    counted(context, Delivery::Fixed)
}

fn count_as_nmi(context: &mut Context) -> Outcome {
    counted(context, Delivery::Nmi)
}

fn two_at_once(context: &mut Context) -> Outcome {
    let pair = [context.first(), context.second()];
    for counter in pair {
        once(context, counter, INSTRUCTIONS.with_interrupt(), 100)?;
    }
    context.deliver(Delivery::Fixed, far)?;
    context.run(Work::kernel(Ring0Code::Loop, 1000));
    let block = context.machine.withdraw();
    let overflows = pair.map(|counter| block.overflows(counter));
    // A processor may raise them one after the other.
    let good = overflows == [1, 1] && (1..=2).contains(&block.pmis);
    let seen = alloc::format!("{} interrupts, overflows {overflows:?}", block.pmis);
    let found = Finding::when(good, "one or two interrupts, overflows [1, 1]", seen);
    let are_missing = block.pmis <= 2 && overflows.iter().all(|&seen| seen <= 1);
    Ok(found.explained_by(context.interrupts_erratum().filter(|_| are_missing)))
}

fn latency(context: &mut Context) -> Outcome {
    Ok(match overflow(context)? {
        None => Finding::fail("one sample", "none or several"),
        Some(Overflow { skid, .. }) => {
            let most = context.bounds.straight;
            let expected = if most == 0 { "0".into() } else { alloc::format!("0 to {most}") };
            // Less than 0: it came early.
            let good = u64::try_from(skid).is_ok_and(|skid| skid <= most);
            Finding::when(good, expected, skid)
        }
    })
}

/// What the handler costs, by what a counter of ring 0 sees more than without it.
fn cost(context: &mut Context, [most, searching]: [u64; 2], with_log: bool) -> Outcome {
    let most = if context.has().has_global() { most } else { searching };
    if !context.machine.counts_handlers() {
        return Ok(Finding::skip("a machine that runs the handler's instructions"));
    }
    const TURNS: u64 = 3000;
    let (counter, witness) = (context.first(), context.second());
    context.program(counter, &INSTRUCTIONS.with_interrupt())?;
    context.program(witness, &INSTRUCTIONS)?;
    let preset = context.arm(counter, PERIOD)?;
    let log = context.machine.log();
    context.deliver(Delivery::Fixed, |block, driver| {
        if with_log {
            block.log_to(log);
        }
        block.reload(driver, counter, preset)
    })?;
    context.run(Work::kernel(Ring0Code::Loop, TURNS));
    let block = context.machine.withdraw();
    let stated = context.stated(Ring0Code::Loop, TURNS).instructions;
    let more = context.get(witness)?.wrapping_sub(stated);
    if block.pmis == 0 {
        return Ok(Finding::fail("interrupts", "none"));
    }
    let each = more / block.pmis;
    let exact = more % block.pmis == 0;
    let bound = context.emulated.is_some();
    let expected = match bound {
        true => alloc::format!("at most {most} instructions an interrupt"),
        false => {
            alloc::format!("a figure; at most {most} instructions on barecount's emulated PMU")
        }
    };
    let about = if exact { "" } else { "about " };
    let seen = alloc::format!("{about}{each} instructions, {} interrupts", block.pmis);
    let good = each > 0 && (!bound || each <= most);
    Ok(Finding::when(good, expected, seen))
}

fn path(context: &mut Context) -> Outcome {
    cost(context, [45, 60], false)
}

fn path_with_sample(context: &mut Context) -> Outcome {
    cost(context, [60, 100], true)
}
