//! AMD's instruction-based sampling: what is tagged, when, and what is told of it.

mod operation;
mod period;
mod registers;
mod unit;

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use super::machine::Work;
use alloc::vec;
use arch::pmu::ibs::{Features, LvtOffset, Period, Unit};
use arch::pmu::pmi::{Delivery, Sample, Sampling};
use arch::pmu::workload::Ring0Code;
use operation::{address, data_address, latency, outcome};
use period::{CYCLES, OPERATIONS, count, period, valid};
use registers::registers;
use unit::{get, of_ops, off, set, tag};

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

fn features(context: &Context) -> Option<Features> {
    context.has().ibs.map(Features::announced)
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
        let two_writes = driver.capabilities().ibs_erratum_420;
        let sampling = Sampling::new(period, counter.index() as u8, entry);
        block.sample_by(sampling.clearing_maximum(two_writes));
        Ok(())
    })?;
    set(context, Unit::Op.control(), period.on())?;
    context.run(Work::kernel(Ring0Code::Loop, TURNS));
    off(context, period)?;
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
