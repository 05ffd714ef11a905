//! RDPMC, and RDTSC in ring 3.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::driver::{Layout, RDPMC_FIXED, RDPMC_METRICS};
use arch::pmu::workload::Ring0Code;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "rdpmc.equals_rdmsr",
        source: "SDM vol. 2, RDPMC: the counter, zero-extended",
        run: equals_rdmsr,
    },
    Check {
        name: "rdpmc.bad_index",
        source: "SDM vol. 2, RDPMC: #GP for a counter that does not exist",
        run: bad_index,
    },
    Check {
        name: "rdpmc.fast_mode",
        source: "SDM vol. 2, RDPMC: ECX[31] exists only on NetBurst",
        run: fast_mode,
    },
    Check {
        name: "rdpmc.ring_3_allowed",
        source: "SDM vol. 3, 2.5: CR4.PCE set",
        run: ring_3_allowed,
    },
    Check {
        name: "rdpmc.ring_3_forbidden",
        source: "SDM vol. 3, 2.5: CR4.PCE clear",
        run: ring_3_forbidden,
    },
    Check {
        name: "rdpmc.tsc_ring_3_allowed",
        source: "SDM vol. 3, 2.5: CR4.TSD clear",
        run: tsc_ring_3_allowed,
    },
    Check {
        name: "rdpmc.tsc_ring_3_forbidden",
        source: "SDM vol. 3, 2.5: CR4.TSD set",
        run: tsc_ring_3_forbidden,
    },
];

fn equals_rdmsr(context: &mut Context) -> Outcome {
    let mut all = All::of("all bits of each counter");
    for counter in context.has().counters() {
        // All ones but the lowest: fits the sign extension as well.
        let value = context.has().mask(counter) - 1;
        context.set(counter, value)?;
        all.same(counter, value, context.driver.rdpmc(context.machine, counter)?);
        context.set(counter, 0x1234_5678)?;
        all.same(counter, 0x1234_5678, context.driver.rdpmc(context.machine, counter)?);
    }
    let first = context.first();
    let counted = context.count(&[(first, INSTRUCTIONS)], Work::kernel(Ring0Code::Loop, 10))?[0];
    all.equal("a count", counted, context.driver.rdpmc(context.machine, first)?);
    Ok(all.finish())
}

fn bad_index(context: &mut Context) -> Outcome {
    let mut all = All::of("#GP for each index without a counter");
    let has = context.has().clone();
    let mut list = alloc::vec![64, 0xffff];
    if has.is_intel() {
        list.push(32 - has.general.leading_zeros());
        list.push(RDPMC_FIXED | (32 - has.fixed.leading_zeros()));
        list.push(0x1000_0000);
        if !has.metrics {
            list.push(RDPMC_METRICS);
        }
    }
    for index in list {
        let there = context.registers().rdpmc(index).is_ok();
        all.that(!there, format_args!("ECX = {index:#x} was accepted"));
    }
    Ok(all.finish())
}

fn fast_mode(context: &mut Context) -> Outcome {
    let mut all = All::of("#GP for ECX[31]");
    for counter in context.has().counters() {
        let index = Layout::rdpmc_index(counter) | 1 << 31;
        let there = context.registers().rdpmc(index).is_ok();
        all.that(!there, format_args!("ECX = {index:#x} was accepted"));
    }
    Ok(all.finish())
}

fn ring_3_allowed(context: &mut Context) -> Outcome {
    let mut all = All::of("each counter's value in ring 3");
    for counter in context.has().counters() {
        context.set(counter, 0x0765_4321)?;
        let seen = context.machine.rdpmc_in_ring_3(Layout::rdpmc_index(counter), true);
        match seen {
            Some(seen) => all.same(counter, 0x0765_4321, seen),
            None => all.that(false, format_args!("{counter}: an exception")),
        }
    }
    let bad = context.machine.rdpmc_in_ring_3(64, true);
    all.that(bad.is_none(), "ECX = 0x40 was accepted in ring 3");
    Ok(all.finish())
}

fn ring_3_forbidden(context: &mut Context) -> Outcome {
    let index = Layout::rdpmc_index(context.first());
    Ok(match context.machine.rdpmc_in_ring_3(index, false) {
        None => Finding::pass("#GP in ring 3", "an exception"),
        Some(value) => Finding::fail("#GP in ring 3", format_args!("{value:#x}")),
    })
}

fn tsc_ring_3_allowed(context: &mut Context) -> Outcome {
    let expected = "a TSC value between those that ring 0 read before and after";
    let before = context.machine.tsc();
    let seen = context.machine.rdtsc_in_ring_3(true);
    let after = context.machine.tsc();
    Ok(match seen {
        None => Finding::fail(expected, "an exception"),
        Some(seen) if (before..=after).contains(&seen) => Finding::pass(expected, "as expected"),
        Some(seen) => {
            Finding::fail(expected, format_args!("{seen:#x}, not {before:#x} to {after:#x}"))
        }
    })
}

fn tsc_ring_3_forbidden(context: &mut Context) -> Outcome {
    Ok(match context.machine.rdtsc_in_ring_3(false) {
        None => Finding::pass("#GP in ring 3", "an exception"),
        Some(value) => Finding::fail("#GP in ring 3", format_args!("{value:#x}")),
    })
}
