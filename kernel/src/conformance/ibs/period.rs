//! When an operation is tagged.

use super::unit::{look, of_ops, off, seen, tag};
use super::{LONG, NEEDS, features};
use crate::conformance::check::{All, Finding, Outcome};
use crate::conformance::context::Context;
use crate::conformance::machine::Work;
use arch::pmu::ibs::{Features, Period, Unit};
use arch::pmu::workload::Ring0Code;
use arch::pmu::{PmuError, Selection};

/// AMD's PMCx0C1 and PMCx076: operations retired, and cycles.
pub(super) const OPERATIONS: Selection = Selection::of(0xc1, 0);

pub(super) const CYCLES: Selection = Selection::of(0x76, 0);

/// By how much the current count is further after more turns, and what a counter of the same counts of them. The lowest bits of
/// the count are of no use once there is a sample, so none is to come.
pub(super) fn counted(
    context: &mut Context,
    period: Period,
    beside: Selection,
    turns: [u64; 2],
) -> Result<[u64; 2], PmuError> {
    let mut counts = [[0; 2]; 2];
    for (turns, counts) in turns.into_iter().zip(&mut counts) {
        context.fresh()?;
        let counter = context.first();
        context.program(counter, &beside)?;
        let seen = tag(context, period, 0, Work::kernel(Ring0Code::Unpredictable, turns))?;
        *counts = [period.unit().count(seen.control), context.get(counter)?];
    }
    let [less, more] = counts;
    Ok([more[0].wrapping_sub(less[0]), more[1].wrapping_sub(less[1])])
}

pub(super) fn count(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    if !has.contains(Features::READ_WRITE_COUNT) {
        return Ok(Finding::skip("a current count that can be read (CPUID 0x8000001B EAX[3])"));
    }
    let mut all = All::of("the count grows as that of a counter with the same event");
    for (operations, beside) in [(false, CYCLES), (true, OPERATIONS)] {
        let Ok(period) = Period::new(Unit::Op, operations, 0xf_0000, has) else { continue };
        let [seen, counter] = counted(context, period, beside, [100, 1100])?;
        // Operations that are dispatched in vain are counted, and not retired.
        let good = match context.emulated {
            Some(_) => seen == counter,
            None => (counter / 2..counter * 4).contains(&seen),
        };
        let what = if operations { "operations" } else { "cycles" };
        all.that(good && seen > 0, format_args!("{seen} {what}, a counter {counter}"));
    }
    if let Some(period) = of_ops(has, 0xf_0000) {
        const MORE: u64 = 1000;
        let work = Work::kernel(Ring0Code::Loop, 100);
        let mut counts = [0; 3];
        // The first time is another way around the piece.
        for (start, count) in [0, 0, MORE].into_iter().zip(&mut counts) {
            *count = Unit::Op.count(tag(context, period, start, work)?.control);
        }
        let seen = counts[2].wrapping_sub(counts[1]);
        let off = seen.abs_diff(MORE);
        let good = if context.emulated.is_some() { off == 0 } else { off < MORE / 2 };
        all.that(good, format_args!("{seen} more, where the start value was {MORE} more"));
    }
    Ok(all.finish())
}

pub(super) fn period(context: &mut Context) -> Outcome {
    const TURNS: u64 = 2000;
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let long = of_ops(has, 0xf_0000).filter(|_| has.contains(Features::READ_WRITE_COUNT));
    let Some(long) = long else {
        return Ok(Finding::skip("a current count that can be read (CPUID 0x8000001B EAX[3])"));
    };
    let work = Work::kernel(Ring0Code::Loop, TURNS);
    // Once, so that what is around it is as it will be.
    tag(context, long, 0, work)?;
    let whole = Unit::Op.count(tag(context, long, 0, work)?.control);
    let [less, more] = match context.emulated {
        // The operation after the last one is the one that is tagged, and there are some after the piece.
        Some(_) => [(whole - 16) & !15, (whole + 32) & !15],
        None => [(whole / 2) & !15, (2 * whole) & !15],
    };
    let mut all = All::of("a sample when the count reaches its maximum, not before");
    for (length, wanted) in [(less, true), (more, false)] {
        let Some(period) = of_ops(has, length) else {
            return Ok(Finding::fail("a count that fits into a period", whole));
        };
        let seen = tag(context, period, 0, work)?.control & Unit::Op.valid() != 0;
        let what = if seen { "a sample" } else { "no sample" };
        all.that(seen == wanted, format_args!("{what} with a period of {length}, {whole} counted"));
    }
    Ok(all.finish())
}

pub(super) fn valid(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let Some(period) = of_ops(has, LONG) else { return Ok(Finding::skip(NEEDS)) };
    let work = Work::kernel(Ring0Code::Loop, 2 * LONG);
    let first = look(context, period, 0, work)?;
    context.run(Work::kernel(Ring0Code::NotTaken, LONG));
    let second = seen(context, Unit::Op)?;
    off(context, period)?;
    let mut all = All::of("the sample is valid, and does not change until software clears it");
    all.that(first.control & Unit::Op.valid() != 0, format_args!("{:#x}", first.control));
    all.same("the control register", first.control, second.control);
    all.same("the address", first.rip, second.rip);
    let at = Ring0Code::Loop.address();
    all.that(
        (at..at + 8).contains(&first.rip),
        format_args!("{:#x} is outside the code", first.rip),
    );
    Ok(all.finish())
}
