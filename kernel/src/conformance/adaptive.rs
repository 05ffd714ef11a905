//! Adaptive PEBS records: groups, the registers that choose them, and fixed counters.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::precise::{armed_with, fewest, period, slack, straight};
use alloc::vec::Vec;
use arch::pmu::pebs::{DataConfig, Format, Groups};
use arch::pmu::workload::Ring0Code;
use arch::pmu::{Counter, numbers};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "pebs.data_config", source: "SDM vol. 4: MSR_PEBS_DATA_CFG", run: data_config },
    Check {
        name: "pebs.groups",
        source: "SDM vol. 3, 20.9.2.2: the record's format and size, and the groups in the order of their bits",
        run: groups,
    },
    Check {
        name: "pebs.basic",
        source: "SDM vol. 3, 20.9.2.1: without Adaptive_Record a counter's records have only the basic group",
        run: basic,
    },
    Check {
        name: "pebs.fixed",
        source: "SDM vol. 3, 20.9.1: fixed counters write records; their reset values follow those of the others",
        run: fixed,
    },
];

const NEEDS: &str = "adaptive PEBS records (formats 4 to 6)";
/// What any code has in its records, one bit after the other.
const PLAIN: [Groups; 3] = [Groups::MEMORY, Groups::GENERAL, Groups::VECTORS];

/// The format, where it is adaptive.
fn format(context: &Context) -> Option<Format> {
    context.has().pebs_format().filter(|format| format.is_adaptive())
}

fn data_config(context: &mut Context) -> Outcome {
    let Some(format) = format(context) else { return Ok(Finding::skip(NEEDS)) };
    let mut all = All::of("the bits of its groups can be written, other bits raise #GP");
    let registers = context.registers();
    for group in PLAIN.into_iter().chain([Groups::BRANCHES]) {
        let bit = u64::from(group.bits());
        let done = registers.wrmsr(numbers::PEBS_DATA_CFG, bit).is_ok();
        let seen = registers.rdmsr(numbers::PEBS_DATA_CFG).unwrap_or(0);
        all.that(done && seen == bit, format_args!("{seen:#x}, not {bit:#x}"));
    }
    // Bit 6 is not a group's in any format; the counters' came with format 6.
    all.faults(registers, numbers::PEBS_DATA_CFG, 1 << 6);
    if !format.groups().contains(Groups::COUNTERS) {
        all.faults(registers, numbers::PEBS_DATA_CFG, Groups::COUNTERS.bits().into());
    }
    Ok(all.finish())
}

fn groups(context: &mut Context) -> Outcome {
    let Some(format) = format(context) else { return Ok(Finding::skip(NEEDS)) };
    let mut all =
        All::of("each record has the requested groups, and the size that follows from them");
    for bits in 0..8 {
        context.fresh()?;
        let wanted = PLAIN.into_iter().enumerate().filter(|(n, _)| bits >> n & 1 != 0);
        let wanted = wanted.fold(Groups::empty(), |sum, (_, group)| sum | group);
        let config = DataConfig { groups: wanted, ..DataConfig::BASIC };
        let one = (Counter::General(0), INSTRUCTIONS);
        let (_store, mut drain) = armed_with(context, (format, config), one, [64, 64])?;
        context.run(straight());
        let mut others = 0;
        let mut far = 0;
        drain.run_groups(&mut |record| {
            others += u32::from(record.groups() != wanted);
            // The longest instruction has 15 bytes; the piece's last one is a return.
            let next = record.general.map_or(1, |general| general.next.wrapping_sub(record.ip));
            far += u32::from(!(1..=15).contains(&next));
        });
        let what = format_args!("groups {wanted:?}");
        all.that(drain.malformed == 0, format_args!("{what}: malformed records"));
        all.that(others == 0, format_args!("{what}: {others} records with other groups"));
        all.that(far <= 2, format_args!("{what}: {far} records whose next address is too far"));
        all.that(drain.records >= 12, format_args!("{what}: {} records", drain.records));
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn basic(context: &mut Context) -> Outcome {
    const ADAPTIVE: u64 = 1 << 34;
    let Some(format) = format(context) else { return Ok(Finding::skip(NEEDS)) };
    let one = (Counter::General(0), INSTRUCTIONS);
    let config = (format, DataConfig::SAMPLES);
    let (_store, mut drain) = armed_with(context, config, one, [64, 64])?;
    let select = context.driver.layout().select(0);
    let value = context.registers().rdmsr(select).unwrap_or(0);
    let taken = context.registers().wrmsr(select, value & !ADAPTIVE).is_ok();
    context.run(straight());
    let mut with = 0;
    drain.run_groups(&mut |record| with += u32::from(!record.groups().is_empty()));
    let mut all = All::of("only the basic group");
    let set = value & ADAPTIVE != 0 && taken;
    all.that(set, format_args!("the event select was {value:#x}"));
    all.that(with == 0, format_args!("{with} records with further groups"));
    let (records, malformed) = (drain.records, drain.malformed);
    let good = records >= 12 && malformed == 0;
    all.that(good, format_args!("{records} records, and {malformed} malformed"));
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn fixed(context: &mut Context) -> Outcome {
    let Some(format) = format(context) else { return Ok(Finding::skip(NEEDS)) };
    let counter = Counter::Fixed(0);
    if context.has().pebs_fixed() & 1 == 0 {
        return Ok(Finding::skip("fixed counter 0"));
    }
    let config = (format, DataConfig::BASIC);
    let one = (counter, INSTRUCTIONS);
    let (_store, mut drain) = armed_with(context, config, one, [64, 64])?;
    let stated = context.stated(Ring0Code::Straight, 1).instructions;
    context.run(straight());
    let mut counters = Vec::new();
    drain.run_groups(&mut |record| counters.push(record.counters));
    let mut all = All::of("a record, and the reset value, at each overflow of fixed counter 0");
    let period = period(context, &one.1);
    let least = fewest(context, stated, period);
    let records = counters.len() as u64;
    let good = (least..=stated / period).contains(&records);
    all.that(good, format_args!("{records} records of {stated} events"));
    for seen in counters {
        all.same("the record's counters", counter.bit(), seen);
    }
    if slack(context, period) == 0 {
        let mask = context.has().mask(counter);
        let rest = context.get(counter)?.wrapping_add(period - 1) & mask;
        all.same("events since the last record", stated % period, rest);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}
