//! Every overflow accounted for.

use super::{Armed, Session, ibs, precise};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::pmi::{ControlBlock, TIMER_SLOT};
use arch::pmu::{Driver, PmuError, Registers};
use protocol::record::SampledCount;

/// What became of the overflows of each event; the timer's come after them, if its interval is given, in nanoseconds, and what is
/// only counted comes last.
///
/// # Errors
/// A counter cannot be read.
pub fn account(
    registers: &mut dyn Registers,
    driver: &Driver,
    session: &Session,
    block: &ControlBlock,
    timer_ns: Option<u64>,
) -> Result<Vec<SampledCount>, PmuError> {
    let slots = session.events.iter().map(|one| one.counter.index());
    let slots: Vec<usize> = slots.chain(timer_ns.map(|_| TIMER_SLOT)).collect();
    let samples = samples(session, block, &slots);
    let mut counts = Vec::with_capacity(slots.len());
    for (one, (&index, &samples)) in session.events.iter().zip(slots.iter().zip(&samples)) {
        counts.push(event(registers, driver, one, block, index, samples)?);
    }
    if let Some(doubt) = session.besides.doubt(registers, driver)? {
        counts.iter_mut().for_each(|count| count.remarks.push(doubt.clone()));
    }
    if let Some(ns) = timer_ns {
        counts.push(count(block, TIMER_SLOT, "timer".to_string(), ns, samples.last()));
    }
    counts.extend(session.besides.shares.counts(registers, driver)?);
    Ok(counts)
}

/// The same of a timer alone, where there is no PMU.
#[must_use]
pub fn timer_alone(
    session: &Session,
    block: &ControlBlock,
    timer_ns: Option<u64>,
) -> Vec<SampledCount> {
    let samples = samples(session, block, &[TIMER_SLOT]);
    let one = |ns: u64| count(block, TIMER_SLOT, "timer".to_string(), ns, samples.last());
    timer_ns.map(one).into_iter().collect()
}

/// How many samples of each of these slots were kept.
fn samples(session: &Session, block: &ControlBlock, slots: &[usize]) -> Vec<u64> {
    let mut kept = vec![0; slots.len()];
    let place = |bit: usize| slots.iter().position(|&slot| slot == bit);
    if let Some(histogram) = block.histogram() {
        for bucket in histogram.used() {
            if let Some(place) = place(bucket.bit.into()) {
                kept[place] += bucket.count;
            }
        }
    }
    for sample in session.samples(block) {
        for (kept, &slot) in kept.iter_mut().zip(slots) {
            *kept += sample.status >> slot & 1;
        }
    }
    kept
}

fn count(
    block: &ControlBlock,
    index: usize,
    event: String,
    period: u64,
    samples: Option<&u64>,
) -> SampledCount {
    let (slot, samples) = (block.slot(index), samples.copied().unwrap_or(0));
    let dropped = match block.histogram() {
        // The table has one count of what found no place, for all events.
        Some(_) => slot.overflows.saturating_sub(samples),
        None => slot.dropped,
    };
    SampledCount {
        event,
        counter: None,
        period,
        overflows: slot.overflows,
        samples,
        dropped,
        throttled: slot.throttled,
        last_period: (slot.level > 0).then(|| period << slot.level),
        rest: 0,
        witness: None,
        remarks: Vec::new(),
        skid: None,
        lost: 0,
        filtered: 0,
        ended: None,
        qualified: None,
        retire_latency: None,
    }
}

fn event(
    registers: &mut dyn Registers,
    driver: &Driver,
    one: &Armed,
    block: &ControlBlock,
    index: usize,
    samples: u64,
) -> Result<SampledCount, PmuError> {
    let value = driver.read(registers, one.counter)?;
    if let (Some(ibs_event), Some(sampling)) = (one.ibs, block.sampling()) {
        let counted = count(block, index, one.event.clone(), one.period, Some(&samples));
        return Ok(SampledCount {
            counter: Some(ibs::counter(ibs_event)),
            overflows: counted.overflows + sampling.invalid,
            rest: sampling.rest(),
            witness: Some(value),
            remarks: one.remarks.clone(),
            skid: Some(ibs::skid(ibs_event)),
            lost: sampling.invalid,
            filtered: sampling.filtered,
            ended: sampling.ended(),
            ..counted
        });
    }
    // The period that runs now began as long before the counter's end as it is long.
    let began = (one.distance() << block.slot(index).running()).wrapping_neg();
    let since = value.wrapping_sub(began) & driver.capabilities().mask(one.counter);
    // What no overflow had its share of: whole periods of it had no overflow of their own.
    let owed = block.owed(one.counter);
    let late = owed / one.period.max(1);
    let rest = since + owed % one.period.max(1);
    let witness = match one.witness {
        Some((witness, _)) => Some(driver.read(registers, witness)?),
        None => None,
    };
    let mut counted = count(block, index, one.event.clone(), one.period, Some(&samples));
    counted.throttled += late;
    let mut remarks = one.remarks.clone();
    remarks.extend((late > 0).then(|| {
        format!(
            "events between overflows and their interrupts came to {late} periods: they are among the throttled ones"
        )
    }));
    let lost = precise::lost(one, block, rest, witness).unwrap_or_else(|remark| {
        remarks.push(remark);
        0
    });
    let sum =
        (counted.overflows + counted.throttled).saturating_mul(one.period).saturating_add(rest);
    // One period more than the current one: an overflow at the very end may still wait.
    let period = one.distance() << block.slot(index).running();
    if !one.selection.precise && since / 2 >= period {
        remarks.push(format!(
            "{since} events came since its last interrupt, of a period of {period}: interrupts were lost"
        ));
    }
    if let Some((beside, _)) = one.witness.filter(|_| !one.selection.precise) {
        let witness = witness.unwrap_or(0);
        remarks.extend(mismatch(sum, witness, block).then(|| {
            format!("its periods and the rest come to {sum} events, where {beside} beside it counted {witness}")
        }));
    }
    let format = driver.capabilities().pebs_format().filter(|_| one.selection.precise);
    Ok(SampledCount {
        counter: Some(one.counter.to_string()),
        overflows: counted.overflows + lost,
        rest,
        witness,
        remarks,
        skid: format.map(precise::skid),
        lost,
        retire_latency: format.and_then(|_| precise::retired(index, block)),
        ..counted
    })
}

/// Whether the sum of an event's periods is further from what a counter without interrupts counted than the interrupts
/// explain. Handlers that are counted in full explain anything.
fn mismatch(sum: u64, witness: u64, block: &ControlBlock) -> bool {
    let seen = block.handling().seen();
    seen.is_some_and(|seen| sum.abs_diff(witness) > explained(seen, block.pmis, witness))
}

/// What so many interrupts explain: by what each lets counters see of its handler, and what a processor retires between an
/// overflow and its interrupt, which in all is no more than a 64th of what was counted.
fn explained(seen: u64, interrupts: u64, witness: u64) -> u64 {
    /// Events of an interrupt that comes late.
    const SKID: u64 = 32;
    /// Events of the two ends.
    const ENDS: u64 = 64;
    let late = SKID.saturating_mul(interrupts).min(witness / 64);
    seen.saturating_mul(interrupts).saturating_add(late).saturating_add(ENDS)
}

/// Whether every overflow is a sample or was dropped.
///
/// # Errors
/// Which are not, in words.
pub fn check(counts: &[SampledCount], block: &ControlBlock) -> Result<(), String> {
    for one in counts {
        if one.samples + one.dropped + one.lost != one.overflows {
            return Err(format!(
                "{}: {} overflows, but {} samples, {} dropped and {} lost",
                one.event, one.overflows, one.samples, one.dropped, one.lost
            ));
        }
    }
    let elsewhere = block.histogram().map(|histogram| histogram.elsewhere);
    let dropped: u64 = counts.iter().map(|one| one.dropped).sum();
    match elsewhere {
        Some(elsewhere) if elsewhere != dropped => Err(format!(
            "{dropped} overflows are not in the histogram, which found no place for {elsewhere}"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arch::pmu::find;
    use arch::pmu::pmi::Bucket;
    use pmu_model::{Host, Model, Pmu, Timing};

    #[test]
    fn m12_interrupts_explain_what_counters_see_of_them() {
        // The two ends alone.
        assert_eq!(explained(6, 0, 1_000_000), 64);
        // 6 of each handler, and 32 of each that is late.
        assert_eq!(explained(6, 10, 1_000_000), 64 + 60 + 320);
        // Where few events were counted, interrupts that are late explain a 64th of them.
        assert_eq!(explained(6, 10, 6_400), 64 + 60 + 100);
        assert_eq!(explained(0, 10, 63), 64);
        assert_eq!(explained(u64::MAX, 2, u64::MAX), u64::MAX);
    }

    /// A sum may be as far from its witness as the interrupts explain, and no further; where handlers are counted in full,
    /// anything is explained.
    #[test]
    fn m12_a_sum_differs_from_its_witness_where_nothing_explains_it() {
        let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::DEFAULT);
        let mut driver = Driver::new(find(&mut pmu).unwrap());
        let first = arch::pmu::Counter::General(0);
        driver.program(&mut pmu, first, &arch::pmu::Selection::of(0xc0, 0)).unwrap();
        let mut block = ControlBlock::of(&driver);
        assert!(!mismatch(0, 1_000_000, &block), "counters go on");
        block.stop_in_handler(&driver).unwrap();
        // No interrupt: the two ends alone.
        for (sum, differs) in
            [(1_000_064, false), (1_000_065, true), (999_936, false), (999_935, true)]
        {
            assert_eq!(mismatch(sum, 1_000_000, &block), differs, "{sum}");
        }
    }

    fn counted([overflows, samples, dropped, lost]: [u64; 4]) -> SampledCount {
        SampledCount {
            event: "e".to_string(),
            counter: None,
            period: 1,
            overflows,
            samples,
            dropped,
            throttled: 0,
            last_period: None,
            rest: 0,
            witness: None,
            remarks: vec![],
            skid: None,
            lost,
            filtered: 0,
            ended: None,
            qualified: None,
            retire_latency: None,
        }
    }

    #[test]
    fn m12_every_overflow_is_a_sample_or_dropped_or_lost() {
        let mut pmu = Pmu::new(Model::Skylake, Host::EXAMPLE, Timing::DEFAULT);
        let driver = Driver::new(find(&mut pmu).unwrap());
        let mut block = ControlBlock::of(&driver);
        assert_eq!(check(&[counted([6, 3, 2, 1]), counted([0; 4])], &block), Ok(()));
        for wrong in [[5, 3, 2, 1], [7, 3, 2, 1], [4, 3, 2, 1], [2, 3, 2, 1]] {
            let said = check(&[counted([1, 1, 0, 0]), counted(wrong)], &block).unwrap_err();
            assert!(
                said.starts_with(&format!("e: {} overflows, but 3 samples", wrong[0])),
                "{said}"
            );
        }
        // The histogram has its own count of what found no place: here none.
        let mut buckets = [Bucket::default(); 2];
        block.count_addresses(&mut buckets);
        assert_eq!(check(&[counted([3, 3, 0, 0])], &block), Ok(()));
        let said = check(&[counted([5, 3, 2, 0])], &block).unwrap_err();
        assert_eq!(said, "2 overflows are not in the histogram, which found no place for 0");
    }
}
