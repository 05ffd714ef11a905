//! AMD's instruction-based sampling: what is tagged, when, and what is told of it.

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use super::machine::Work;
use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::data_source::{Level, ibs_datum};
use arch::pmu::ibs::{Features, LvtOffset, OpData, OpData3, Period, Unit};
use arch::pmu::pmi::{Delivery, Sample, Sampling};
use arch::pmu::workload::Ring0Code;
use arch::pmu::{PmuError, Selection};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "ibs.registers",
        source: "AMD APM vol. 2, 13.3: IbsFetchCtl, IbsOpCtl and CPUID 0x8000001B, which announces their fields",
        run: registers,
    },
    Check {
        name: "ibs.count",
        source: "AMD APM vol. 2, 13.3.2: IbsOpCurCnt counts cycles, or operations with IbsOpCntCtl",
        run: count,
    },
    Check {
        name: "ibs.period",
        source: "AMD APM vol. 2, 13.3.2: an operation is tagged when IbsOpCurCnt reaches IbsOpMaxCnt",
        run: period,
    },
    Check {
        name: "ibs.valid",
        source: "AMD APM vol. 2, 13.3.2: while IbsOpVal is set, the sample is kept and counting stops",
        run: valid,
    },
    Check {
        name: "ibs.address",
        source: "AMD APM vol. 2, 13.3.2: IbsOpRip is the tagged operation's instruction",
        run: address,
    },
    Check {
        name: "ibs.data_address",
        source: "AMD APM vol. 2, 13.3.2: IbsDcLinAd, valid for a load",
        run: data_address,
    },
    Check {
        name: "ibs.latency",
        source: "PPR, IbsOpData3: IbsDcMiss and IbsDcMissLat of a load; IbsOpData2: the source of its data",
        run: latency,
    },
    Check {
        name: "ibs.outcome",
        source: "PPR, IbsOpData: IbsOpBrnTaken of a branch that retired",
        run: outcome,
    },
    Check {
        name: "ibs.fetch",
        source: "AMD APM vol. 2, 13.3.1: IbsFetchLinAd of the tagged fetch",
        run: fetch,
    },
    Check {
        name: "ibs.interrupt",
        source: "AMD APM vol. 2, 13.3: each sample raises an interrupt through the extended LVT entry that IbsControl selects",
        run: interrupt,
    },
];

const NEEDS: &str = "instruction-based sampling (CPUID 0x80000001 ECX[10])";
/// Longer than everything around a piece.
const LONG: u64 = 1024;
/// Instructions of a turn of [`Ring0Code::ColdLoads`]; where its load and its jump are, and how long it is in bytes.
const TURN: u64 = 6;
const LOAD: u64 = 6;
const JUMP: u64 = 0x10;
const BYTES: u64 = 0x13;
/// IbsFetchCtl, bit 50: the fetch was completed.
const COMPLETE: u64 = 1 << 50;
/// IbsOpData, bit 37: a branch retired; IbsOpData3, bit 0: a load.
const BRANCH: u64 = 1 << 37;
const LOADS: u64 = 1 << 0;

/// IbsOpData2.
const DATA_2: arch::msr::Msr = arch::msr::Msr(0xc001_1036);

/// AMD's PMCx0C1 and PMCx076: operations retired, and cycles.
const OPERATIONS: Selection = Selection::of(0xc1, 0);
const CYCLES: Selection = Selection::of(0x76, 0);

/// Registers that came later, and the bits of CPUID 0x8000001B EAX that announce them: IbsBrTarget, IbsFetchCtlExtd, IbsOpData4.
const BY_FEATURE: [(Features, arch::msr::Msr); 3] = [
    (Features::BRANCH_TARGET, arch::msr::Msr(0xc001_103b)),
    (Features::FETCH_EXTENDED, arch::msr::Msr(0xc001_103c)),
    (Features::OP_DATA_4, arch::msr::Msr(0xc001_103d)),
];

fn features(context: &Context) -> Option<Features> {
    context.has().ibs.map(Features::announced)
}

/// What a unit holds.
struct Seen {
    control: u64,
    rip: u64,
    what: u64,
    data_2: u64,
    access: OpData3,
    linear: u64,
    physical: u64,
}

fn get(context: &mut Context, msr: arch::msr::Msr) -> Result<u64, PmuError> {
    context.registers().rdmsr(msr).map_err(|_| PmuError::Unsupported("register of IBS"))
}

fn set(context: &mut Context, msr: arch::msr::Msr, value: u64) -> Result<(), PmuError> {
    context.registers().wrmsr(msr, value).map_err(|_| PmuError::Unsupported("register of IBS"))
}

/// A period of an operation, in operations where they can be counted.
fn of_ops(has: Features, length: u64) -> Option<Period> {
    Period::new(Unit::Op, has.contains(Features::COUNTS_OPS), length, has).ok()
}

/// Lets the unit run for `work`, with `start` counted already, and looks at it then. It is still on.
fn look(context: &mut Context, period: Period, start: u64, work: Work) -> Result<Seen, PmuError> {
    let unit = period.unit();
    if context.driver.programmed() == 0 {
        // A gate without a counter is not opened, and nothing runs.
        let counter = context.first();
        context.program(counter, &OPERATIONS)?;
    }
    set(context, unit.control(), period.off())?;
    set(context, unit.control(), period.on() | start << 32)?;
    context.run(work);
    seen(context, unit)
}

fn seen(context: &mut Context, unit: Unit) -> Result<Seen, PmuError> {
    Ok(Seen {
        control: get(context, unit.control())?,
        rip: get(context, unit.address())?,
        what: get(context, OpData::MSR)?,
        data_2: get(context, DATA_2)?,
        access: OpData3(get(context, OpData3::MSR)?),
        linear: get(context, OpData3::LINEAR)?,
        physical: get(context, OpData3::PHYSICAL)?,
    })
}

/// The same, and switches the unit off.
fn tag(context: &mut Context, period: Period, start: u64, work: Work) -> Result<Seen, PmuError> {
    let seen = look(context, period, start, work);
    set(context, period.unit().control(), 0)?;
    seen
}

fn registers(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let mut all = All::of(
        "each unit's maximum count can be written, no sample is valid, and the announced registers exist",
    );
    for (unit, length) in [(Unit::Op, 0x1_2340), (Unit::Op, 0x765_4320), (Unit::Fetch, 0xf_fff0)] {
        let Ok(period) = Period::new(unit, false, length, has) else { continue };
        let done = set(context, unit.control(), period.off()).is_ok();
        let seen = get(context, unit.control()).unwrap_or(0);
        let wanted = period.off();
        all.that(done && seen == wanted, format_args!("{unit:?}: {seen:#x}, not {wanted:#x}"));
        let _ = set(context, unit.control(), 0);
        all.that(get(context, unit.address()).is_ok(), format_args!("{unit:?}: no address"));
    }
    for (feature, msr) in BY_FEATURE {
        let there = !has.contains(feature) || get(context, msr).is_ok();
        all.that(there, format_args!("MSR {:#x}, which CPUID announces, cannot be read", msr.0));
    }
    for msr in [OpData::MSR, OpData3::MSR, OpData3::LINEAR, OpData3::PHYSICAL, LvtOffset::MSR] {
        all.that(get(context, msr).is_ok(), format_args!("MSR {:#x} cannot be read", msr.0));
    }
    Ok(all.finish())
}

/// By how much the current count is further after more turns, and what a counter of the same counts of them. The lowest bits of
/// the count are of no use once there is a sample, so none is to come.
fn counted(
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

fn count(context: &mut Context) -> Outcome {
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

fn period(context: &mut Context) -> Outcome {
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

fn valid(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let Some(period) = of_ops(has, LONG) else { return Ok(Finding::skip(NEEDS)) };
    let work = Work::kernel(Ring0Code::Loop, 2 * LONG);
    let first = look(context, period, 0, work)?;
    context.run(Work::kernel(Ring0Code::NotTaken, LONG));
    let second = seen(context, Unit::Op)?;
    set(context, Unit::Op.control(), 0)?;
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

/// Samples of each instruction of a turn, by periods that begin one further each time.
fn each(
    context: &mut Context,
    has: Features,
    take: &mut dyn FnMut(&Seen),
) -> Result<bool, PmuError> {
    let Some(period) = of_ops(has, LONG) else { return Ok(false) };
    // Where the count cannot be begun elsewhere, what is around the piece has to do.
    for start in 0..2 * TURN {
        let start = if has.contains(Features::READ_WRITE_COUNT) { start } else { 0 };
        // Enough where operations are fused.
        let work = Work::kernel(Ring0Code::ColdLoads, LONG / 2);
        let seen = tag(context, period, start, work)?;
        take(&seen);
    }
    Ok(true)
}

fn address(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let mut all = All::of("branches are sampled at the jump, loads at the load");
    let (mut samples, mut branches) = (0, 0);
    let mut look = |seen: &Seen| {
        let inside = (at..at + BYTES).contains(&seen.rip);
        if seen.control & Unit::Op.valid() == 0 || !inside {
            return;
        }
        samples += 1;
        if seen.what & BRANCH != 0 {
            branches += 1;
            all.same("a branch's address", at + JUMP, seen.rip);
        } else {
            all.that(seen.rip != at + JUMP, format_args!("no branch at {:#x}", seen.rip));
        }
        // CLFLUSH may count as a load.
        if seen.access.0 & LOADS != 0 && seen.rip != at {
            all.same("a load's address", at + LOAD, seen.rip);
        }
    };
    each(context, has, &mut look)?;
    all.that(samples > 0, format_args!("no sample in the piece"));
    if context.emulated.is_some() {
        all.that(branches == 2, format_args!("{branches} branches in two iterations"));
    }
    Ok(all.finish())
}

fn data_address(context: &mut Context) -> Outcome {
    const LINE: u64 = 64;
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let mut all = All::of(
        "a load of the code has an address in its memory; any other load's is elsewhere or invalid",
    );
    let (mut loads, mut first) = (0, None);
    let mut addresses = Vec::new();
    let mut look = |seen: &Seen| {
        if seen.control & Unit::Op.valid() == 0 || seen.rip != at + LOAD {
            return;
        }
        loads += 1;
        let linear = seen.linear;
        all.that(seen.access.has_address(), format_args!("the load has no address"));
        let far = linear.wrapping_sub(*first.get_or_insert(linear));
        // The same number of turns has gone by, but for what the beginning moves.
        let near = far.is_multiple_of(LINE) && far.wrapping_add(LONG * LINE) < 2 * LONG * LINE;
        all.that(linear != 0 && near, format_args!("{linear:#x}, {far:#x} from the first"));
        if seen.access.has_physical() {
            addresses.push((linear, seen.physical));
        }
    };
    each(context, has, &mut look)?;
    for (linear, physical) in addresses {
        let wanted = context.machine.physical(linear).unwrap_or(0);
        all.same(format_args!("the physical address of {linear:#x}"), wanted, physical);
    }
    if context.emulated.is_some() {
        all.that(loads == 2, format_args!("{loads} loads in two iterations"));
    }
    Ok(all.finish())
}

fn latency(context: &mut Context) -> Outcome {
    const MISS: u64 = 1 << 7;
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let mut seen_loads = Vec::new();
    let mut look = |seen: &Seen| {
        if seen.control & Unit::Op.valid() != 0 && seen.rip == at + LOAD {
            seen_loads.push((seen.access.0, seen.data_2, seen.linear));
        }
    };
    each(context, has, &mut look)?;
    let mut all = All::of(
        "a load of a flushed line missed, with a latency, and its data came from beyond the first level",
    );
    for &(data_3, data_2, linear) in &seen_loads {
        let datum = ibs_datum(data_2, data_3, linear).unwrap_or_default();
        let source = context.has().memory.source(&datum).unwrap_or_default();
        all.that(data_3 & MISS != 0, format_args!("{linear:#x} did not miss"));
        all.that(datum.latency > 0, format_args!("{linear:#x} has a latency of 0"));
        let good = match context.emulated {
            Some(_) => source.level == Level::Memory,
            None => source.level != Level::L1,
        };
        all.that(good, format_args!("{linear:#x} came from {}", source.level.name()));
    }
    if context.emulated.is_some() {
        all.that(
            seen_loads.len() == 2,
            format_args!("{} loads in two iterations", seen_loads.len()),
        );
    }
    Ok(all.finish())
}

fn outcome(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let at = Ring0Code::ColdLoads.address();
    let (mut branches, mut taken, mut returns) = (0, 0, 0);
    let mut look = |seen: &Seen| {
        let what = OpData(seen.what);
        if seen.control & Unit::Op.valid() != 0 && seen.rip == at + JUMP && what.is_branch() {
            branches += 1;
            taken += u32::from(what.is_taken());
            returns += u32::from(what.is_return());
        }
    };
    each(context, has, &mut look)?;
    let mut all = All::of("each sampled jump of a loop was taken, and none is a return");
    all.same("jumps that were taken", branches, u64::from(taken));
    all.same("jumps that were returns", 0, u64::from(returns));
    if context.emulated.is_some() {
        all.same("jumps in two iterations", 2, branches);
    }
    Ok(all.finish())
}

fn fetch(context: &mut Context) -> Outcome {
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let Ok(period) = Period::new(Unit::Fetch, false, LONG, has) else {
        return Ok(Finding::skip("sampling of fetches (CPUID 0x8000001B EAX[1])"));
    };
    // A fetch may bring several instructions.
    let seen = tag(context, period, 0, Work::kernel(Ring0Code::Loop, 8 * LONG))?;
    let at = Ring0Code::Loop.address();
    let mut all = All::of("a sample of a fetch of the piece's code");
    all.that(seen.control & Unit::Fetch.valid() != 0, format_args!("{:#x}", seen.control));
    all.that(
        (at & !63..at + 8).contains(&seen.rip),
        format_args!("{:#x} is outside the code", seen.rip),
    );
    all.that(
        seen.control & COMPLETE != 0,
        format_args!("the fetch is not complete: {:#x}", seen.control),
    );
    if let (Some(_), Some(period)) = (&context.emulated, of_ops(has, LONG)) {
        // A fetch and an operation for each instruction: the same one is tagged.
        let op = tag(context, period, 0, Work::kernel(Ring0Code::Loop, 8 * LONG))?;
        all.same("the address, compared with that of an operation", op.rip, seen.rip);
    }
    Ok(all.finish())
}

fn interrupt(context: &mut Context) -> Outcome {
    const TURNS: u64 = 8_000;
    const PERIOD: u64 = 1024;
    /// Of the ends, and of periods that begin again.
    const ENDS: u64 = 2;
    let Some(has) = features(context) else { return Ok(Finding::skip(NEEDS)) };
    let Some(period) = of_ops(has, PERIOD) else { return Ok(Finding::skip(NEEDS)) };
    let entry = LvtOffset(get(context, LvtOffset::MSR)?).entry();
    let wanted = "an interrupt with a sample at the end of each period";
    let Some(entry) = entry else {
        return Ok(Finding::fail(wanted, "the machine's firmware did not set up IbsControl"));
    };
    if !context.machine.has_extended_lvt(entry) {
        return Ok(Finding::fail(
            wanted,
            format_args!("the APIC has no extended LVT entry {entry}"),
        ));
    }
    let counter = context.first();
    context
        .program(counter, if has.contains(Features::COUNTS_OPS) { &OPERATIONS } else { &CYCLES })?;
    let mut log = vec![Sample::default(); 64];
    context.deliver(Delivery::Fixed, |block, driver| {
        block.log_to(&mut log);
        block.stop_in_handler(driver)?;
        block.sample_by(Sampling::new(period, counter.index() as u8, entry));
        Ok(())
    })?;
    set(context, Unit::Op.control(), period.on())?;
    context.run(Work::kernel(Ring0Code::Loop, TURNS));
    set(context, Unit::Op.control(), 0)?;
    let block = context.machine.withdraw();
    let counted = context.get(counter)?;
    let samples = block.slot(counter.index()).overflows;
    let mut all = All::of("an interrupt with a sample at the end of each period");
    let periods = counted / PERIOD;
    // What is dispatched in vain makes more of them.
    let most = if context.emulated.is_some() { periods + ENDS } else { 4 * periods };
    let least = if context.emulated.is_some() { periods.saturating_sub(ENDS) } else { periods / 2 };
    let good = (least..=most).contains(&samples);
    all.that(good, format_args!("{samples} samples of {counted} counted"));
    all.equal("interrupts", samples, block.pmis);
    let at = Ring0Code::Loop.address();
    let logged = block.logged(log.as_ptr()).min(log.len());
    let outside = log[..logged].iter().filter(|one| !(at..at + 8).contains(&one.rip)).count();
    all.that(outside <= 2, format_args!("{outside} samples of other code"));
    Ok(all.finish())
}
