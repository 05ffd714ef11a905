//! What PEBS records say of data: which loads have one, where their data came from, how long it took.

use super::check::{All, Check, Finding, Outcome};
use super::context::Context;
use super::machine::Work;
use super::precise::{armed_with, taken};
use alloc::vec::Vec;
use arch::pmu::data_source::{Datum, Encoding, Level, Told};
use arch::pmu::pebs::{DataConfig, Groups, Record, Taken};
use arch::pmu::workload::{Ring0Code, calls_sites};
use arch::pmu::{Counter, Gate, LbrKind, PmuError, Selection, lbr, numbers};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "pebs.load_latency",
        source: "SDM vol. 3, 20.3.1.1.2: loads whose latency exceeds MSR_PEBS_LD_LAT_THRESHOLD have records",
        run: threshold,
    },
    Check {
        name: "pebs.latency",
        source: "SDM vol. 3, 20.3.1.1.2: the record's latency, which exceeds the threshold",
        run: latency,
    },
    Check {
        name: "pebs.data_source",
        source: "SDM vol. 3, Data Source Encoding for Load Latency Record: flushed lines are not in the first level",
        run: source,
    },
    Check {
        name: "pebs.auxiliary",
        source: "Linux, PMU_FL_MEM_LOADS_AUX: Golden Cove samples loads while event 03/82 is counted",
        run: auxiliary,
    },
    Check {
        name: "pebs.branches",
        source: "SDM vol. 3, 20.9.2.2: the LBR group has the branch records as of the sampled instruction, newest first",
        run: branches,
    },
];

const TURNS: u64 = 200;
const NEEDS: &str = "an event of load latency (MSR 0x3F6, from Nehalem on)";
const NEEDS_KNOWN: &str =
    "an event of load latency (MSR 0x3F6, from Nehalem on), and records whose encoding is known";
/// The longest threshold, which no load of a cache line reaches.
const LONGEST: u64 = 0xffff;
const AUXILIARY: Selection = Selection::of(0x03, 0x82);

/// The event, on a counter that it can be on everywhere.
fn loads(context: &Context, threshold: u64) -> Option<(Counter, Selection)> {
    let has = context.has();
    let there = has.pebs_format().is_some() && has.extra.contains(&numbers::LOAD_LATENCY);
    let (counter, event, umask) = match has.memory.encoding {
        Encoding::Nehalem => (3, 0x0b, 0x10),
        Encoding::Gracemont | Encoding::Crestmont => (0, 0xd0, 0x05),
        _ => (3, 0xcd, 0x01),
    };
    let extra = Some((numbers::LOAD_LATENCY, threshold));
    let one = (Counter::General(counter), Selection { extra, ..Selection::of(event, umask) });
    there.then_some(one)
}

/// The same, where what its records say of a load is known.
fn known_loads(context: &Context, threshold: u64) -> Option<(Counter, Selection)> {
    let is_known = context.has().memory.encoding != Encoding::Unknown;
    loads(context, threshold).filter(|_| is_known)
}

/// The records of loads of flushed lines with a threshold, with or without the auxiliary event.
fn records(
    context: &mut Context,
    one: (Counter, Selection),
    beside: bool,
) -> Result<Vec<Record>, PmuError> {
    context.fresh()?;
    if beside && context.has().memory.auxiliary {
        context.program(Counter::General(0), &AUXILIARY)?;
    }
    let Some(format) = context.has().pebs_format() else { return Ok(Vec::new()) };
    let (_store, mut drain) = armed_with(context, (format, DataConfig::SAMPLES), one, [64, 64])?;
    context.run(Work::kernel(Ring0Code::ColdLoads, TURNS));
    Ok(taken(context, &mut drain))
}

/// The data of those that are of the piece's load.
fn data(context: &Context, records: &[Record]) -> Vec<Datum> {
    let piece = Ring0Code::ColdLoads.address();
    let inside = records.iter().filter(|record| (piece..piece + 0x20).contains(&record.ip));
    let words = context.has().memory;
    inside.filter_map(|record| Some(words.datum(&record.access?, Told::Load))).collect()
}

fn threshold(context: &mut Context) -> Outcome {
    let [Some(low), Some(high)] = [3, LONGEST].map(|cycles| loads(context, cycles)) else {
        return Ok(Finding::skip(NEEDS));
    };
    let (slow, fast) = (records(context, low, true)?.len(), records(context, high, true)?.len());
    let mut all =
        All::of("records of loads with the smallest threshold, no record with the greatest");
    all.that(slow > 0, format_args!("{slow} records with a threshold of 3 cycles"));
    all.that(fast == 0, format_args!("{fast} records with a threshold of {LONGEST} cycles"));
    Ok(all.finish())
}

fn latency(context: &mut Context) -> Outcome {
    const THRESHOLD: u64 = 16;
    let Some(one) = known_loads(context, THRESHOLD) else {
        return Ok(Finding::skip(NEEDS_KNOWN));
    };
    let records = records(context, one, true)?;
    let data = data(context, &records);
    let mut all = All::of("each record's latency exceeds the threshold");
    all.that(!data.is_empty(), format_args!("{} records", data.len()));
    for one in &data {
        let good = u64::from(one.latency) > THRESHOLD;
        all.that(good, format_args!("{} cycles, of {:#x}", one.latency, one.address));
    }
    Ok(all.finish())
}

fn source(context: &mut Context) -> Outcome {
    let Some(one) = known_loads(context, 3) else { return Ok(Finding::skip(NEEDS_KNOWN)) };
    let records = records(context, one, true)?;
    let data = data(context, &records);
    let words = context.has().memory;
    let mut all = All::of("no load of a flushed line hit the first level");
    all.that(!data.is_empty(), format_args!("{} records", data.len()));
    for one in &data {
        let level = words.source(one).map_or(Level::Unknown, |source| source.level);
        let good = match context.emulated {
            Some(_) => level == Level::Memory,
            None => !matches!(level, Level::L1 | Level::Unknown),
        };
        all.that(good, format_args!("{} of {:#x}", level.name(), one.address));
    }
    Ok(all.finish())
}

fn auxiliary(context: &mut Context) -> Outcome {
    let Some(one) = loads(context, 3).filter(|_| context.has().memory.auxiliary) else {
        return Ok(Finding::skip("load latency with an auxiliary event (Golden Cove)"));
    };
    let with = records(context, one, true)?.len();
    let mut all = All::of("records of loads while event 03/82 is counted");
    all.that(with > 0, format_args!("{with} records with it"));
    if context.emulated.is_some() {
        // A processor may have some, whose latencies mean nothing.
        let without = records(context, one, false)?.len();
        all.that(without == 0, format_args!("{without} records without it"));
    }
    Ok(all.finish())
}

fn branches(context: &mut Context) -> Outcome {
    let has = context.has().clone();
    let grouped = has.pebs_format().filter(|_| has.record_groups().contains(Groups::BRANCHES));
    let Some(format) = grouped.filter(|_| !matches!(has.lbr, LbrKind::None)) else {
        return Ok(Finding::skip(
            "PEBS records with groups (formats 4 to 6, 15) and branch records",
        ));
    };
    let at = calls_sites();
    let (groups, branches) = (Groups::BRANCHES, has.lbr.entries().into());
    let config = DataConfig { groups, branches, ..DataConfig::BASIC };
    let one = (Counter::General(0), super::context::INSTRUCTIONS);
    let filter = arch::pmu::registers::LbrSelect::empty();
    lbr::start(context.machine, &has, filter)?;
    lbr::stop(context.machine, &has)?;
    let (_store, mut drain) = armed_with(context, (format, config), one, [64, 64])?;
    let (msr, on, off) = lbr::switch(context.machine, &has, filter)?;
    let gate: Gate = context.driver.gate().with(msr, on, off);
    context.machine.run(&gate, Work::kernel(Ring0Code::Calls, TURNS));
    let emulated = context.emulated.is_some();
    let (mut seen, mut wrong) = (0, 0u32);
    let (call, back, jump) = ((at.call, at.leaf), (at.leaf, at.after), (at.jump, at.call));
    let each = &mut |taken: &Taken<'_>| {
        let (record, branches) = (&taken.record, taken.branches);
        // The branch of the instruction itself, if it is one, and those before it.
        let expected = match record.ip {
            ip if ip == at.call => [call, jump, back],
            ip if ip == at.leaf => [back, call, jump],
            ip if ip == at.after => [back, call, jump],
            ip if ip == at.jump => [jump, back, call],
            _ => return,
        };
        seen += 1;
        let branch = |one: &[u64; 3]| lbr::recorded(has.lbr, one[0], one[1], one[2]);
        let begins = |expected: &[(u64, u64)]| {
            let newest = branches.iter().filter_map(branch).map(|one| (one.from, one.to));
            newest.take(expected.len()).eq(expected.iter().copied())
        };
        // A processor may write the record before its instruction's own branch.
        let good = begins(&expected[..2]) || !emulated && begins(&expected[1..]);
        wrong += u32::from(!good);
    };
    while drain.fetch(context.registers()) {
        drain.run(&mut *each);
    }
    lbr::stop(context.machine, &has)?;
    let mut all = All::of("the newest branches of each record lead to its instruction");
    all.that(seen >= 5, format_args!("{seen} records of the piece"));
    // The first turn has none before it, and the last one's jump is not taken.
    all.that(wrong <= 2, format_args!("{wrong} of {seen} records have other branches"));
    Ok(all.finish())
}
