//! Sampling with PEBS: what can be sampled so, and what its records come to.

use super::{Armed, Besides, Session};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pebs::{DataConfig, Format, Groups, Store};
use arch::pmu::pmi::{ControlBlock, Retired};
use arch::pmu::{Capabilities, Counter, Selection, numbers};
use protocol::hex::Hex;
use protocol::job::sampling::{Rate, Sampling};
use protocol::record::{DataCount, RetireLatency};

/// Records that the buffer holds: 50 kB of the largest, 250 kB with branch records.
const RECORDS: usize = 256;
/// Records at which the buffer interrupts. What comes while the interrupt waits fits after it.
const THRESHOLD: usize = 192;
/// Shortest period of precise distribution from Golden Cove on (Linux, `glc_limit_period`). Periods that make a rate are longer.
const LEAST_DISTRIBUTED: u64 = 128;

/// Memory for the records of a session, with so many branch records each, and what else is asked for, where the format has
/// groups.
pub(super) fn store((format, groups): (Format, Groups), branches: u8, besides: &Besides) -> Store {
    let mut config = DataConfig::SAMPLES;
    besides.add(&mut config);
    if branches > 0 {
        config.groups |= Groups::BRANCHES;
        config.branches = branches.into();
    }
    // Architectural records may have fewer than samples would use.
    config.groups &= groups;
    Store::with_groups(format, config, RECORDS, THRESHOLD)
}

/// Whether an event can be sampled with PEBS beside those that are `armed` already.
///
/// # Errors
/// Why not.
pub(super) fn check(
    selection: &Selection,
    has: &Capabilities,
    armed: &[Armed],
    item: &Sampling,
) -> Result<(), String> {
    let Some(format) = has.pebs_format().filter(|_| selection.precise) else { return Ok(()) };
    if format == Format::Core && !Format::core_has(selection.event, selection.umask) {
        let (event, umask) = (selection.event, selection.umask);
        return Err(format!("event {event:#04x}/{umask:#04x} is not precise on this processor"));
    }
    if !format.names_counters() && armed.iter().any(|one| one.selection.precise) {
        let number = format.number();
        return Err(format!(
            "records of format {number} do not say reliably which counter wrote them, so one precise event at a time is sampled"
        ));
    }
    if item.limit_per_ms > 0 {
        return Err("limit-per-ms cannot slow the processor's own records down".to_string());
    }
    Ok(())
}

/// Whether events of this level, `:p` to `:ppp`, can be sampled so often. The emulated PMU takes any period.
///
/// # Errors
/// The least period that there is.
pub(super) fn check_period(
    level: u8,
    rate: Rate,
    has: &Capabilities,
    emulated: bool,
) -> Result<(), String> {
    let limited = level == 3 && has.memory.is_from_golden_cove() && !emulated;
    match rate {
        Rate::Period(period) if limited && period < LEAST_DISTRIBUTED => Err(format!(
            "a period of {period} is too short for precise distribution (`:ppp`) on this processor: at least {LEAST_DISTRIBUTED} is needed"
        )),
        Rate::Period(_) | Rate::PerSecond(_) => Ok(()),
    }
}

/// Whether the event is one of load latency.
pub(super) fn is_latency(selection: &Selection) -> bool {
    matches!(selection.extra, Some((numbers::LOAD_LATENCY, _)))
}

/// A free counter that counts the same without records, and what it is programmed with. `places`: counters that the event
/// can be on.
pub(super) fn witness(
    plain: &Selection,
    places: u64,
    free: &mut Vec<Counter>,
) -> Option<(Counter, Selection)> {
    if is_latency(plain) {
        // Load latency looks at some of the loads, and each counter at others.
        return None;
    }
    let all = Selection { umask: 0, ..*plain };
    // INST_RETIRED.PREC_DIST (C0/01) and, on Nehalem, ANY_P count what the architectural event does.
    let instructions = plain.event == 0xc0 && plain.umask <= 1 && plain.cmask == 0 && !plain.edge;
    let at = free.iter().position(|counter| instructions || places & counter.bit() != 0)?;
    Some((free.remove(at), if instructions { all } else { *plain }))
}

/// How far the addresses of records of this format are after the event, in words.
pub(super) fn skid(format: Format) -> String {
    let number = format.number();
    match format.is_exact() {
        true => format!("0: PEBS records of format {number} name the instruction itself"),
        false => format!(
            "one instruction: PEBS records of format {number} name the one behind, to which the event's went on"
        ),
    }
}

/// Records of `one` that the processor found no room for, by the events that its witness counted beyond `rest`.
///
/// # Errors
/// The buffer was full, and nothing tells how many there were: a remark.
pub(super) fn lost(
    one: &Armed,
    block: &ControlBlock,
    rest: u64,
    witness: Option<u64>,
) -> Result<u64, String> {
    let Some(records) = block.records().filter(|_| one.selection.precise) else { return Ok(0) };
    if records.malformed > 0 {
        return Err(format!(
            "{} times the buffer held what is no record, and the records behind that were given up",
            records.malformed
        ));
    }
    if records.full == 0 {
        return Ok(0);
    }
    let Some(witness) = witness else {
        return Err("the buffer of records was full, and no counter was free that could tell how many were lost".into());
    };
    let periods = witness.saturating_sub(rest) / one.period;
    Ok(periods.saturating_sub(block.slot(one.counter.index()).overflows))
}

/// What the records of the counter with this bit state of retirement.
pub(super) fn retired(index: usize, block: &ControlBlock) -> Option<RetireLatency> {
    let Retired { records, cycles, longest } = block.retired(index)?;
    (records > 0).then_some(RetireLatency { records, cycles, longest })
}

/// The histogram of data addresses.
pub(super) fn data(session: &Session, block: &ControlBlock) -> Vec<DataCount> {
    let Some(histogram) = block.data() else { return Vec::new() };
    let number =
        |bit: u8| session.events.iter().position(|one| one.counter.index() == usize::from(bit));
    let mut rows: Vec<DataCount> = Vec::new();
    for bucket in histogram.used() {
        let Some(event) = number(bucket.bit) else { continue };
        let (address, event, task) = (Hex(bucket.address), event as u32, bucket.task);
        rows.push(DataCount { address, event, task, count: bucket.count, ..DataCount::default() });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is no record ends the buffer, and that is said; of records that found no room the witness tells the number.
    #[test]
    fn m9_a_buffer_with_something_else_in_it_is_told() {
        use arch::pmu::pebs::Drain;
        use arch::pmu::{Driver, find};
        let host = pmu_model::Host::EXAMPLE;
        let mut pmu =
            pmu_model::Pmu::new(pmu_model::Model::Skylake, host, pmu_model::Timing::DEFAULT);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        let counter = Counter::General(0);
        let selection = Selection::of(0xc0, 1).with_records();
        driver.program(&mut pmu, counter, &Selection::of(0xc0, 1)).unwrap();
        let one = Armed {
            event: "e".to_string(),
            counter,
            selection,
            period: 10,
            witness: None,
            remarks: Vec::new(),
            ibs: None,
            auxiliary: None,
        };
        let mut store = store((Format::Skylake, Groups::empty()), 0, &Besides::default());
        let mut with = |full, malformed, witness| {
            let mut drain = Drain::new(&mut store, 1);
            (drain.full, drain.malformed) = (full, malformed);
            let mut block = ControlBlock::of(&driver);
            block.take_records(drain);
            lost(&one, &block, 5, witness)
        };
        assert_eq!(with(0, 0, Some(1_000)), Ok(0));
        assert_eq!(with(1, 0, Some(1_000)), Ok(99));
        assert!(with(1, 0, None).unwrap_err().contains("no counter was free"));
        for full in [0, 1] {
            let said = with(full, 2, Some(1_000)).unwrap_err();
            assert!(said.starts_with("2 times the buffer held what is no record"), "{said}");
        }
    }

    #[test]
    fn m9_a_witness_of_records_counts_what_they_are_of() {
        let (first, second) = (Counter::General(0), Counter::General(1));
        let of = |plain: &Selection, places: u64| {
            let mut free = Vec::from([first, second]);
            let witness = witness(plain, places, &mut free);
            assert_eq!(free.len(), 2 - usize::from(witness.is_some()));
            witness
        };
        let all = Selection::of(0xc0, 0);
        // INST_RETIRED, on any counter, by the architectural event.
        for umask in [0, 1] {
            assert_eq!(of(&Selection::of(0xc0, umask), 0), Some((first, all)));
        }
        // Another event, or one that counts cycles of it, as it stands and where it can be.
        for plain in [
            Selection::of(0xd0, 0x01),
            Selection::of(0xc0, 2),
            Selection { cmask: 16, ..all },
            Selection { edge: true, ..all },
        ] {
            assert_eq!(of(&plain, second.bit()), Some((second, plain)));
            assert_eq!(of(&plain, 0), None);
        }
        // Loads that are looked at for their latency are not the same on two counters.
        let latency =
            Selection { extra: Some((numbers::LOAD_LATENCY, 3)), ..Selection::of(0xcd, 1) };
        assert!(is_latency(&latency) && !is_latency(&all));
        assert_eq!(of(&latency, u64::MAX), None);
    }

    /// Linux, `glc_limit_period`: of precise distribution at least 128, on the large cores from Golden Cove on.
    #[test]
    fn s1_short_periods_of_precise_distribution_are_refused_where_they_do_not_work() {
        use arch::pmu::find;
        use pmu_model::{Host, Model, Pmu as Registers, Timing};
        let check = |model, level, period, emulated| {
            let has = find(&mut Registers::new(model, Host::EXAMPLE, Timing::FLAT)).unwrap();
            check_period(level, Rate::Period(period), &has, emulated)
        };
        for model in [Model::SapphireRapids, Model::ArrowLake, Model::GoldenCove, Model::CougarCove]
        {
            let refused = check(model, 3, 127, false).unwrap_err();
            assert!(
                refused.contains("127") && refused.contains("at least 128"),
                "{model:?}: {refused}"
            );
            assert_eq!(check(model, 3, 128, false), Ok(()), "{model:?}");
            assert_eq!(check(model, 2, 20, false), Ok(()), "{model:?}");
            assert_eq!(check(model, 3, 20, true), Ok(()), "{model:?}");
        }
        for model in [Model::IceLake, Model::Gracemont, Model::Skylake] {
            assert_eq!(check(model, 3, 20, false), Ok(()), "{model:?}");
        }
    }
}
