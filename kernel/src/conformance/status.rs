//! The global status register.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use arch::pmu::PmuError;
use arch::pmu::driver::Global;
use arch::pmu::workload::Ring0Code;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "status.read_only",
        source: "SDM vol. 4: IA32_PERF_GLOBAL_STATUS; PPR, PerfCntrGlobalStatus: read-only",
        run: read_only,
    },
    Check {
        name: "status.set",
        source: "SDM vol. 3, 20.2.4.1: IA32_PERF_GLOBAL_STATUS_SET; APM vol. 2, 13.2.1",
        run: set,
    },
    Check {
        name: "status.cleared_bit_by_bit",
        source: "SDM vol. 3, 20.2.4.2: a 1 clears only its bit",
        run: cleared_bit_by_bit,
    },
    Check {
        name: "status.stays_when_read",
        source: "SDM vol. 3, 20.2.2: cleared only by IA32_PERF_GLOBAL_OVF_CTRL",
        run: stays_when_read,
    },
];

fn global(context: &Context) -> Result<Global, Finding> {
    context.driver.layout().global.ok_or_else(|| Finding::skip("a global status"))
}

/// The status without reserved bits, some of which Zen 4 sets ([`arch::pmu::Driver::status`]).
fn status(context: &mut Context) -> Result<u64, PmuError> {
    Ok(context.driver.status(context.machine)?.bits())
}

/// Makes all general-purpose counters overflow.
fn overflow_all(context: &mut Context) -> Result<u64, PmuError> {
    let mut bits = 0;
    for counter in context.has().generals() {
        context.program(counter, &INSTRUCTIONS)?;
        context.arm(counter, 1)?;
        bits |= counter.bit();
    }
    context.run(Work::kernel(Ring0Code::Empty, 1));
    Ok(bits)
}

fn read_only(context: &mut Context) -> Outcome {
    let global = match global(context) {
        Ok(global) => global,
        Err(skip) => return Ok(skip),
    };
    if context.has().is_intel() {
        let mut all = All::of("a write raises #GP and changes nothing");
        all.faults(context.registers(), global.status, 1);
        return Ok(all.finish());
    }
    // AMD's ignores writes (PPR; Linux, `kvm_pmu_set_msr`); nothing speaks against a #GP.
    let mut all = All::of("a write changes nothing");
    let before = status(context)?;
    let _ = context.registers().wrmsr(global.status, !before);
    all.same("the status", before, status(context)?);
    // Not to be left behind.
    let _ = context.registers().wrmsr(global.status, before);
    Ok(all.finish())
}

fn set(context: &mut Context) -> Outcome {
    let Some(set) = context.driver.layout().global.and_then(|global| global.set) else {
        return Ok(Finding::skip("a register that sets the status"));
    };
    let mut all = All::of("each bit written as 1 is set, the others do not change");
    let mut bits = 0;
    for counter in context.has().counters() {
        let done = context.registers().wrmsr(set, counter.bit()).is_ok();
        bits |= counter.bit();
        let seen = status(context)?;
        all.that(done && seen == bits, format_args!("{counter}: {seen:#x}, not {bits:#x}"));
    }
    Ok(all.finish())
}

fn cleared_bit_by_bit(context: &mut Context) -> Outcome {
    let global = match global(context) {
        Ok(global) => global,
        Err(skip) => return Ok(skip),
    };
    let mut bits = overflow_all(context)?;
    let mut all = All::of("each bit written as 1 is cleared, the others do not change");
    all.same("after overflows", bits, status(context)?);
    for counter in context.has().generals() {
        let done = context.registers().wrmsr(global.clear, counter.bit()).is_ok();
        bits &= !counter.bit();
        let seen = status(context)?;
        all.that(done && seen == bits, format_args!("{counter}: {seen:#x}, not {bits:#x}"));
    }
    Ok(all.finish())
}

fn stays_when_read(context: &mut Context) -> Outcome {
    if let Err(skip) = global(context) {
        return Ok(skip);
    }
    let bits = overflow_all(context)?;
    let mut all = All::of("the second read is the same as the first");
    for which in ["first read", "second read"] {
        all.same(which, bits, status(context)?);
    }
    Ok(all.finish())
}
