//! PEBS: records of the instruction itself.

use super::check::{All, Check, Finding, Outcome};
use super::context::{Context, INSTRUCTIONS};
use super::machine::Work;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::pmu::pebs::{DataConfig, Drain, Format, Record, Store};
use arch::pmu::pmi::Delivery;
use arch::pmu::registers::GlobalStatus;
use arch::pmu::workload::{Ring0Code, Ring3Code, STRAIGHT_INSTRUCTIONS};
use arch::pmu::{Counter, Freeze, FreezeKind, PmuError, Rings, Selection, numbers};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "pebs.registers",
        source: "SDM vol. 4: IA32_PEBS_ENABLE, IA32_DS_AREA",
        run: registers,
    },
    Check {
        name: "pebs.address",
        source: "SDM vol. 3, 20.3.1.1.1: the record is of the event after the overflow; 20.3.6.2: EventingRIP",
        run: |context| of_stored(context, address),
    },
    Check {
        name: "pebs.count",
        source: "SDM vol. 3, 20.3.1.1.1: a record, and the reset value, at each overflow",
        run: |context| of_stored(context, count),
    },
    Check {
        name: "pebs.threshold",
        source: "SDM vol. 3, 18.4.9: IA32_PERF_GLOBAL_STATUS[62] at the threshold, not before",
        run: |context| of_stored(context, threshold),
    },
    Check {
        name: "pebs.interrupt",
        source: "SDM vol. 3, 18.4.9: an interrupt at the threshold; none is lost",
        run: |context| of_stored(context, interrupt),
    },
    Check {
        name: "pebs.maximum",
        source: "SDM vol. 3, 18.4.9: the absolute maximum is the first byte after the buffer",
        run: maximum,
    },
    Check {
        name: "pebs.data_address",
        source: "SDM vol. 3, 20.3.6.3: data linear address of loads",
        run: |context| of_stored(context, data_address),
    },
];

/// Events from one record to the next, where no erratum is about so few.
pub(super) const PERIOD: u64 = 20;
/// Records after the end of each buffer: more than a check lets a PMU write that passes it.
const SPARE: usize = 128;
/// Instructions that a counter sees before the first one of a piece: `add`, `dec`, `jnz` and the call. See
/// [`arch::pmu::window`]; with a global control there is one write.
const AHEAD: u64 = 4;
const NEEDS: &str = "PEBS with records of formats 0 to 6";

/// A counter with an event that is every instruction, and is precise.
pub(super) fn instructions(context: &Context, format: Format) -> (Counter, Selection) {
    match format {
        // INST_RETIRED.PREC_DIST, which is counter 1's; on Nehalem INST_RETIRED.ANY_P, which is any one's.
        Format::Nehalem | Format::Haswell | Format::Skylake
            if context.has().pebs_counters() & 1 << 1 != 0 =>
        {
            (Counter::General(1), Selection::of(0xc0, 1))
        }
        // INST_RETIRED.ANY_P; Silvermont and Goldmont have it, and records on counter 0 alone (`pebs::counters_of`).
        _ => (Counter::General(0), Selection::of(0xc0, 0)),
    }
}

/// Events from one record of `event` to the next: [`PERIOD`], or the least that works on this processor. An emulated PMU has
/// the processor's name, and not its errata.
pub(super) fn period(context: &Context, event: &Selection) -> u64 {
    let limits =
        context.errata().filter_map(|row| row.spoils_period((event.event, event.umask), PERIOD));
    // The counter is set one event less than the period away from its overflow.
    limits.map(|limit| limit.least + 1).max().unwrap_or(PERIOD)
}

/// Programs `counter` to write a record of each [`period`]th `event` into a store of so many records, the threshold at
/// `threshold`.
pub(super) fn armed(
    context: &mut Context,
    format: Format,
    one: (Counter, Selection),
    sizes: [usize; 2],
) -> Result<(Store, Drain), PmuError> {
    armed_with(context, (format, DataConfig::SAMPLES), one, sizes)
}

/// The same, with these groups where records are adaptive.
pub(super) fn armed_with(
    context: &mut Context,
    (format, config): (Format, DataConfig),
    (counter, event): (Counter, Selection),
    [records, threshold]: [usize; 2],
) -> Result<(Store, Drain), PmuError> {
    let mut store = Store::with_spare(format, config, records, threshold, SPARE);
    // The event after the overflow makes the record.
    let preset = context.arm(counter, period(context, &event) - 1)?;
    store.set_reset(counter, preset);
    context.driver.use_store(context.machine, &store)?;
    context.program(counter, &event.with_records())?;
    let drain = Drain::new(&mut store, context.driver.recording());
    Ok((store, drain))
}

/// The format, where records go through the debug store.
fn stored(context: &Context) -> Option<Format> {
    context.has().pebs_format().filter(|format| *format != Format::Architectural)
}

fn of_stored(context: &mut Context, check: fn(&mut Context, Format) -> Outcome) -> Outcome {
    let Some(format) = stored(context) else { return Ok(Finding::skip(NEEDS)) };
    check(context, format)
}

pub(super) fn taken(context: &mut Context, drain: &mut Drain) -> Vec<Record> {
    let mut records = Vec::new();
    while drain.fetch(context.registers()) {
        drain.run(|taken| records.push(taken.record));
    }
    records
}

pub(super) fn straight() -> Work {
    Work::kernel(Ring0Code::Straight, 1)
}

/// What is between two records: exactly the period where nothing lies between overflow and record, as on an emulated PMU.
/// A processor takes a few events to arm itself.
pub(super) fn slack(context: &Context, period: u64) -> u64 {
    if context.emulated.is_some() { 0 } else { period }
}

/// Fewest records that code which runs `events` once must leave.
pub(super) fn fewest(context: &Context, events: u64, period: u64) -> u64 {
    events / (period + slack(context, period))
}

fn registers(context: &mut Context) -> Outcome {
    let Some(_) = stored(context) else { return Ok(Finding::skip(NEEDS)) };
    let mut all = All::of(
        "the bits of its counters can be written; other bits and non-canonical addresses raise #GP",
    );
    let counters = context.has().pebs_counters();
    for n in (0..32).filter(|n| counters & 1 << n != 0) {
        let bit = 1 << n;
        let done = context.registers().wrmsr(numbers::PEBS_ENABLE, bit).is_ok();
        let seen = context.registers().rdmsr(numbers::PEBS_ENABLE).unwrap_or(0);
        all.that(done && seen == bit, format_args!("PEBS_ENABLE: {seen:#x}, not {bit:#x}"));
    }
    all.faults(context.registers(), numbers::PEBS_ENABLE, 1 << 20);
    let area = 0xffff_8000_0000_0040;
    let done = context.registers().wrmsr(numbers::DS_AREA, area).is_ok();
    let seen = context.registers().rdmsr(numbers::DS_AREA).unwrap_or(0);
    all.that(done && seen == area, format_args!("DS_AREA: {seen:#x}, not {area:#x}"));
    all.faults(context.registers(), numbers::DS_AREA, 1 << 62);
    Ok(all.finish())
}

pub(super) fn address(context: &mut Context, format: Format) -> Outcome {
    let one = instructions(context, format);
    let (_store, mut drain) = armed(context, format, one, [64, 64])?;
    context.run(straight());
    let records = taken(context, &mut drain);
    let exact = format.is_exact();
    let mut all = All::of(match exact {
        true => "each record names the instruction that retired with the event",
        false => "each record names the instruction after the one that retired with the event",
    });
    let period = period(context, &one.1);
    let (begin, slack) = (Ring0Code::Straight.address(), slack(context, period));
    let piece = AHEAD + 1..=AHEAD + STRAIGHT_INSTRUCTIONS;
    // The event's number among those of the window; what is outside the piece is the window's own.
    let number = |record: &Record| {
        (record.ip + AHEAD + u64::from(exact)).checked_sub(begin).filter(|at| piece.contains(at))
    };
    let mut before = AHEAD;
    for (n, record) in (1..).zip(&records) {
        let due = n * period;
        match number(record) {
            Some(at) if slack == 0 => {
                all.that(at == due, format_args!("record {n}: instruction {at}, not {due}"));
            }
            Some(at) => {
                let good = (before..=before + period + slack).contains(&at);
                all.that(good, format_args!("record {n}: instruction {at} after {before}"));
                before = at;
            }
            None => {
                let good = !piece.contains(&due) || slack > 0;
                all.that(good, format_args!("record {n}: {:#x}, not of the code", record.ip));
            }
        }
    }
    let enough = records.len() as u64 >= fewest(context, STRAIGHT_INSTRUCTIONS, period);
    all.that(enough, format_args!("{} records", records.len()));
    Ok(all.finish().explained_by(context.instructions_erratum()))
}

pub(super) fn count(context: &mut Context, format: Format) -> Outcome {
    let one = instructions(context, format);
    let (_store, mut drain) = armed(context, format, one, [64, 64])?;
    let period = period(context, &one.1);
    let stated = context.stated(Ring0Code::Straight, 1).instructions;
    context.run(straight());
    let records = taken(context, &mut drain).len() as u64;
    let least = fewest(context, stated, period);
    let expected = format!("{least} to {} records of {stated} events", stated / period);
    let good = (least..=stated / period).contains(&records);
    let mut seen = format!("{records} records");
    let mut whole = good;
    if slack(context, period) == 0 {
        // What has come since the last one.
        let mask = context.has().mask(one.0);
        let rest = context.get(one.0)?.wrapping_add(period - 1) & mask;
        whole &= rest == stated % period;
        seen = format!("{seen}, and {rest} events");
    }
    let found = Finding::when(whole, expected, seen);
    Ok(found.explained_by(context.instructions_erratum()))
}

pub(super) fn threshold(context: &mut Context, format: Format) -> Outcome {
    let one = instructions(context, format);
    let mut all = All::of("the buffer's status bit at its threshold, and no counter's status bit");
    let enough = fewest(context, STRAIGHT_INSTRUCTIONS, period(context, &one.1));
    for (threshold, is_reached) in [(enough.min(5) as usize, true), (60, false)] {
        context.fresh()?;
        let (_store, mut drain) = armed(context, format, one, [64, threshold])?;
        let expected = if is_reached { drain.status().bits() } else { 0 };
        context.run(straight());
        let seen = context.driver.status(context.machine)?.bits() & !GlobalStatus::CHANGED.bits();
        all.same(format_args!("threshold {threshold}"), expected, seen);
        let records = taken(context, &mut drain).len();
        let good = records as u64 >= enough;
        all.that(good, format_args!("threshold {threshold}: {records} records"));
    }
    Ok(all.finish())
}

/// A loop in ring 3, so that the handler is not counted.
pub(super) fn interrupt(context: &mut Context, format: Format) -> Outcome {
    const TURNS: u64 = 1000;
    let (counter, event) = instructions(context, format);
    let one = (counter, event.in_rings(Rings::USER));
    let period = period(context, &event);
    let (_store, drain) = armed(context, format, one, [16, 8])?;
    let witness = match counter {
        Counter::General(0) => Counter::General(1),
        _ => Counter::General(0),
    };
    context.program(witness, &INSTRUCTIONS.in_rings(Rings::USER))?;
    if context.stuck && context.has().freeze == FreezeKind::Streamlined {
        let text = "the bits of the status cannot be cleared";
        return Ok(Finding::fail("a freeze that can be ended", text));
    }
    if context.has().freeze != FreezeKind::None {
        context.driver.set_freeze(context.machine, Freeze::COUNTERS)?;
    }
    context.deliver(Delivery::Fixed, |block, driver| {
        if driver.capabilities().freeze != FreezeKind::None {
            block.resume_in_handler(driver);
        }
        block.take_records(drain);
        Ok(())
    })?;
    context.run(Work::user(Ring3Code::Loop, TURNS));
    let block = context.machine.withdraw();
    let counted = context.get(witness)?;
    let mask = context.has().mask(counter);
    let rest = context.get(counter)?.wrapping_add(period - 1) & mask;
    let seen = block.records().map_or((0, 1), |drain| (drain.records, drain.full));
    let whole = counted / period;
    let interrupts = whole / 8;
    // What has come since the last interrupt is still in the buffer.
    let expected = interrupts * 8;
    let good = match slack(context, period) {
        0 => seen == (expected, 0) && block.pmis == interrupts && rest == counted % period,
        _ => seen.1 == 0 && block.pmis > 0 && seen.0 >= 8 * block.pmis,
    };
    let found = Finding::when(
        good,
        format!("{expected} records at {interrupts} interrupts, of {counted} events"),
        format!(
            "{} records at {} interrupts, {rest} events since; full {} times",
            seen.0, block.pmis, seen.1
        ),
    );
    Ok(found.explained_by(context.instructions_erratum()))
}

fn maximum(context: &mut Context) -> Outcome {
    let Some(format) = stored(context) else { return Ok(Finding::skip(NEEDS)) };
    let one = instructions(context, format);
    let period = period(context, &one.1);
    // Room for all but one of what an exact PMU writes, and on a processor for fewer than two runs must write.
    let stated = context.stated(Ring0Code::Straight, 1).instructions;
    let (records, runs) = match slack(context, period) {
        0 => ((stated / period - 1) as usize, 1),
        _ => (fewest(context, stated, period).min(4) as usize, 2),
    };
    let (store, mut drain) = armed(context, format, one, [records, records])?;
    for _ in 0..runs {
        context.run(straight());
    }
    let kept = taken(context, &mut drain).len();
    let seen: String = match store.is_overrun() {
        true => "words after the buffer's end were overwritten".into(),
        false => format!("{kept} records, {} times full", drain.full),
    };
    let good = !store.is_overrun() && kept == records && drain.full == 1;
    Ok(Finding::when(good, format!("{records} records, and nothing after them"), seen))
}

pub(super) fn data_address(context: &mut Context, format: Format) -> Outcome {
    const TURNS: u64 = 200;
    /// Bytes from one load of the piece to the next.
    const LINE: u64 = 64;
    /// Where the piece has its CLFLUSH, which may count as a load, and its load.
    const SITES: [u64; 2] = [0, 6];
    let needs = "PEBS records with data addresses (Haswell and later)";
    // Silvermont, with two counters, has another event for loads.
    if !format.is_exact() || context.has().pebs_counters() & 0xf != 0xf {
        return Ok(Finding::skip(needs));
    }
    // MEM_INST_RETIRED.ALL_LOADS and MEM_UOPS_RETIRED.ALL_LOADS.
    let loads = (Counter::General(0), Selection::of(0xd0, 0x81));
    let (_store, mut drain) = armed(context, format, loads, [64, 64])?;
    context.run(Work::kernel(Ring0Code::ColdLoads, TURNS));
    let records = taken(context, &mut drain);
    let mut all = All::of(
        "each record has its load's address: as many lines after the record before as there were loads",
    );
    let piece = Ring0Code::ColdLoads.address();
    let inside: Vec<&Record> =
        records.iter().filter(|record| (piece..piece + 0x20).contains(&record.ip)).collect();
    // CLFLUSH may count as a load, so a period is as many lines or half of them.
    let mut step = None;
    for pair in inside.windows(2) {
        let [before, now] = [pair[0], pair[1]].map(|record| record.access.unwrap_or_default());
        let far = now.address.wrapping_sub(before.address);
        let good = match slack(context, PERIOD) {
            0 => *step.get_or_insert(far) == far && [1, 2].contains(&(PERIOD * LINE / far.max(1))),
            slack => far % LINE == 0 && far <= (PERIOD + slack) * LINE,
        };
        all.that(good, format_args!("{far} bytes after {:#x}", before.address));
        all.same("the load's address", pair[0].ip, pair[1].ip);
    }
    for record in &inside {
        let at = record.ip - piece;
        all.that(SITES.contains(&at), format_args!("no load is {at:#x} bytes into the code"));
    }
    all.that(inside.len() >= 5, format_args!("{} records", inside.len()));
    Ok(all.finish())
}
