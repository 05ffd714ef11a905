//! Running a snippet often enough to say what it costs.

use super::events::{Counted, Plan};
use super::retired;
use crate::energy::{self, Had, Meters};
use crate::statistics;
use crate::uncore;
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::Trap;
use arch::pmu::energy::{Interval, NoEnergy, Still};
use arch::pmu::pmi::Retired;
use arch::pmu::uncore::{NoUncore, Placed, Refusal, Uncore};
use protocol::job::{Difference, Snippet};
use protocol::program::ProgramKey;
use protocol::record::{Applied, Counting, Fault, Metric, Uncounted, Unit, Within};

/// A machine that can run emitted code. The firmware's is the real one; tests bring a made-up one. What has a default is
/// for machines that control nothing around the snippet.
pub trait Runner {
    /// Brings the machine into the state that the snippet requests, until the item is settled.
    ///
    /// # Errors
    /// Why it cannot be run at all. An option that is merely not available is not an error.
    fn control(&mut self, snippet: &Snippet) -> Result<Vec<Applied>, String> {
        let _ = snippet;
        Ok(Vec::new())
    }

    /// Finds counters for the snippet's events.
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan>;

    /// Gives the events of a pass their counters, and frees all others.
    ///
    /// # Errors
    /// Which of them cannot be programmed, and why.
    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)>;

    /// Emits `copies` copies of the snippet and makes them ready to run.
    fn load(&mut self, snippet: &Snippet, copies: u64);

    /// Emits the snippet's one-time init alone and makes it ready to run.
    fn load_once(&mut self, snippet: &Snippet);

    /// Runs what was loaded once, in a clean state, and returns the TSC ticks between its two readings.
    ///
    /// # Errors
    /// The exception that ended it.
    fn run(&mut self) -> Result<u64, Box<Trap>>;

    /// Where a run is nothing but the call of what was loaded, and a figure of the TSC: makes `warmup` runs and `runs` more, appends
    /// the ticks of the latter to `ticks`, and tells how far the item is. `None`: a run is more than that, and none was made.
    fn run_bare(
        &mut self,
        [warmup, runs]: [u64; 2],
        ticks: &mut Vec<u64>,
        within: &mut Within,
    ) -> Option<Result<(), Box<Trap>>> {
        let _ = (warmup, runs, ticks, within);
        None
    }

    /// What the last run counted of each event of the pass.
    fn counts(&self) -> &[u64];

    /// Gives the events of a pass of retire latencies their counters, each of which writes a record for so many events. They are not
    /// set back by runs; [`Self::counts`] says how far they have come since.
    ///
    /// # Errors
    /// Which of them cannot be programmed, and why.
    fn program_records(
        &mut self,
        pass: &[Counted],
        periods: &[u64],
    ) -> Result<(), (usize, String)> {
        let _ = (pass, periods);
        Err((0, retired::ELSEWHERE.to_string()))
    }

    /// What the records of the last run state, by event of the pass, and whether some found no room.
    fn retired(&self) -> (&[Retired], bool) {
        (&[], false)
    }

    /// Whether PERF_METRICS overflowed in a run since the pass was programmed.
    fn metrics_overflowed(&self) -> bool {
        false
    }

    /// Completes what `control` said, after the last run.
    ///
    /// # Errors
    /// Something was not in force after all, so that the figures are of something else.
    fn finish(&mut self, controls: &mut Vec<Applied>) -> Result<(), String> {
        let _ = controls;
        Ok(())
    }

    /// How far the model-specific registers that the snippet requests moved in the last run, as two's complement: they may fall.
    fn msrs(&self) -> &[u64] {
        &[]
    }

    /// The registers of energy, or why there are none.
    ///
    /// # Errors
    /// Why not.
    fn meters(&mut self) -> Meters<'_> {
        Err(NoEnergy::NotHere)
    }

    /// The counters of the uncore, or why there are none.
    ///
    /// # Errors
    /// Why not.
    fn uncore(&mut self) -> Result<Uncore, NoUncore> {
        Err(NoUncore::NotHere)
    }

    /// Gives these events of the uncore their counters in each package, and frees all others. Returns what counts: package by package,
    /// in each the round's events in their order.
    ///
    /// # Errors
    /// Which of them cannot be programmed, and why.
    fn program_uncore(
        &mut self,
        round: &[Placed],
    ) -> Result<Vec<uncore::Counter>, (usize, Refusal)> {
        let _ = round;
        Ok(Vec::new())
    }

    /// What is measured begins, if that is no run of a snippet: reads the counters of the uncore.
    fn begin_uncore(&mut self) {}

    /// What is measured has ended.
    fn end_uncore(&mut self) {}

    /// What each counter of the uncore has counted in the last run, or from [`Runner::begin_uncore`] to [`Runner::end_uncore`].
    fn uncore_counts(&self) -> &[u64] {
        &[]
    }

    /// Whether nothing ends the loaded snippet if it does not end itself, although something could.
    fn is_unwatched(&self) -> bool {
        false
    }

    /// Least number of runs that a code size needs before those that count: watching may take time.
    fn trial_runs(&self) -> u32 {
        0
    }

    /// Tells how far the item is. Called often; most calls come too early and do nothing.
    fn beat(&mut self, within: Within) {
        let _ = within;
    }

    /// The program that the loaded snippet calls.
    fn called(&self) -> Option<ProgramKey> {
        None
    }

    /// System management interrupts during runs that count, since the last call.
    fn take_smis(&mut self) -> u32 {
        0
    }

    /// Runs that were made again because of such an interrupt, since the last call: they count nothing, but took energy.
    fn take_smi_repeats(&mut self) -> u32 {
        0
    }

    /// Explains a trap of the loaded snippet.
    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault;
}

/// Why a field of PERF_METRICS has no figure.
pub(crate) const METRICS_OVERFLOWED: &str = "PERF_METRICS overflowed in a run (IA32_PERF_GLOBAL_STATUS[48]), so its shares are of \
    unknown slots; shorter runs have them";

/// What is loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The one-time init.
    Once,
    /// Init and body.
    Measured,
}

/// Executions of the body that the two code sizes differ in.
#[must_use]
pub fn executions(snippet: &Snippet) -> u64 {
    u64::from(snippet.unroll) * snippet.loop_count.max(1)
}

/// Why a snippet was not measured.
#[derive(Debug)]
pub enum Unmeasured {
    /// It raised an exception.
    Fault(Box<Fault>),
    /// It cannot be run so, for this reason.
    Refused(String),
    /// It did not end within its limit of steps.
    TooLong(String),
}

/// What measuring a snippet gave.
#[derive(Debug)]
pub struct Measured {
    /// The time stamp counter, then each event that was counted, in the job's order.
    pub metrics: Vec<Metric>,
    /// Events that were not counted.
    pub uncounted: Vec<Uncounted>,
    /// Ticks that finding counters took.
    pub planning: u64,
    /// Options of the machine.
    pub controls: Vec<Applied>,
    /// Passes that nothing would have ended, although something could.
    pub unwatched: u32,
    /// System management interrupts.
    pub smis: u32,
}

/// Measures `snippet` by the time stamp counter, and by a counter for each of its events, in as many passes as these
/// take. The TSC's figures are those of the first pass.
///
/// # Errors
/// The exception that the snippet raised.
pub fn measure(runner: &mut impl Runner, snippet: &Snippet) -> Result<Measured, Unmeasured> {
    let mut controls = runner.control(snippet).map_err(Unmeasured::Refused)?;
    let plan = runner.prepare(snippet);
    let (mut unwatched, mut smis) = (0, 0);
    let mut uncounted = plan.uncounted.clone();
    let energy = energy::had(&plan.energy, runner.meters(), &mut uncounted);
    let mut rounds = uncore::rounds(&plan.uncore, || runner.uncore(), &mut uncounted);
    let mut numbered = Vec::new();
    let nothing = [Vec::new()];
    run_once(runner, snippet)?;
    let passes = if plan.passes.is_empty() { &nothing[..] } else { &plan.passes };
    let runs = u64::from(snippet.warmup) + u64::from(snippet.runs);
    let (records, plain): (Vec<_>, Vec<_>) =
        passes.iter().partition(|pass| pass.iter().any(|one| one.retired.is_some()));
    let count = plain.len().max(rounds.len());
    let total = (count + records.len()) as u64 * 2 * runs + u64::from(snippet.setup.initial_warmup);
    let mut within = Within { unit: Unit::Runs, done: 0, total };
    for index in 0..count {
        let pass = plain.get(index).map_or(&[][..], |pass| pass);
        let counted = programmed(runner, pass, &mut uncounted);
        let apart = uncore::programmed(runner, &mut rounds, index, &mut uncounted);
        if index > 0 && counted.is_empty() && apart.is_empty() {
            continue;
        }
        let warmup = if index == 0 { snippet.setup.initial_warmup } else { 0 };
        unwatched += u32::from(runner.is_unwatched());
        let metered = if index == 0 { &energy[..] } else { &[] };
        let (metrics, came, metered_runs) =
            one_pass(runner, snippet, (&counted, &apart), metered, warmup, &mut within)
                .map_err(Unmeasured::Fault)?;
        smis += came;
        // The registers come last, in the first pass alone; a group of events has several numbers.
        let registers = if index == 0 { snippet.setup.control.msrs.len() } else { 0 };
        let lost = runner.metrics_overflowed();
        let is_lost = |number: usize| {
            let on_metrics = |one: &Counted| one.metric.is_some() && number == 1 + one.number;
            lost && counted.iter().any(on_metrics)
        };
        let order = core::iter::once(0)
            .chain(counted.iter().map(|one| 1 + one.number))
            .chain(core::iter::repeat_n(usize::MAX, apart.len() + registers));
        for (number, metric) in order.zip(metrics).skip(usize::from(index > 0)) {
            match is_lost(number) {
                true => {
                    let reason = METRICS_OVERFLOWED.to_string();
                    uncounted.push(Uncounted { event: metric.event, reason });
                }
                false => numbered.push((number, metric)),
            }
        }
        let per = executions(snippet);
        let used = energy::metrics(metered, runner.meters(), metered_runs, per, &mut uncounted);
        numbered.extend(used.into_iter().map(|metric| (usize::MAX, metric)));
    }
    for pass in records {
        let made = retired::one_pass(runner, snippet, pass, &mut uncounted, &mut within);
        let made = made.map_err(Unmeasured::Fault)?;
        smis += made.smis;
        unwatched += u32::from(made.unwatched);
        numbered.extend(made.figures);
    }
    numbered.sort_by_key(|&(number, _)| number);
    let metrics = numbered.into_iter().map(|(_, metric)| metric).collect();
    runner.finish(&mut controls).map_err(Unmeasured::Refused)?;
    Ok(Measured { metrics, uncounted, planning: plan.ticks, controls, unwatched, smis })
}

/// Runs the one-time init, if there is one.
///
/// # Errors
/// The exception that it raised.
pub(crate) fn run_once(runner: &mut impl Runner, snippet: &Snippet) -> Result<(), Unmeasured> {
    if snippet.setup.one_time_init.is_empty() {
        return Ok(());
    }
    // Nothing is counted, but the watchdog has its counter.
    let _ = runner.program(&[]);
    runner.load_once(snippet);
    let ended = runner.run();
    ended.map(|_| ()).map_err(|trap| Unmeasured::Fault(Box::new(runner.explain(&trap, snippet))))
}

/// Programs what can be programmed of a pass, and returns that.
fn programmed(
    runner: &mut impl Runner,
    pass: &[Counted],
    uncounted: &mut Vec<Uncounted>,
) -> Vec<Counted> {
    let mut counted = pass.to_vec();
    while let Err((index, reason)) = runner.program(&counted) {
        // Without any event left nothing is programmed; then the trouble is not an event's.
        if index >= counted.len() {
            break;
        }
        uncounted.push(Uncounted { event: counted.remove(index).event, reason });
    }
    counted
}

/// All runs of a code size that count.
struct Runs {
    /// The TSC's values, then those of each event.
    values: Vec<Vec<u64>>,
    /// System management interrupts.
    smis: u32,
    /// Energy.
    used: Metered,
}

/// Energy in all runs of a code size, if any was requested, and how many runs took it.
type Metered = (Option<Result<Interval, Still>>, u32);

/// The TSC's metric, then those of the events; the system management interrupts of the runs that count; and what was `metered` of
/// each code size. `warmup`: runs before the first warm-up.
fn one_pass(
    runner: &mut impl Runner,
    snippet: &Snippet,
    (counted, apart): (&[Counted], &[(String, Counting)]),
    metered: &[Had],
    warmup: u32,
    within: &mut Within,
) -> Result<(Vec<Metric>, u32, [Metered; 2]), Box<Fault>> {
    let [small, large] = sizes(snippet);
    let first = warmup + snippet.warmup;
    let asked = ([counted.len(), apart.len()], metered);
    let small = runs(runner, snippet, [small, first.into()], asked, within)?;
    let large = runs(runner, snippet, [large, snippet.warmup.into()], asked, within)?;
    let smis = small.smis + large.smis;
    let used = [small.used, large.used];
    let (small, large) = (small.values, large.values);
    let names = core::iter::once(("tsc".to_string(), None))
        .chain(counted.iter().map(|one| (one.event.clone(), Some(one.counting.clone()))))
        .chain(apart.iter().map(|(event, counting)| (event.clone(), Some(counting.clone()))))
        .chain(snippet.setup.control.msrs.iter().map(|msr| (msr.name.to_string(), None)));
    let metrics = names.zip(small.iter().zip(&large)).map(|((event, counting), (small, large))| {
        let series = [small, large].map(|values| statistics::series(values, snippet.values));
        Metric {
            event,
            value: statistics::difference(small, large, executions(snippet)),
            deterministic: series.iter().all(|s| s.distinct == 1),
            series,
            counting,
            energy: None,
            retired: None,
        }
    });
    Ok((metrics.collect(), smis, used))
}

/// Copies of both code sizes.
pub(super) fn sizes(snippet: &Snippet) -> [u64; 2] {
    let unroll = u64::from(snippet.unroll);
    match snippet.difference {
        Difference::Double => [unroll, 2 * unroll],
        Difference::Empty => [0, unroll],
    }
}

/// All runs of one code size, the `warmup` first ones left out: the TSC's values, then those of each event; the system
/// management interrupts that came, and what was metered.
fn runs(
    runner: &mut impl Runner,
    snippet: &Snippet,
    [copies, warmup]: [u64; 2],
    ([events, apart], metered): ([usize; 2], &[Had]),
    within: &mut Within,
) -> Result<Runs, Box<Fault>> {
    runner.load(snippet, copies);
    let warmup = warmup.max(runner.trial_runs().into());
    let registers = snippet.setup.control.msrs.len();
    let others = events + apart + registers;
    // The room that they take, so that nothing is moved to a larger piece of memory between two runs.
    let mut values: Vec<Vec<u64>> =
        (0..=others).map(|_| Vec::with_capacity(snippet.runs as usize)).collect();
    runner.take_smis();
    if others == 0
        && metered.is_empty()
        && let Some(ended) = runner.run_bare([warmup, snippet.runs.into()], &mut values[0], within)
    {
        ended.map_err(|trap| Box::new(runner.explain(&trap, snippet)))?;
        return Ok(Runs { values, smis: runner.take_smis(), used: (None, 0) });
    }
    let mut used = None;
    for run in 0..warmup + u64::from(snippet.runs) {
        if run == warmup {
            // Those of the warm-up change no figure.
            runner.take_smis();
            runner.take_smi_repeats();
            used = energy::begin(metered, runner.meters());
        }
        let ticks = runner.run().map_err(|trap| Box::new(runner.explain(&trap, snippet)))?;
        within.done += 1;
        runner.beat(*within);
        if let Some(Ok(used)) = &mut used
            && let Ok(source) = runner.meters()
        {
            used.keep(source);
        }
        if run >= warmup {
            values[0].push(ticks);
            if others == 0 {
                continue;
            }
            let of_uncore = runner.uncore_counts().iter().take(apart);
            let others = runner.counts().iter().take(events).chain(of_uncore).chain(runner.msrs());
            for (values, &count) in values[1..].iter_mut().zip(others) {
                values.push(count);
            }
        }
    }
    if let Some(Ok(used)) = &mut used
        && let Ok(source) = runner.meters()
    {
        used.end(source);
    }
    let made = snippet.runs.saturating_add(runner.take_smi_repeats());
    Ok(Runs { values, smis: runner.take_smis(), used: (used, made) })
}

#[cfg(test)]
pub(crate) mod tests;
