//! What CPUID announces against what is there.

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use arch::msr::Msr;
use arch::pmu::numbers;
use arch::pmu::{Counter, Fault};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "enumeration.counters_exist",
        source: "SDM vol. 3, 20.2.1 and 20.2.6; APM vol. 2, 13.2.1",
        run: counters_exist,
    },
    Check {
        name: "enumeration.registers_exist",
        source: "SDM vol. 3, 20.2 and 18.4.1: registers of announced features; APM vol. 2, 13.2.1",
        run: registers_exist,
    },
    Check {
        name: "enumeration.no_more_counters",
        source: "SDM vol. 3, 20.2.1: absent registers raise #GP",
        run: no_more_counters,
    },
    Check {
        name: "enumeration.versioned_registers",
        source: "SDM vol. 3, 20.2.2 to 20.2.6; APM vol. 2, 13.2.1",
        run: versioned_registers,
    },
    Check {
        name: "enumeration.capabilities_read_only",
        source: "SDM vol. 4, table 2-2: IA32_PERF_CAPABILITIES",
        run: capabilities_read_only,
    },
    Check {
        name: "enumeration.widths",
        source: "SDM vol. 2, CPUID leaf 0xA: at least 32 bits, at most 64",
        run: widths,
    },
    Check {
        name: "enumeration.extra_registers",
        source: "Linux, arch/x86/events/intel/core.c: check_msr",
        run: extra_registers,
    },
];

fn counters_exist(context: &mut Context) -> Outcome {
    let mut all = All::of("select and counter of each announced counter can be read and written");
    let (has, layout) = (context.has().clone(), *context.driver.layout());
    for counter in has.counters() {
        let mut list = [Some(layout.counter(counter)), None];
        if let Counter::General(n) = counter {
            list[1] = Some(layout.select(n));
        }
        for msr in list.into_iter().flatten() {
            let registers = context.registers();
            let there = registers.rdmsr(msr).is_ok() && registers.wrmsr(msr, 0).is_ok();
            all.that(there, format_args!("{counter}: MSR {:#x} does not exist", msr.0));
        }
    }
    Ok(all.finish())
}

/// Features are given up for want of a register when the capabilities are read.
fn registers_exist(context: &mut Context) -> Outcome {
    let missing = context.has().faults.iter().find(|fault| matches!(fault, Fault::Register { .. }));
    let expected = "every register of an announced feature can be read";
    Ok(match missing {
        Some(fault) => Finding::fail(expected, fault),
        None => Finding::pass(expected, "as expected"),
    })
}

fn no_more_counters(context: &mut Context) -> Outcome {
    let mut all = All::of("the registers after the last counter raise #GP");
    let (has, layout) = (context.has().clone(), *context.driver.layout());
    let next = 32 - has.general.leading_zeros();
    let next_fixed = 32 - has.fixed.leading_zeros();
    let mut absent = |context: &mut Context, msr: Msr| {
        let there = context.registers().rdmsr(msr).is_ok();
        all.that(!there, format_args!("MSR {:#x} can be read", msr.0));
    };
    // Only numbers that are set aside for counters: eight or, with version 6, 32 on Intel, six on AMD.
    let set_aside = match (has.is_intel(), has.version) {
        (true, 6..) => 32,
        (true, _) => 8,
        (false, 0) => 0,
        (false, _) => 6,
    };
    if next < set_aside {
        absent(context, layout.select(next as u8));
        absent(context, layout.counter(Counter::General(next as u8)));
    }
    if has.is_intel() {
        absent(context, layout.counter(Counter::Fixed(next_fixed as u8)));
    } else if has.version == 0 {
        absent(context, Msr(numbers::AMD_PERF_CTL));
    }
    Ok(all.finish())
}

fn versioned_registers(context: &mut Context) -> Outcome {
    let mut all = All::of("the registers of this version exist, and those of later ones do not");
    let has = context.has().clone();
    let (v, intel) = (has.version, has.is_intel());
    // Below version 4, 0x391 and 0x392 may be the uncore's.
    let list = [
        (numbers::GLOBAL_CTRL, intel, v >= 2),
        (numbers::GLOBAL_STATUS, intel, v >= 2),
        (numbers::GLOBAL_OVF_CTRL, intel, v >= 2),
        (numbers::FIXED_CTR_CTRL, intel, has.fixed != 0),
        (numbers::GLOBAL_STATUS_SET, intel && v >= 4, true),
        (numbers::GLOBAL_INUSE, intel && v >= 4, true),
        (numbers::PERF_CAPABILITIES, intel, has.pdcm),
        (Msr(numbers::A_PMC), intel, has.full_width()),
        (Msr(numbers::V6_GENERAL), intel && v >= 6, has.general & 1 != 0),
        (numbers::AMD_GLOBAL_STATUS, !intel, v >= 2),
        (numbers::AMD_GLOBAL_CTL, !intel, v >= 2),
        (numbers::AMD_GLOBAL_STATUS_CLR, !intel, v >= 2),
        (Msr(numbers::AMD_PERF_CTL), !intel, v >= 1),
        (Msr(numbers::AMD_LEGACY_CTL), !intel, true),
    ];
    for (msr, _, expected) in list.into_iter().filter(|(_, applies, _)| *applies) {
        let there = context.registers().rdmsr(msr).is_ok();
        let how = if there { "exists" } else { "does not exist" };
        all.that(there == expected, format_args!("MSR {:#x} {how}", msr.0));
    }
    Ok(all.finish())
}

fn capabilities_read_only(context: &mut Context) -> Outcome {
    if !context.has().pdcm {
        return Ok(Finding::skip("IA32_PERF_CAPABILITIES"));
    }
    let mut all = All::of("a write to IA32_PERF_CAPABILITIES raises #GP");
    let value = context.has().perf.bits();
    all.faults(context.registers(), numbers::PERF_CAPABILITIES, value ^ 1);
    Ok(all.finish())
}

fn widths(context: &mut Context) -> Outcome {
    let mut all = All::of("counters are 32 to 64 bits wide");
    for counter in context.has().counters() {
        let bits = context.has().bits(counter);
        all.that((32..=64).contains(&bits), format_args!("{counter} has {bits} bits"));
    }
    Ok(all.finish())
}

fn extra_registers(context: &mut Context) -> Outcome {
    /// Valid in all of them on all processors that have them.
    const PATTERN: u64 = 0x11;
    let mut all = All::of("the extra registers keep a written value");
    for msr in context.has().extra.clone() {
        let before = context.registers().rdmsr(msr).unwrap_or(0);
        let written = context.registers().wrmsr(msr, PATTERN);
        let seen = context.registers().rdmsr(msr).unwrap_or(0);
        let _ = context.registers().wrmsr(msr, before);
        all.that(written.is_ok() && seen == PATTERN, format_args!("MSR {:#x}: {seen:#x}", msr.0));
    }
    Ok(all.finish())
}
