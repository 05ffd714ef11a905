//! Retire latencies of a snippet's events: core cycles from the retirement before to that of the event's own instruction, as PEBS
//! records state them. What they come to is their mean.
//!
//! A record takes the processor time, so these events have passes of their own, and the figures of others are not disturbed. A first
//! run tells how often the events occur, and so how many of them a record is to stand for. What the records of the larger code size
//! have more than those of the smaller is the body's, as with counts.

mod records;

pub use records::Records;

use super::events::Counted;
use super::measure::{Runner, sizes};
use crate::statistics;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::pmu::pmi::Retired;
use events::set::EventSet;
use protocol::job::Snippet;
use protocol::record::{Aggregates, Fault, Metric, RetiredRecords, Uncounted, Within};

/// Why nothing else than a snippet has them.
pub const ELSEWHERE: &str = "the retire latency is sampled in a [[snippet]] on the boot processor; [[sample]] with precise = true \
    states it for each event";
/// Why samples have none as an event.
pub(super) const IN_SAMPLES: &str = "with precise = true every sample has its retire latency, where records state it: leave retire_latency out";
/// Why it is not in braces with counts.
const WITH_COUNTS: &str = "a retire latency is sampled in a pass of its own, so it is not together with counts: put it outside the braces";

/// Records of all runs of the larger code size that are aimed at.
const WANTED: u64 = 256;
/// The least period that is chosen: odd, so that a body with two events is not sampled at one of them only.
const LEAST: u64 = 3;
/// The period of the first run: no record. That of architectural PEBS has 32 bits.
const FAR: u64 = 1 << 31;

/// Takes what is sampled for its retire latency out of a set, into one of its own.
pub(super) fn apart(set: &mut EventSet, refused: &mut Vec<Uncounted>) -> EventSet {
    let mut records = EventSet::default();
    let is_latency = |set: &EventSet, number: usize| set.requests[number].retire_latency.is_some();
    let items = core::mem::take(&mut set.items);
    let (own, others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| item.iter().any(|&number| is_latency(set, number)));
    set.items = others;
    for item in own {
        if !item.iter().all(|&number| is_latency(set, number)) {
            refused.extend(item.iter().map(|&number| Uncounted {
                event: set.requests[number].text.clone(),
                reason: WITH_COUNTS.into(),
            }));
            continue;
        }
        records.items.push(item);
    }
    if !records.items.is_empty() {
        // The numbers are those of the list.
        records.requests = set.requests.clone();
    }
    records
}

/// Events from one record to the next, where so many occur in each of so many runs: a prime, as bodies are of any length.
fn period(events: u64, runs: u32) -> u64 {
    let least = (events.saturating_mul(runs.into()) / WANTED).clamp(LEAST, FAR);
    (least..).find(|&number| is_prime(number)).unwrap_or(LEAST)
}

fn is_prime(number: u64) -> bool {
    (2..).take_while(|part| part * part <= number).all(|part| !number.is_multiple_of(part))
}

/// What the records of all runs of one code size state of an event.
#[derive(Clone, Default)]
struct Sum {
    all: Retired,
    /// The cycles of each run.
    runs: Vec<u64>,
}

/// What a pass makes.
#[derive(Default)]
pub(super) struct Made {
    /// Figures, by the numbers of their events, from 1.
    pub(super) figures: Vec<(usize, Metric)>,
    /// System management interrupts.
    pub(super) smis: u32,
    /// Nothing would have ended it, although something could.
    pub(super) unwatched: bool,
}

/// Measures a pass, and gives the counters back.
///
/// # Errors
/// The exception that the snippet raised.
pub(super) fn one_pass(
    runner: &mut impl Runner,
    snippet: &Snippet,
    pass: &[Counted],
    uncounted: &mut Vec<Uncounted>,
    within: &mut Within,
) -> Result<Made, Box<Fault>> {
    let made = sampled(runner, snippet, pass, uncounted, within);
    // The processor has the buffer no longer.
    let _ = runner.program(&[]);
    made
}

fn sampled(
    runner: &mut impl Runner,
    snippet: &Snippet,
    pass: &[Counted],
    uncounted: &mut Vec<Uncounted>,
    within: &mut Within,
) -> Result<Made, Box<Fault>> {
    let [small, large] = sizes(snippet);
    let counted = programmed(runner, pass.to_vec(), |_| FAR, uncounted);
    if counted.is_empty() {
        return Ok(Made::default());
    }
    let unwatched = runner.is_unwatched();
    runner.load(snippet, large);
    runner.run().map_err(|trap| Box::new(runner.explain(&trap, snippet)))?;
    let events: Vec<(usize, u64)> =
        counted.iter().map(|one| one.number).zip(runner.counts().iter().copied()).collect();
    let in_a_run = |one: &Counted| {
        let found = events.iter().find(|(number, _)| *number == one.number);
        found.map_or(0, |(_, events)| *events)
    };
    let period_of = |one: &Counted| match one.retired {
        Some(0) | None => period(in_a_run(one), snippet.runs),
        Some(period) => period,
    };
    let counted = programmed(runner, counted, period_of, uncounted);
    let (mut smis, mut full) = (0, false);
    let mut sums = [vec_of(counted.len()), vec_of(counted.len())];
    for (copies, sums) in [small, large].into_iter().zip(&mut sums) {
        runner.load(snippet, copies);
        runner.take_smis();
        for run in 0..u64::from(snippet.warmup) + u64::from(snippet.runs) {
            if run == u64::from(snippet.warmup) {
                runner.take_smis();
            }
            runner.run().map_err(|trap| Box::new(runner.explain(&trap, snippet)))?;
            within.done += 1;
            runner.beat(*within);
            if run < u64::from(snippet.warmup) {
                continue;
            }
            let (states, lost) = runner.retired();
            full |= lost;
            for (sum, state) in sums.iter_mut().zip(states) {
                sum.all.records += state.records;
                sum.all.cycles += state.cycles;
                sum.all.longest = sum.all.longest.max(state.longest);
                sum.runs.push(state.cycles);
            }
        }
        smis += runner.take_smis();
    }
    let [small, large] = sums;
    let mut figures = Vec::new();
    for (one, (small, large)) in counted.iter().zip(small.iter().zip(&large)) {
        match metric(one, [small, large], period_of(one), snippet.values) {
            Ok(metric) => figures.push((1 + one.number, with_doubt(metric, full))),
            Err((records, period)) => {
                let reason = no_mean(records, period, in_a_run(one));
                uncounted.push(Uncounted { event: one.event.clone(), reason });
            }
        }
    }
    Ok(Made { figures, smis, unwatched })
}

fn vec_of(count: usize) -> Vec<Sum> {
    alloc::vec![Sum::default(); count]
}

/// Programs what can be programmed of a pass, and returns that.
fn programmed(
    runner: &mut impl Runner,
    mut counted: Vec<Counted>,
    period: impl Fn(&Counted) -> u64,
    uncounted: &mut Vec<Uncounted>,
) -> Vec<Counted> {
    while !counted.is_empty() {
        let periods: Vec<u64> = counted.iter().map(&period).collect();
        let Err((index, reason)) = runner.program_records(&counted, &periods) else { break };
        let one = counted.remove(index.min(counted.len() - 1));
        uncounted.push(Uncounted { event: one.event, reason });
    }
    counted
}

/// The figure, or how many records both code sizes have, and their period.
fn metric(
    one: &Counted,
    [small, large]: [&Sum; 2],
    period: u64,
    list: bool,
) -> Result<Metric, ([u64; 2], u64)> {
    let records = [small.all.records, large.all.records];
    let cycles = [small.all.cycles, large.all.cycles];
    let own = records[1].checked_sub(records[0]).filter(|&own| own > 0);
    let own = own.ok_or((records, period))?;
    let mean = (cycles[1] as f64 - cycles[0] as f64) / own as f64;
    let series = [small, large].map(|sum| statistics::series(&sum.runs, list));
    Ok(Metric {
        event: one.event.clone(),
        value: Aggregates { min: mean, median: mean, mean, max: mean },
        deterministic: series.iter().all(|one| one.distinct == 1),
        series,
        counting: Some(one.counting.clone()),
        energy: None,
        retired: Some(RetiredRecords { records, cycles, longest: large.all.longest, period }),
    })
}

fn with_doubt(mut metric: Metric, full: bool) -> Metric {
    if let Some(counting) = metric.counting.as_mut().filter(|_| full) {
        let text = "the buffer of records was full, so some are missing: a longer period (retire_latency=N) has them all";
        counting.remarks.push(text.into());
    }
    metric
}

/// Why there is no mean.
fn no_mean([small, large]: [u64; 2], period: u64, events: u64) -> String {
    if events == 0 {
        return "it did not occur, so no record states a retire latency".into();
    }
    format!(
        "no record of the body states a retire latency: of one for {period} events the larger code wrote {large}, and the smaller {small}; \
         in a run of the larger {events} occur: raise runs, unroll or loop"
    )
}

#[cfg(test)]
mod tests;
