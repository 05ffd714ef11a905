//! Counters and branch records that stand still after a PMI.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::interrupts::{IN_RING_3, far, fewest, in_ring_3, once};
use super::machine::Work;
use arch::pmu::pmi::{ControlBlock, Delivery};
use arch::pmu::registers::{GlobalStatus, LbrSelect};
use arch::pmu::workload::{Ring0Code, calls_sites};
use arch::pmu::{Driver, Freeze, FreezeKind, LbrKind, PmuError, Rings, lbr};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "freeze.counters",
        source: "SDM vol. 3, 18.4.7: FREEZE_PERFMON_ON_PMI; AMD: 0x80000022 EAX[2]",
        run: counters,
    },
    Check {
        name: "freeze.skew",
        source: "SDM vol. 3, 18.4.7: all counters stop together",
        run: skew,
    },
    Check {
        name: "freeze.form",
        source: "SDM vol. 3, 20.2.4: versions 2 and 3 clear the enables, later ones set status bit 59",
        run: form,
    },
    Check {
        name: "freeze.resume",
        source: "SDM vol. 3, 20.2.4: counters continue after bit 59 is cleared or the enables are set",
        run: resume,
    },
    Check {
        name: "freeze.by_software",
        source: "SDM vol. 3, 20.2.2: a cleared IA32_PERF_GLOBAL_CTRL stops all counters; without one, 20.2.1: EN of each",
        run: by_software,
    },
    Check {
        name: "freeze.branch_records",
        source: "SDM vol. 3, 18.4.7: FREEZE_LBRS_ON_PMI",
        run: branch_records,
    },
];

/// Instructions before the PMI.
const PERIOD: u64 = 500;

/// Turns of the loop.
const TURNS: u64 = 2000;

/// Runs a loop in which the first counter raises a PMI after [`PERIOD`] instructions, with every other counter in addition to
/// it, and leaves everything frozen.
fn frozen(context: &mut Context) -> Result<(), PmuError> {
    let first = context.first();
    once(context, first, INSTRUCTIONS.with_interrupt(), PERIOD)?;
    for other in context.has().generals().skip(1) {
        context.program(other, &INSTRUCTIONS)?;
    }
    context.driver.set_freeze(context.machine, Freeze::COUNTERS)?;
    // The handler acknowledges and reloads the first counter alone.
    context.deliver(Delivery::Fixed, |block, driver| {
        block.reload(driver, first, driver.preset(first, 1 << 30)?)
    })?;
    context.run(Work::kernel(Ring0Code::Loop, TURNS));
    Ok(())
}

/// Not tried, as everything after it would count nothing.
fn never_ends() -> Finding {
    Finding::fail("a freeze that can be ended", "the bits of the status cannot be cleared")
}

fn needs_freeze(context: &Context) -> Option<Finding> {
    match context.has().freeze {
        FreezeKind::None => Some(Finding::skip("freezing on a PMI")),
        FreezeKind::Streamlined if context.stuck => Some(never_ends()),
        _ => None,
    }
}

fn counters(context: &mut Context) -> Outcome {
    if let Some(skip) = needs_freeze(context) {
        return Ok(skip);
    }
    frozen(context)?;
    let pmis = context.machine.withdraw().pmis;
    let seen = context.get(context.second())?;
    if pmis != 1 {
        return Ok(Finding::fail("one interrupt", pmis));
    }
    Ok(Finding::within(PERIOD, PERIOD + context.bounds.skid, seen))
}

fn skew(context: &mut Context) -> Outcome {
    if let Some(skip) = needs_freeze(context) {
        return Ok(skip);
    }
    frozen(context)?;
    context.machine.withdraw();
    let (mut least, mut most) = (u64::MAX, 0);
    let whole = context.stated(Ring0Code::Loop, TURNS).instructions;
    for counter in context.has().generals().skip(1) {
        let seen = context.get(counter)?;
        (least, most) = (least.min(seen), most.max(seen));
    }
    if least == u64::MAX {
        return Ok(Finding::skip("a second counter"));
    }
    // Counters that never began, or never stopped, are equal as well.
    if least == 0 || least >= whole {
        let expected =
            alloc::format!("counts above 0 and below {whole}, the count without a freeze");
        return Ok(Finding::fail(expected, least));
    }
    Ok(Finding::within(0, context.bounds.skew, most - least))
}

fn form(context: &mut Context) -> Outcome {
    if let Some(skip) = needs_freeze(context) {
        return Ok(skip);
    }
    // Only while the window is still open can the enables be seen; the status bit stays.
    frozen(context)?;
    context.machine.withdraw();
    let status = context.driver.status(context.machine)?;
    let whole = context.stated(Ring0Code::Loop, TURNS).instructions;
    let stopped = context.get(context.second())?;
    if stopped == 0 || stopped >= whole {
        let expected = alloc::format!("a counter that stopped above 0 and below {whole}");
        return Ok(Finding::fail(expected, stopped));
    }
    let seen = status.contains(GlobalStatus::COUNTERS_FROZEN);
    let expected = context.has().freeze == FreezeKind::Streamlined;
    let text = |set| if set { "status bit 59 set" } else { "status bit 59 clear" };
    Ok(Finding::when(seen == expected, text(expected), text(seen)))
}

/// A witness that counts ring 3 loses nothing while the handler lets everything continue.
fn nothing_lost(
    context: &mut Context,
    change: impl FnOnce(&mut ControlBlock, &Driver) -> Result<(), PmuError>,
) -> Outcome {
    let witness = context.second();
    context.program(witness, &INSTRUCTIONS.in_rings(Rings::USER))?;
    let block = in_ring_3(context, Delivery::Fixed, change)?;
    let seen = context.get(witness)?;
    // One INT and one IRET at the edges; each interrupt may count once, and each freeze lose what a processor
    // retires between overflow and interrupt.
    let lost = block.pmis.saturating_mul(context.bounds.skid).min(IN_RING_3);
    let extra = if context.emulated.is_some() { 0 } else { block.pmis };
    let least = fewest(context);
    let expected = alloc::format!(
        "{} to {} instructions, {least} or more interrupts",
        IN_RING_3 - lost,
        IN_RING_3 + 2 + extra
    );
    let is_whole = (IN_RING_3 - lost..=IN_RING_3 + 2 + extra).contains(&seen);
    let seen = alloc::format!("{seen} instructions, {} interrupts", block.pmis);
    let found = Finding::when(is_whole && block.pmis >= least, expected, seen);
    // What explains missing interrupts explains no missing instructions.
    Ok(found.explained_by(context.interrupts_erratum().filter(|_| is_whole)))
}

fn resume(context: &mut Context) -> Outcome {
    if let Some(skip) = needs_freeze(context) {
        return Ok(skip);
    }
    context.driver.set_freeze(context.machine, Freeze::COUNTERS)?;
    nothing_lost(context, |block, driver| {
        block.resume_in_handler(driver);
        Ok(())
    })
}

fn by_software(context: &mut Context) -> Outcome {
    nothing_lost(context, ControlBlock::stop_in_handler)
}

fn branch_records(context: &mut Context) -> Outcome {
    let has = context.has().clone();
    let records = !matches!(has.lbr, LbrKind::None | LbrKind::Single);
    if has.freeze == FreezeKind::None || !records {
        return Ok(Finding::skip("freezing of branch records on a PMI"));
    }
    if context.stuck && has.freeze == FreezeKind::Streamlined {
        return Ok(never_ends());
    }
    let first = context.first();
    once(context, first, INSTRUCTIONS.with_interrupt(), 150)?;
    context.driver.set_freeze(context.machine, Freeze::LBR)?;
    lbr::start(context.machine, &has, LbrSelect::empty())?;
    lbr::stop(context.machine, &has)?;
    let (msr, on, off) = lbr::switch(context.machine, &has, LbrSelect::empty())?;
    context.deliver(Delivery::Fixed, far)?;
    let gate = context.driver.gate().with(msr, on, off);
    context.machine.run(&gate, Work::kernel(Ring0Code::Calls, 200));
    context.machine.withdraw();
    let sites = calls_sites();
    let status = context.driver.status(context.machine)?;
    let seen = lbr::records(context.machine, &has)?;
    let mut all = All::of("records up to the interrupt, none of the code after it");
    all.that(!seen.is_empty(), "no record");
    for record in &seen {
        let behind = record.from == sites.piece_return;
        all.that(!behind, format_args!("a record of the return at {:#x}", record.from));
    }
    if has.freeze == FreezeKind::Streamlined {
        all.that(status.contains(GlobalStatus::LBR_FROZEN), "status bit 58 is clear");
    }
    Ok(all.finish())
}
