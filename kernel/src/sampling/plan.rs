//! From events and rates to counters and periods.

use super::parts::on;
use super::{Sampler, branches, ibs, memory, only, precise};
use crate::events::Known;
use crate::snippet::events::{self, Use};
use crate::snippet::measure::Unmeasured;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::errata::{Effect, Limit};
use arch::pmu::pmi::{ControlBlock, Delivery};
use arch::pmu::{Capabilities, Counter, Fault, Rings, Selection};
use arch::time::tsc;
use protocol::record::Uncounted;
use protocol::sampling::{Rate, Sampling};

/// Shortest period of an event that counts ring 0. The handler's end, which such a counter sees, has up to 55 instructions;
/// with a period that fits into it the machine would do nothing but handle overflows.
pub const MIN_PERIOD: u64 = 64;

/// The longest way to an overflow that 32 bits tell, sign-extended (Linux, `ARCH_PEBS_RELOAD`).
const LONGEST_RELOAD: u64 = 1 << 31;

/// An event with its counter and period.
#[derive(Clone, Debug, PartialEq)]
pub struct Armed {
    /// As the job has it.
    pub event: String,
    /// The counter that samples.
    pub counter: Counter,
    /// What it is programmed with, the interrupt included.
    pub selection: Selection,
    /// Events between two overflows.
    pub period: u64,
    /// A counter that counts the same without interrupts, and what it is programmed with.
    pub witness: Option<(Counter, Selection)>,
    /// Doubts about the count.
    pub remarks: Vec<String>,
    /// The instruction-based samples that are taken, by a unit beside the counter.
    pub ibs: Option<ibs::IbsEvent>,
    /// A counter that has to count another event, so that this one counts at all.
    pub auxiliary: Option<(Counter, Selection)>,
}

impl Armed {
    /// What the counter starts from is so many events away from its overflow. With PEBS it is one less than the period:
    /// the overflow arms the counter, and the record is of the event after it.
    #[must_use]
    pub fn distance(&self) -> u64 {
        self.period - u64::from(self.selection.precise)
    }
}

/// Finds a counter for each event of `item`, all at the same time, and what they are sampled by. Events that cannot be
/// sampled by are left out with their reasons.
///
/// # Errors
/// The events do not fit the counters together; there is nothing left to sample by; the counting run failed.
pub fn plan(
    machine: &mut impl Sampler,
    item: &Sampling,
) -> Result<(Vec<Armed>, Vec<Uncounted>), Unmeasured> {
    if item.events.is_empty() {
        return match item.branches || item.call_graph.is_some() {
            true => Err(Unmeasured::Refused(branches::NO_EVENT.to_string())),
            false => Ok((Vec::new(), Vec::new())),
        };
    }
    let pmu = machine.pmu().map_err(Unmeasured::Refused)?;
    let has = pmu.driver.capabilities().clone();
    let requested = Requested::of(item, pmu.known, &has);
    let purpose = Use::Sampling { precise: item.precise && has.is_intel() };
    let planned = events::plan_for(purpose, &requested.texts, pmu.known);
    if planned.passes.len() > 1 {
        let late = planned.passes[1..].iter().flatten().map(|one| format!("`{}`", one.event));
        return Err(Unmeasured::Refused(format!(
            "sampling takes a counter for each event at the same time; beside the others there is none for {}",
            late.collect::<Vec<_>>().join(", ")
        )));
    }
    let mut left_out = planned.uncounted;
    for one in &mut left_out {
        one.event = requested.name(item, core::mem::take(&mut one.event));
        if !item.only.is_empty() && has.is_intel() {
            one.reason += only::PRECISE;
        }
    }
    left_out.extend(requested.refused.iter().cloned());
    // On an emulated PMU each run is the same; elsewhere none knows how the last one began.
    let emulated = machine.has_emulated_pmu();
    let seed = if emulated { ibs::SEED } else { tsc::now() as u32 };
    let random = item.randomise.then_some(seed);
    let (mut armed, mut rates) = (Vec::<Armed>::new(), Vec::new());
    let mut places = Vec::new();
    for one in planned.passes.into_iter().flatten() {
        // A group in braces is one text with several events, which then have its rate.
        let sampled = requested.ibs.filter(|(_, ibs_event)| ibs_event.beside() == one.event);
        let (event, ibs_event) = match sampled {
            Some((number, ibs_event)) => (item.events[number].event.to_string(), Some(ibs_event)),
            None => (requested.name(item, one.event), None),
        };
        let rate = rate(item, one.number, &event);
        if one.merges {
            let reason = "it takes a pair of counters, whose overflow is not sampled".to_string();
            left_out.push(Uncounted { event, reason });
            continue;
        }
        let ibs_event = ibs_event.map(|ibs_event| ibs::IbsEvent { random, ..ibs_event });
        let possible = match ibs_event {
            None if item.randomise => Err(ibs::FIXED.to_string()),
            Some(_) => ibs::check(item),
            None => precise::check(&one.selection, &has, &armed, item)
                .and_then(|()| precise::check_period(one.level, rate, &has, emulated)),
        };
        let possible = possible.and_then(|()| only::check(&one.selection, ibs_event, &has, item));
        if let Err(reason) = possible {
            left_out.push(Uncounted { event, reason });
            continue;
        }
        places.push((one.counter, one.counters));
        let mut remarks = one.counting.remarks;
        remarks.extend(ibs_event.map(ibs::remark));
        armed.push(Armed {
            event,
            counter: one.counter,
            selection: match (ibs_event, one.selection.precise) {
                // What is estimated of ring 3 is counted there.
                (Some(_), _) if !item.only.is_empty() => one.selection.in_rings(Rings::USER),
                (Some(_), _) => one.selection,
                (None, true) => one.selection.with_records(),
                (None, false) => one.selection.with_interrupt(),
            },
            period: 0,
            witness: None,
            remarks,
            ibs: ibs_event,
            auxiliary: None,
        });
        rates.push(rate);
    }
    memory::auxiliary(&mut armed, &has).map_err(Unmeasured::Refused)?;
    if rates.iter().any(|rate| matches!(rate, Rate::PerSecond(_))) {
        count(machine, item, &mut armed, &rates, &mut left_out)?;
    } else {
        for (one, rate) in armed.iter_mut().zip(&rates) {
            if let Rate::Period(period) = rate {
                one.period = *period;
            }
        }
    }
    armed.retain(|one| match possible(machine, one) {
        Ok(()) => true,
        Err(reason) => {
            left_out.push(Uncounted { event: one.event.clone(), reason });
            false
        }
    });
    if armed.is_empty() && item.interval_ns == 0 {
        let reasons = left_out.iter().map(|one| format!("{}: {}", one.event, one.reason));
        return Err(Unmeasured::Refused(reasons.collect::<Vec<_>>().join("; ")));
    }
    branches::check(item, &has, &armed).map_err(Unmeasured::Refused)?;
    witnesses(&mut armed, &has, &places);
    Ok((armed, left_out))
}

/// The events of an item, with those that instruction-based sampling takes as what counts beside it.
struct Requested<'a> {
    texts: Vec<Cow<'a, str>>,
    /// Texts of the job that others stand for: by their number among the events.
    renamed: Vec<(usize, String)>,
    /// The one that it takes: its number among all, and what is sampled.
    ibs: Option<(usize, ibs::IbsEvent)>,
    refused: Vec<Uncounted>,
}

impl<'a> Requested<'a> {
    fn of(item: &'a Sampling, known: &Known, has: &Capabilities) -> Self {
        let (texts, renamed, refused) = (Vec::new(), Vec::new(), Vec::new());
        let mut requested = Self { texts, renamed, ibs: None, refused };
        for (number, event) in item.events.iter().enumerate() {
            let text = &event.event;
            let by_ibs = match memory::requested(text, has) {
                Some(Ok(memory::Requested::Event(stands))) => {
                    requested.texts.push(Cow::Owned(stands.clone()));
                    requested.renamed.push((number, stands));
                    continue;
                }
                Some(Ok(memory::Requested::Ibs(event))) => Some(Ok(event)),
                Some(Err(reason)) => Some(Err(reason)),
                None => ibs::requested(text, item.precise, known, has),
            };
            match by_ibs {
                None => requested.texts.push(text.clone()),
                Some(Ok(ibs_event)) if requested.ibs.is_none() => {
                    requested.texts.push(Cow::Borrowed(ibs_event.beside()));
                    requested.ibs = Some((number, ibs_event));
                }
                Some(result) => {
                    let reason = result.err().unwrap_or_else(|| ibs::ONE.to_string());
                    requested.refused.push(Uncounted { event: text.to_string(), reason });
                }
            }
        }
        requested
    }

    /// What an event is called in the report: as the job has it.
    fn name(&self, item: &Sampling, event: String) -> String {
        let stands = self.renamed.iter().find(|(_, text)| *text == event);
        stands.map_or(event, |(number, _)| item.events[*number].event.to_string())
    }
}

/// The rate of the event with this number among all, or of the last one.
fn rate(item: &Sampling, number: usize, event: &str) -> Rate {
    let by_text = item.events.iter().find(|one| one.event == event);
    by_text.or(item.events.get(number)).or(item.events.last()).map_or(Rate::Period(1), |e| e.rate)
}

/// What an erratum says about the counter's distance from its overflow, if it does not work.
fn limit(has: &Capabilities, one: &Armed) -> Option<(&'static str, Limit)> {
    let event = (one.selection.event, one.selection.umask);
    has.errata.iter().find_map(|row| Some((row.id, row.spoils_period(event, one.distance())?)))
}

/// Whether no erratum of the processor is about such a period. The emulated PMU has none.
fn within_errata(has: &Capabilities, one: &Armed) -> Result<(), String> {
    let Some((id, Limit { least, step, .. })) = limit(has, one) else { return Ok(()) };
    let more = u64::from(one.selection.precise);
    let steps = if step > 1 { format!(", in steps of {step}") } else { String::new() };
    Err(format!(
        "a period of {} does not work on this processor ({id}): of this event at least {}{steps}",
        one.period,
        least + more
    ))
}

/// Whether the counter can be set back by the period, and anything is left to run in it.
fn possible(machine: &mut impl Sampler, one: &Armed) -> Result<(), String> {
    let emulated = machine.has_emulated_pmu();
    let mut pmu = machine.pmu()?;
    if let Some(ibs_event) = one.ibs {
        let entry = ibs::possible(&mut pmu, ibs_event, one.period)?;
        return ibs::has_entry(machine, entry);
    }
    if one.period < MIN_PERIOD && one.selection.rings.contains(Rings::KERNEL) {
        return Err(format!(
            "a period of {} is too short: the handler's own end would fill it; in ring 0 at least {MIN_PERIOD} are needed",
            one.period
        ));
    }
    let has = pmu.driver.capabilities();
    if !emulated {
        within_errata(has, one)?;
    }
    if one.selection.interrupt && !has.overflows(one.counter) {
        let known = has.faults.iter().find(
            |fault| matches!(fault, Fault::Overflow { counter, .. } if *counter == one.counter),
        );
        return Err(known.map_or_else(
            || format!("{} cannot interrupt at its overflow", one.counter),
            ToString::to_string,
        ));
    }
    let least = 1 + u64::from(one.selection.precise);
    if one.period < least {
        return Err(format!("a period of {} is too short: at least {least} is needed", one.period));
    }
    if one.selection.precise && has.architectural_pebs.is_some() && one.distance() > LONGEST_RELOAD
    {
        return Err(format!(
            "a period of {} is too long: what a counter goes on from behind a record of architectural PEBS has 32 bits, so {} is the longest",
            one.period,
            LONGEST_RELOAD + 1
        ));
    }
    pmu.driver.preset(one.counter, one.distance()).map(|_| ()).map_err(|error| error.to_string())
}

/// Runs the tasks once and counts, so that periods can be chosen that make the rates.
fn count(
    machine: &mut impl Sampler,
    item: &Sampling,
    armed: &mut Vec<Armed>,
    rates: &[Rate],
    left_out: &mut Vec<Uncounted>,
) -> Result<(), Unmeasured> {
    let cpus = item.workload.cpus();
    let mut blocks = Vec::with_capacity(cpus.len());
    for &cpu in &cpus {
        blocks.push(on(machine, cpu, |registers, driver| {
            driver.reset(registers)?;
            for one in armed.iter() {
                memory::program(registers, driver, one)?;
                driver.program(registers, one.counter, &plain(&one.selection))?;
                driver.write(registers, one.counter, 0)?;
            }
            Ok((Box::new(ControlBlock::of(driver)), driver.gate()))
        })?);
    }
    let ticks = match (item.is_scheduled(), &item.workload.tasks[..], &blocks[..]) {
        (false, [task], [(_, gate)]) => {
            machine.load_task(task, gate);
            machine.run_task(task, false)?
        }
        _ => {
            // No counter interrupts; the scheduler opens the block's gate.
            for (&cpu, (block, _)) in cpus.iter().zip(&blocks) {
                machine.deliver(cpu, block, Delivery::Fixed, None);
            }
            let ran = machine.run_tasks(item, None);
            for (&cpu, (block, _)) in cpus.iter().zip(&mut blocks) {
                machine.withdraw(cpu, block);
            }
            ran.map_err(Unmeasured::Refused)?.ticks
        }
    };
    let ([hz, _], emulated) = (machine.clocks(), machine.has_emulated_pmu());
    // The rate is that of all processors together, as is the period.
    let mut sums = alloc::vec![0_u64; armed.len()];
    for &cpu in &cpus {
        on(machine, cpu, |registers, driver| {
            driver.stop(registers)?;
            for (sum, one) in sums.iter_mut().zip(armed.iter()) {
                *sum = sum.saturating_add(driver.read(registers, one.counter)?);
            }
            Ok(())
        })?;
    }
    let has = machine.pmu().map_err(Unmeasured::Refused)?.driver.capabilities().clone();
    let mut chosen = Vec::with_capacity(armed.len());
    for ((mut one, rate), counted) in armed.drain(..).zip(rates).zip(sums) {
        one.period = match *rate {
            Rate::Period(period) => period,
            Rate::PerSecond(per_second) => {
                if counted == 0 {
                    let reason = "it did not occur in the run that looks for a period".to_string();
                    left_out.push(Uncounted { event: one.event, reason });
                    continue;
                }
                let period = period_for(counted, ticks, hz, per_second);
                if period < MIN_PERIOD {
                    one.remarks.push(format!(
                        "{per_second} samples a second would take a period of {period}; {MIN_PERIOD} is the shortest"
                    ));
                }
                let period = period.max(MIN_PERIOD);
                if one.ibs.is_some() { ibs::nearest(period) } else { period }
            }
        };
        if let (Rate::PerSecond(_), false, Some((_, limit))) = (*rate, emulated, limit(&has, &one))
        {
            one.period = limit.nearest(one.distance()) + u64::from(one.selection.precise);
        }
        chosen.push(one);
    }
    *armed = chosen;
    Ok(())
}

/// The period that makes `per_second` samples of an event that came `counted` times in `ticks` of a TSC of `hz`.
fn period_for(counted: u64, ticks: u64, hz: u64, per_second: u32) -> u64 {
    let events_a_second = u128::from(counted) * u128::from(hz) / u128::from(ticks.max(1));
    let period = events_a_second / u128::from(per_second.max(1));
    u64::try_from(period).unwrap_or(u64::MAX).max(1)
}

/// The same, counted alone.
fn plain(selection: &Selection) -> Selection {
    Selection { interrupt: false, precise: false, ..*selection }
}

/// Gives events that can be counted on any counter a second, free one; those with PEBS also one of `places`, the counters
/// that their event can be on.
fn witnesses(armed: &mut [Armed], has: &Capabilities, places: &[(Counter, u64)]) {
    if has.errata.iter().any(|row| row.effect == Effect::LostInterrupts) {
        // Another counter would lose interrupts; the report's errata say why there is no reference count.
        return;
    }
    let taken = |counter| {
        let auxiliary =
            |one: &Armed| one.auxiliary.is_some_and(|(auxiliary, _)| auxiliary == counter);
        armed.iter().any(|one| one.counter == counter || auxiliary(one))
    };
    let mut free: Vec<Counter> = has.generals().filter(|&counter| !taken(counter)).collect();
    for one in armed {
        if one.ibs.is_some() {
            // Its counter interrupts nobody, and is one itself.
            continue;
        }
        let plain = plain(&one.selection);
        if one.selection.precise {
            let place = places.iter().find(|(counter, _)| *counter == one.counter);
            let (plain, at) = match one.counter {
                Counter::Fixed(_) => match architectural(one.counter, &plain) {
                    Some(same) => (same, u64::MAX),
                    None => continue,
                },
                Counter::General(_) => (plain, place.map_or(0, |place| place.1)),
            };
            one.witness = precise::witness(&plain, at, &mut free);
            continue;
        }
        let selection = match (one.counter, has.is_intel()) {
            (Counter::Fixed(_), true) => match architectural(one.counter, &plain) {
                Some(same) => same,
                None => continue,
            },
            // Architectural: instructions, cycles, branches. AMD's PMCx0C0, 0C2, 076 are as free.
            (Counter::General(_), true) if matches!(plain.event, 0xc0 | 0x3c | 0xc4) => plain,
            (Counter::General(_), false) if matches!(plain.event, 0xc0 | 0xc2 | 0x76) => plain,
            _ => continue,
        };
        if selection.extra.is_none() && !free.is_empty() {
            one.witness = Some((free.remove(0), selection));
        }
    }
}

/// What counts on any counter as `plain` does on a fixed one: 0 and 1 count the architectural events 0xC0 and 0x3C (SDM vol. 3,
/// table 20-2).
pub(super) fn architectural(counter: Counter, plain: &Selection) -> Option<Selection> {
    let event = match counter {
        Counter::Fixed(0) => 0xc0,
        Counter::Fixed(1) => 0x3c,
        _ => return None,
    };
    Some(Selection { event, umask: 0, ..*plain })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m8_a_rate_becomes_the_period_that_makes_it() {
        // 10^9 events a second, 1,000 samples a second.
        assert_eq!(period_for(5_000, 10_000, 2_000_000_000, 1_000), 1_000_000);
        assert_eq!(period_for(1, u64::MAX, 1, u32::MAX), 1);
        assert_eq!(period_for(u64::MAX, 1, u64::MAX, 1), u64::MAX);
    }

    /// Linux, `hsw_limit_period` and `bdw_limit_period`: of what the counter is set to, which with PEBS is one event less.
    #[test]
    fn s1_periods_that_an_erratum_is_about_are_refused() {
        use arch::cpu::Identity;
        use arch::pmu::{errata, find};
        use pmu_model::{Host, Model, Pmu as Registers, Timing};
        let has = |model, number: Option<u32>| {
            let mut registers = Registers::new(model, Host::EXAMPLE, Timing::FLAT);
            let mut has = find(&mut registers).unwrap();
            let cpuid = |leaf: u32, sub: u32| arch::pmu::Registers::cpuid(&registers, leaf, sub);
            if let Some(number) = number {
                has.errata = errata::of(&Identity { model: number, ..Identity::read(&cpuid) });
            }
            has
        };
        let (retired, cycles) = (Selection::of(0xc0, 1), Selection::of(0x3c, 0));
        let check = |has: &Capabilities, selection: Selection, period| {
            let counter = Counter::General(1);
            let one = Armed {
                event: String::new(),
                counter,
                selection,
                period,
                witness: None,
                remarks: Vec::new(),
                ibs: None,
                auxiliary: None,
            };
            within_errata(has, &one)
        };
        let haswell = has(Model::Haswell, None);
        assert!(check(&haswell, retired, 127).unwrap_err().ends_with("at least 128"));
        assert_eq!(check(&haswell, retired, 128), Ok(()));
        assert!(
            check(&haswell, retired.with_records(), 128).unwrap_err().ends_with("at least 129")
        );
        assert_eq!(check(&haswell, retired.with_records(), 129), Ok(()));
        assert_eq!(check(&haswell, cycles, 20), Ok(()));
        assert_eq!(check(&has(Model::Skylake, None), retired, 20), Ok(()));
        // The lower six bits of what a Broadwell's counter is set to have to be 0.
        let broadwell = has(Model::Haswell, Some(0x3d));
        assert_eq!(check(&broadwell, retired.with_records(), 193), Ok(()));
        let refused = check(&broadwell, retired.with_records(), 192).unwrap_err();
        assert!(refused.ends_with("at least 129, in steps of 64"), "{refused}");
        assert_eq!(check(&broadwell, retired, 192), Ok(()));
    }

    /// A witness counts the same event, without interrupts; an event that only some counters have gets none.
    #[test]
    fn m12_a_witness_is_for_events_that_any_counter_counts() {
        use arch::pmu::find;
        use pmu_model::{Host, Model, Pmu as Registers, Timing};
        let (first, second) = (Counter::General(0), Counter::General(1));
        let witness = |model, counter, selection: Selection, precise| {
            let has = find(&mut Registers::new(model, Host::EXAMPLE, Timing::DEFAULT)).unwrap();
            let selection =
                if precise { selection.with_records() } else { selection.with_interrupt() };
            let mut armed = [Armed {
                event: "e".to_string(),
                counter,
                selection,
                period: 100,
                witness: None,
                remarks: Vec::new(),
                ibs: None,
                auxiliary: None,
            }];
            witnesses(&mut armed, &has, &[(counter, second.bit())]);
            armed[0].witness
        };
        let of = Selection::of;
        let (intel, amd) = (Model::Skylake, Model::Zen4);
        // Fixed counters by the architectural events' codes, whatever unit mask stands there (SDM vol. 3, table 20-2).
        assert_eq!(witness(intel, Counter::Fixed(0), of(0, 3), false), Some((first, of(0xc0, 0))));
        assert_eq!(witness(intel, Counter::Fixed(1), of(0, 3), false), Some((first, of(0x3c, 0))));
        assert_eq!(witness(intel, Counter::Fixed(2), of(0, 3), false), None);
        for event in [0xc0, 0x3c, 0xc4] {
            assert_eq!(witness(intel, first, of(event, 0), false), Some((second, of(event, 0))));
        }
        for event in [0xd0, 0xc2, 0x76] {
            assert_eq!(witness(intel, first, of(event, 1), false), None, "{event:#x}");
        }
        for event in [0xc0, 0xc2, 0x76] {
            assert_eq!(witness(amd, first, of(event, 0), false), Some((second, of(event, 0))));
        }
        for event in [0x3c, 0xc4, 0x29] {
            assert_eq!(witness(amd, first, of(event, 1), false), None, "{event:#x}");
        }
        // A register beside the event has one value for both.
        let extra = Selection { extra: Some((arch::msr::Msr(0x1a6), 1)), ..of(0xc0, 0) };
        assert_eq!(witness(intel, first, extra, false), None);
        // With records: instructions anywhere, other events where theirs can be counted.
        assert_eq!(witness(intel, first, of(0xc0, 1), true), Some((second, of(0xc0, 0))));
        assert_eq!(witness(intel, first, of(0xd0, 0x81), true), Some((second, of(0xd0, 0x81))));
        assert_eq!(witness(intel, second, of(0xd0, 0x81), true), None, "its one counter is taken");
        // From Ice Lake on fixed counters have records.
        let fixed = |n| witness(Model::IceLake, Counter::Fixed(n), of(0, 1), true);
        assert_eq!(fixed(0), Some((first, of(0xc0, 0))));
        assert_eq!((fixed(1), fixed(2)), (Some((first, of(0x3c, 0))), None));
    }
}
