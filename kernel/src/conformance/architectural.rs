//! Architectural PEBS: its buffer, and what each counter's own register requests.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use super::precise::{
    self, armed, armed_with, fewest, instructions, period, slack, straight, taken,
};
use alloc::vec::Vec;
use arch::pmu::driver::Layout;
use arch::pmu::pebs::{BufferBase, Contents, DataConfig, Format, Groups, Offer};
use arch::pmu::workload::Ring0Code;
use arch::pmu::{Counter, numbers};

/// What the records are.
const FORMAT: Format = Format::Architectural;
const NEEDS: &str = "architectural PEBS (CPUID leaf 0x23, sub-leaves 4 and 5)";
const LINUX: &str = "Linux, arch/x86/events/intel/ds.c: intel_pmu_drain_arch_pebs";

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "apebs.enumeration",
        source: "Linux, arch/x86/events/intel/core.c: update_pmu_cap; CPUID leaf 0x23, sub-leaves 1, 4 and 5",
        run: |context| with(context, enumeration),
    },
    Check {
        name: "apebs.registers",
        source: "Linux, arch/x86/include/asm/msr-index.h: IA32_PEBS_BASE, IA32_PEBS_INDEX, ARCH_PEBS_*",
        run: |context| with(context, registers),
    },
    Check { name: "apebs.address", source: LINUX, run: |context| with(context, address) },
    Check {
        name: "apebs.count",
        source: "Linux, arch/x86/events/intel/core.c: ARCH_PEBS_RELOAD of intel_pmu_enable_event_ext",
        run: |context| with(context, count),
    },
    Check {
        name: "apebs.groups",
        source: "Linux, arch/x86/events/intel/ds.c: setup_arch_pebs_sample_data",
        run: |context| with(context, groups),
    },
    Check {
        name: "apebs.basic",
        source: "Linux, arch/x86/events/intel/core.c: intel_pmu_enable_event_ext; each counter has its groups",
        run: |context| with(context, basic),
    },
    Check {
        name: "apebs.threshold",
        source: "Linux, arch/x86/events/intel/core.c: GLOBAL_STATUS_ARCH_PEBS_THRESHOLD (54) at the threshold, not before",
        run: |context| with(context, threshold),
    },
    Check {
        name: "apebs.enable",
        source: "Linux, arch/x86/include/asm/perf_event.h: union arch_pebs_index, en",
        run: |context| with(context, enable),
    },
    Check { name: "apebs.interrupt", source: LINUX, run: |context| with(context, interrupt) },
    Check {
        name: "apebs.full",
        source: "Linux, arch/x86/include/asm/perf_event.h: union arch_pebs_index; IA32_PEBS_BASE contains the buffer's size",
        run: |context| with(context, full),
    },
    Check { name: "apebs.data_address", source: LINUX, run: |context| with(context, data_address) },
    Check {
        name: "apebs.fixed",
        source: "CPUID leaf 0x23.5 ECX: fixed counters write records",
        run: |context| with(context, fixed),
    },
    Check {
        name: "apebs.counters",
        source: "Linux, arch/x86/events/intel/core.c: ARCH_PEBS_CNTR_ALLOW and ARCH_PEBS_CNTR_GP",
        run: |context| with(context, counters),
    },
];

/// What any code has in its records, one bit after the other.
const PLAIN: [Groups; 7] = [
    Groups::MEMORY,
    Groups::GENERAL,
    Groups::VECTORS,
    Groups::YMM_UPPER,
    Groups::MASKS,
    Groups::ZMM_UPPER,
    Groups::ZMM_HIGH,
];

/// The check, where the PMU has it.
fn with(context: &mut Context, check: fn(&mut Context, Offer) -> Outcome) -> Outcome {
    let offer = context.has().architectural_pebs.filter(|_| context.has().pebs);
    offer.map_or_else(|| Ok(Finding::skip(NEEDS)), |offer| check(context, offer))
}

fn enumeration(context: &mut Context, offer: Offer) -> Outcome {
    let mut all =
        All::of("only counters that exist; those with precise distribution can write records too");
    let has = context.has();
    let there = [has.general, has.fixed];
    for (at, can) in [offer.general, offer.fixed].into_iter().enumerate() {
        let kind = ["general-purpose", "fixed"][at];
        all.same(format_args!("{kind} counters that do not exist"), 0, (can & !there[at]).into());
        let other = offer.distribution[at] & !can;
        all.same(
            format_args!("{kind} counters with precise distribution but no records"),
            0,
            other.into(),
        );
    }
    all.that(offer.general != 0, format_args!("no general-purpose counter"));
    Ok(all.finish())
}

fn registers(context: &mut Context, offer: Offer) -> Outcome {
    /// Never looked at, as nothing counts.
    const PLACE: u64 = 0x10_0000;
    let mut all = All::of("fields can be written, bits outside them raise #GP");
    let counter = Counter::General(offer.general.trailing_zeros() as u8);
    let registers = context.registers();
    let mut stays = |name: &str, msr, value: u64| {
        let done = registers.wrmsr(msr, value).is_ok();
        let seen = registers.rdmsr(msr).unwrap_or(0);
        all.that(done && seen == value, format_args!("{name}: {seen:#x}, not {value:#x}"));
    };
    for shift in [0, 4, 9] {
        let base = BufferBase::of(PLACE, 4096 << shift).map_or(0, BufferBase::bits);
        stays("PEBS_BASE", numbers::PEBS_BASE, base);
    }
    // Where the next record goes; the threshold; on.
    for value in [0x7ff_fff0, 0x7f_ffff << 36, 1 << 32] {
        stays("PEBS_INDEX", numbers::PEBS_INDEX, value);
    }
    stays("PEBS_INDEX", numbers::PEBS_INDEX, 0);
    let config = Layout::records(counter);
    for bit in (32..63).filter(|bit| offer.contents.bits() >> bit & 1 != 0) {
        stays("CFG_C", config, 1 << bit);
    }
    stays("CFG_C", config, Contents::BASIC.bits() | 0xffff_fff0);
    stays("CFG_C", config, 0);
    // A page's offset, between size and address; half a unit; a group that is not offered.
    all.faults(context.registers(), numbers::PEBS_BASE, PLACE | 1 << 11);
    all.faults(context.registers(), numbers::PEBS_INDEX, 1 << 3);
    let none = (36..63).find(|bit| offer.contents.bits() >> bit & 1 == 0);
    if let Some(bit) = none {
        all.faults(context.registers(), config, 1 << bit);
    }
    Ok(all.finish())
}

fn address(context: &mut Context, _: Offer) -> Outcome {
    precise::address(context, FORMAT)
}

fn count(context: &mut Context, _: Offer) -> Outcome {
    precise::count(context, FORMAT)
}

fn threshold(context: &mut Context, _: Offer) -> Outcome {
    precise::threshold(context, FORMAT)
}

fn interrupt(context: &mut Context, _: Offer) -> Outcome {
    precise::interrupt(context, FORMAT)
}

fn data_address(context: &mut Context, _: Offer) -> Outcome {
    precise::data_address(context, FORMAT)
}

fn groups(context: &mut Context, offer: Offer) -> Outcome {
    let mut all =
        All::of("each record has the requested groups, and the size that follows from them");
    let offered = offer.groups();
    // Each by itself and together; at last all at once, with branch records, which takes the most.
    let plain: Vec<Groups> = PLAIN.into_iter().filter(|group| offered.contains(*group)).collect();
    let each = (0..1 << plain.len()).map(|bits: u32| {
        let wanted = plain.iter().enumerate().filter(|(n, _)| bits >> n & 1 != 0);
        wanted.fold(Groups::empty(), |sum, (_, group)| sum | *group)
    });
    let all_at_once = plain.iter().fold(Groups::BRANCHES & offered, |sum, group| sum | *group);
    for wanted in each.chain([all_at_once]) {
        context.fresh()?;
        let config = DataConfig { groups: wanted, ..DataConfig::BASIC };
        let one = (Counter::General(0), INSTRUCTIONS);
        let (_store, mut drain) = armed_with(context, (FORMAT, config), one, [64, 64])?;
        context.run(straight());
        let (mut others, mut far) = (0, 0);
        while drain.fetch(context.registers()) {
            drain.take_architectural(&mut |record| {
                others += u32::from(record.groups() != wanted);
                let next = record
                    .common
                    .general
                    .map_or(1, |general| general.next.wrapping_sub(record.common.ip));
                far += u32::from(!(1..=15).contains(&next));
            });
        }
        let what = format_args!("groups {wanted:?}");
        all.that(
            drain.malformed == 0,
            format_args!("{what}: {} malformed records", drain.malformed),
        );
        all.that(others == 0, format_args!("{what}: {others} records with other groups"));
        // The piece's last instruction is a return.
        all.that(far <= 2, format_args!("{what}: {far} records whose next address is too far"));
        all.that(drain.records >= 12, format_args!("{what}: {} records", drain.records));
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn basic(context: &mut Context, offer: Offer) -> Outcome {
    // The first one's has them still.
    let one = (Counter::General(1), INSTRUCTIONS);
    if offer.general & 0b10 == 0 {
        return Ok(Finding::skip("architectural PEBS on counter 1"));
    }
    let (_store, mut drain) = armed(context, FORMAT, one, [64, 64])?;
    let config = Layout::records(one.0);
    let value = context.registers().rdmsr(config).unwrap_or(0);
    let alone = value & (Contents::BASIC.bits() | 0xffff_ffff);
    let taken = context.registers().wrmsr(config, alone).is_ok();
    context.run(straight());
    let mut with = 0;
    while drain.fetch(context.registers()) {
        drain.run_groups(&mut |record| with += u32::from(!record.groups().is_empty()));
    }
    let mut all = All::of("only the basic group");
    all.that(taken, format_args!("CFG_C refused {alone:#x}"));
    all.that(with == 0, format_args!("{with} records with further groups"));
    let (records, malformed) = (drain.records, drain.malformed);
    let good = records >= 12 && malformed == 0;
    all.that(good, format_args!("{records} records, and {malformed} malformed"));
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn full(context: &mut Context, _: Offer) -> Outcome {
    let one = instructions(context, FORMAT);
    let (store, mut drain) = armed(context, FORMAT, one, [2, 2])?;
    let fit = 4096 / (8 * store.record_words());
    // As few as fill it if some records are late, so that no PMU writes past the spare ones after it.
    let period = period(context, &one.1);
    let enough = (fit as u64 + 1) * (period + slack(context, period));
    let long = |turns| context.stated(Ring0Code::Loop, turns).instructions;
    let turns = (1..enough).find(|&turns| long(turns) >= enough).unwrap_or(enough);
    context.run(Work::kernel(Ring0Code::Loop, turns));
    let records = taken(context, &mut drain).len();
    let mut all = All::of(
        "records up to the end of the buffer, nothing after it, and bit 31 of the index set",
    );
    all.same("records", fit as u64, records as u64);
    all.same("times full", 1, drain.full);
    all.that(!store.is_overrun(), format_args!("words after the buffer's end were overwritten"));
    // The index is written whole: it continues.
    context.run(Work::kernel(Ring0Code::Loop, turns));
    let more = taken(context, &mut drain).len();
    all.same("records after that", fit as u64, more as u64);
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn enable(context: &mut Context, _: Offer) -> Outcome {
    let one = instructions(context, FORMAT);
    let (store, mut drain) = armed(context, FORMAT, one, [64, 64])?;
    // A threshold, and nothing that switches records on.
    let off = store.index().0 & !(1 << 32);
    let done = context.registers().wrmsr(numbers::PEBS_INDEX, off).is_ok();
    context.run(straight());
    let records = taken(context, &mut drain).len();
    let mut all = All::of("no record while bit 32 of the index is 0");
    all.that(done, format_args!("PEBS_INDEX refused {off:#x}"));
    all.same("records", 0, records as u64);
    Ok(all.finish())
}

fn fixed(context: &mut Context, offer: Offer) -> Outcome {
    let counter = Counter::Fixed(0);
    if offer.fixed & 1 == 0 {
        return Ok(Finding::skip("architectural PEBS on fixed counter 0"));
    }
    let one = (counter, INSTRUCTIONS);
    let (_store, mut drain) = armed_with(context, (FORMAT, DataConfig::BASIC), one, [64, 64])?;
    let stated = context.stated(Ring0Code::Straight, 1).instructions;
    context.run(straight());
    let records = taken(context, &mut drain);
    let mut all = All::of("a record, and the reset value, at each overflow of fixed counter 0");
    let period = period(context, &one.1);
    let least = fewest(context, stated, period);
    let count = records.len() as u64;
    let good = (least..=stated / period).contains(&count);
    all.that(good, format_args!("{count} records of {stated} events"));
    for record in records {
        all.same("the record's counters", counter.bit(), record.counters);
    }
    if slack(context, period) == 0 {
        let mask = context.has().mask(counter);
        let rest = context.get(counter)?.wrapping_add(period - 1) & mask;
        all.same("events since the last record", stated % period, rest);
    }
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

fn counters(context: &mut Context, offer: Offer) -> Outcome {
    // The first that writes, one that may be in it, and one that may not.
    if offer.general & 0b111 != 0b111 || !offer.contents.contains(Contents::COUNTERS) {
        return Ok(Finding::skip("values of three counters in architectural records"));
    }
    let config = DataConfig { groups: Groups::COUNTERS, general: 0b11, ..DataConfig::BASIC };
    let one = (Counter::General(0), INSTRUCTIONS);
    let (_store, mut drain) = armed_with(context, (FORMAT, config), one, [64, 64])?;
    context.program(Counter::General(1), &INSTRUCTIONS)?;
    context.program(Counter::General(2), &INSTRUCTIONS)?;
    context.run(straight());
    let mut all = All::of("each record has the counters allowed in it, with their values");
    let mut values = Vec::new();
    while drain.fetch(context.registers()) {
        drain.run(|taken| {
            let seen = taken.snapshot.unwrap_or_default();
            let of = |n: usize| seen.values.get(n).copied().unwrap_or(u64::MAX);
            values.push((seen.general, of(1), of(0)));
        });
    }
    let period = period(context, &one.1);
    let most = period + slack(context, period);
    for &(general, _, own) in &values {
        all.same("counters of a record", 0b11, general.into());
        // Linux takes it for what came since the overflow, and counts the period in addition (`__setup_pebs_counter_group`).
        all.that(own < most, format_args!("{own:#x} in its own counter"));
    }
    for pair in values.windows(2) {
        let more = pair[1].1.wrapping_sub(pair[0].1);
        let good = (period..=most).contains(&more);
        all.that(good, format_args!("{more} events from one record to the next"));
    }
    all.that(values.len() >= 12, format_args!("{} records", values.len()));
    Ok(all.finish().explained_by(context.instructions_erratum()))
}
