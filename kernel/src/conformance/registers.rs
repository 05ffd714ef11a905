//! What the registers take and what they refuse.

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use arch::msr::Msr;
use arch::pmu::registers::FixedField;
use arch::pmu::{Counter, numbers};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "registers.counter_width",
        source: "SDM vol. 2, CPUID leaf 0xA EAX[23:16], EDX[12:5]; APM vol. 2, 13.2.1",
        run: counter_width,
    },
    Check {
        name: "registers.sign_extension",
        source: "SDM vol. 3, 20.2.8: IA32_PMCx takes 32 bits and extends their sign",
        run: sign_extension,
    },
    Check {
        name: "registers.full_width",
        source: "SDM vol. 3, 20.2.8: IA32_A_PMCx",
        run: full_width,
    },
    Check {
        name: "registers.full_width_reserved",
        source: "SDM vol. 3, 20.2.8: bits above the width raise #GP",
        run: full_width_reserved,
    },
    Check {
        name: "registers.fixed_reserved",
        source: "SDM vol. 3, 20.2.2: bits above the width raise #GP",
        run: fixed_reserved,
    },
    Check {
        name: "registers.select_reserved",
        source: "SDM vol. 3, 20.2.1: reserved bits raise #GP; AMD drops them",
        run: select_reserved,
    },
    Check {
        name: "registers.fixed_control_reserved",
        source: "SDM vol. 3, 20.2.2: fields of counters that do not exist raise #GP",
        run: fixed_control_reserved,
    },
    Check {
        name: "registers.global_control_reserved",
        source: "SDM vol. 3, 20.2.2: bits of counters that do not exist raise #GP; AMD drops them",
        run: global_control_reserved,
    },
    Check {
        name: "registers.in_use",
        source: "SDM vol. 3, 20.2.4.3: IA32_PERF_GLOBAL_INUSE",
        run: in_use,
    },
    Check {
        name: "registers.aliases",
        source: "SDM vol. 3, 20.2.6.2; APM vol. 2, 13.2.1: both names are one register",
        run: aliases,
    },
];

/// Reserved in every register of the PMU but the status.
const TOP: u64 = 1 << 63;

fn counter_width(context: &mut Context) -> Outcome {
    let mut all = All::of("each counter holds all ones in its announced width");
    for counter in context.has().counters() {
        let mask = context.has().mask(counter);
        context.set(counter, mask)?;
        all.same(counter, mask, context.get(counter)?);
    }
    Ok(all.finish())
}

fn sign_extension(context: &mut Context) -> Outcome {
    if !context.has().is_intel() {
        return Ok(Finding::skip("IA32_PMCx"));
    }
    let mut all = All::of("bit 31 is extended to the width, the upper half of the value ignored");
    for counter in context.has().generals() {
        let (msr, mask) = (Msr(numbers::PMC + counter.index() as u32), context.has().mask(counter));
        for (written, expected) in [
            (0x7fff_ffff, 0x7fff_ffff),
            (0x8000_0000, !0x7fff_ffff & mask),
            (0xffff_ff01_2345_6789, 0x2345_6789),
            (0x1234_5678_ffff_fffe, !1 & mask),
        ] {
            let done = context.registers().wrmsr(msr, written).is_ok();
            let seen = context.registers().rdmsr(msr).unwrap_or(0);
            all.that(
                done && seen == expected,
                format_args!("{counter}: {seen:#x}, not {expected:#x}, after {written:#x}"),
            );
        }
    }
    Ok(all.finish())
}

fn full_width(context: &mut Context) -> Outcome {
    if !context.has().full_width() && context.has().is_intel() {
        return Ok(Finding::skip("full-width writes"));
    }
    let mut all = All::of("a value with all bits set is kept, and read under every name");
    for counter in context.has().generals() {
        let value = 0xa5a5_5a5a_a5a5_5a5a & context.has().mask(counter);
        context.set(counter, value)?;
        all.same(counter, value, context.get(counter)?);
        if context.has().is_intel() {
            let msr = Msr(numbers::PMC + counter.index() as u32);
            all.same(counter, value, context.registers().rdmsr(msr).unwrap_or(0));
        }
    }
    Ok(all.finish())
}

fn full_width_reserved(context: &mut Context) -> Outcome {
    if !context.has().full_width() {
        return Ok(Finding::skip("full-width writes"));
    }
    let mut all = All::of("a bit above the width raises #GP");
    for counter in context.has().generals() {
        let msr = context.driver.layout().counter(counter);
        let above = context.has().mask(counter) + 1;
        all.faults(context.registers(), msr, above);
        all.faults(context.registers(), msr, TOP);
    }
    Ok(all.finish())
}

fn fixed_reserved(context: &mut Context) -> Outcome {
    let mut all = All::of("a bit above the width raises #GP");
    for counter in context.has().fixeds() {
        let msr = context.driver.layout().counter(counter);
        let above = context.has().mask(counter) + 1;
        all.faults(context.registers(), msr, above);
        all.faults(context.registers(), msr, TOP);
    }
    Ok(all.finish())
}

fn select_reserved(context: &mut Context) -> Outcome {
    let (has, layout) = (context.has().clone(), *context.driver.layout());
    if !has.is_intel() {
        let mut all = All::of("reserved bits are dropped");
        for counter in has.generals() {
            let msr = layout.select(counter.index() as u8);
            let done = context.registers().wrmsr(msr, TOP | 1 << 50 | 0xc0).is_ok();
            let seen = context.registers().rdmsr(msr).unwrap_or(0);
            all.that(done && seen == 0xc0, format_args!("{counter}: {seen:#x}"));
        }
        return Ok(all.finish());
    }
    let mut all = All::of("reserved bits raise #GP");
    for counter in has.generals() {
        let msr = layout.select(counter.index() as u8);
        all.faults(context.registers(), msr, TOP);
        if !has.umask2 {
            all.faults(context.registers(), msr, 1 << 40);
        }
        if !has.any_thread {
            all.faults(context.registers(), msr, 1 << 21);
        }
    }
    Ok(all.finish())
}

fn fixed_control_reserved(context: &mut Context) -> Outcome {
    let has = context.has().clone();
    if has.fixed == 0 {
        return Ok(Finding::skip("fixed counters"));
    }
    let mut all = All::of("fields and bits that do not exist raise #GP");
    let next = 32 - has.fixed.leading_zeros();
    if let Some(behind) = 1u64.checked_shl(4 * next) {
        all.faults(context.registers(), numbers::FIXED_CTR_CTRL, behind);
    }
    if !has.any_thread {
        // Counter 3's is something else where PERF_CAPABILITIES[19] is set; counter 0's is not.
        let any = u64::from(FixedField::ANY_THREAD.bits());
        all.faults(context.registers(), numbers::FIXED_CTR_CTRL, any);
    }
    Ok(all.finish())
}

fn global_control_reserved(context: &mut Context) -> Outcome {
    let Some(global) = context.driver.layout().global else {
        return Ok(Finding::skip("a global control"));
    };
    let next = 32 - context.has().general.leading_zeros();
    if context.has().is_intel() {
        let mut all = All::of("bits of counters that do not exist raise #GP");
        all.faults(context.registers(), global.control, 1 << next);
        all.faults(context.registers(), global.control, TOP);
        return Ok(all.finish());
    }
    let mut all = All::of("bits of counters that do not exist are dropped");
    let all_counters = context.has().counter_bits();
    let done = context.registers().wrmsr(global.control, TOP | 1 << next | all_counters).is_ok();
    let seen = context.registers().rdmsr(global.control).unwrap_or(0);
    let _ = context.registers().wrmsr(global.control, 0);
    all.that(done && seen == all_counters, format_args!("{seen:#x}, not {all_counters:#x}"));
    Ok(all.finish())
}

fn in_use(context: &mut Context) -> Outcome {
    let Some(msr) = context.driver.layout().global.and_then(|global| global.in_use) else {
        return Ok(Finding::skip("IA32_PERF_GLOBAL_INUSE"));
    };
    let mut all = All::of("exactly the programmed counters are shown, and a write raises #GP");
    all.same("nothing programmed", 0, context.registers().rdmsr(msr).unwrap_or(1));
    for counter in context.has().counters() {
        context.fresh()?;
        context.program(counter, &super::context::INSTRUCTIONS)?;
        let seen = context.registers().rdmsr(msr).unwrap_or(0);
        all.same(counter, counter.bit(), seen);
    }
    all.faults(context.registers(), msr, 0);
    Ok(all.finish())
}

fn aliases(context: &mut Context) -> Outcome {
    let has = context.has().clone();
    let mut all = All::of("what is written under one name is read under the other");
    for counter in has.generals() {
        let n = counter.index() as u32;
        let other = match (has.is_intel(), has.version) {
            (true, 6..) => Msr(numbers::PMC + n),
            (false, 1..) if n < 4 => Msr(numbers::AMD_LEGACY_CTR + n),
            _ => continue,
        };
        context.set(counter, 0x1234_5678)?;
        all.same(counter, 0x1234_5678, context.registers().rdmsr(other).unwrap_or(0));
    }
    for counter in has.fixeds().filter(|_| has.version >= 6) {
        let Counter::Fixed(i) = counter else { continue };
        context.set(counter, 0x1234_5678)?;
        let other = Msr(numbers::FIXED_CTR + u32::from(i));
        all.same(counter, 0x1234_5678, context.registers().rdmsr(other).unwrap_or(0));
    }
    Ok(all.finish())
}
