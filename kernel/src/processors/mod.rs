//! One snippet on several processors at the same time: each one's counts, their sum, and how far "the same time" was
//! from being that.
//!
//! A [`ProcessorSet`] is the processors; the first of them leads: the ordinary measurement ([`measure`](mod@crate::snippet::measure)) runs on
//! it, and each of its runs is one of all processors. What the others did meanwhile is noted, and the same measurement
//! is then made once more for each of them out of the notes ([`replay`]). So their figures mean the same.

pub mod agreement;
pub mod contention;
pub mod kind;
pub mod replay;
#[cfg(test)]
mod tests;

use crate::energy::Meters;
use crate::snippet::events::{Counted, Plan};
use crate::snippet::measure::{Unmeasured, executions, measure};
use crate::uncore::Counter;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::call::Trap;
use arch::pmu::Capabilities;
use arch::pmu::energy::NoEnergy;
use arch::pmu::uncore::{NoUncore, Placed, Refusal, Uncore};
use arch::smp::{Offset, skew};
use protocol::core_kind::CoreKind;
use protocol::job::{Processors, Snippet};
use protocol::record::{
    ContentionRounds, Fault, Interrupts, Metric, ProcessorResult, ProcessorsResult, Skew, Snapshot,
    Sum, Uncounted, Verdict, Within,
};
use replay::{Recorder, Replay};

/// A processor that takes part.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its number.
    pub number: u32,
    /// Its local APIC's id.
    pub apic_id: u32,
    /// The kind of its core, if it tells.
    pub core: Option<CoreKind>,
    /// Its PMU, or why it has none.
    pub pmu: Result<Capabilities, String>,
    /// Its TSC against the boot processor's.
    pub offset: Offset,
}

/// Where the processor of that number is among those in use: one that did not come has a number and no place.
#[must_use]
pub fn place_of(members: &[Member], number: u32) -> Option<usize> {
    members.iter().position(|member| member.number == number)
}

/// What a processor did in one run.
#[derive(Debug)]
pub struct Ran {
    /// TSC at the beginning of what is measured, in the boot processor's time.
    pub start: u64,
    /// Ticks that it took, or the exception that ended it.
    pub ended: Result<u64, Box<Trap>>,
    /// Counts of the pass's events; none on a processor without PMU.
    pub counts: Vec<u64>,
    /// As [`Runner::metrics_overflowed`](crate::snippet::measure::Runner::metrics_overflowed).
    pub metrics_overflowed: bool,
}

/// What was read at one instant.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SnapshotCounts {
    /// The instant that was named.
    pub deadline: u64,
    /// By member: its time, in the boot processor's.
    pub tsc: Vec<u64>,
    /// By member: the counters of the programmed pass.
    pub counts: Vec<Vec<u64>>,
}

/// The processors that a snippet runs on. All lists are in the order of the members.
pub trait ProcessorSet {
    /// The members, the leading one first.
    fn members(&self) -> &[Member];
    /// Finds counters for the snippet's events.
    fn prepare(&mut self, snippet: &Snippet) -> Rc<Plan>;
    /// Programs a pass on every member that has a PMU.
    ///
    /// # Errors
    /// Which event cannot be programmed on one of them, and why.
    fn program(&mut self, pass: &[Counted]) -> Result<(), (usize, String)>;
    /// As for [`Runner`](crate::snippet::Runner).
    fn load(&mut self, snippet: &Snippet, copies: u64);
    /// As for [`Runner`](crate::snippet::Runner).
    fn load_once(&mut self, snippet: &Snippet);
    /// Runs what was loaded on every member, begun at one instant.
    fn run(&mut self) -> Vec<Ran>;
    /// Whether [`ProcessorSet::run`] runs them one after the other instead, because one's counters would count the others as well.
    fn in_turn(&self) -> bool;
    /// Lets what is programmed count on every member from 0, and reads all at one instant.
    fn snapshot(&mut self) -> SnapshotCounts;
    /// Runs a loop on each member that has a PMU, with an interrupt at every `period` instructions.
    ///
    /// # Errors
    /// Which processor cannot do that, and why.
    fn interrupts(&mut self, period: u64) -> Result<Vec<Option<Interrupts>>, (u32, String)>;
    /// Has all members do the same things at once, so many times: [`contention::Together`].
    ///
    /// # Errors
    /// The place of a member whose counter cannot be used, and why.
    fn contend(&mut self, rounds: u32) -> Result<contention::Together, (usize, String)>;
    /// The registers of energy of the members' packages, or why there are none.
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
    /// As for [`Runner`](crate::snippet::Runner), in the members' packages.
    ///
    /// # Errors
    /// Which of them cannot be programmed, and why.
    fn program_uncore(&mut self, round: &[Placed]) -> Result<Vec<Counter>, (usize, Refusal)> {
        let _ = round;
        Ok(Vec::new())
    }
    /// What each counter of the uncore has counted while all members ran for the last time.
    fn uncore_counts(&self) -> &[u64] {
        &[]
    }
    /// As [`crate::snippet::measure::Runner::beat`].
    fn beat(&mut self, within: Within) {
        let _ = within;
    }
    /// Explains a trap of the loaded snippet.
    fn explain(&self, trap: &Trap, snippet: &Snippet) -> Fault;
}

/// Why there is no result, and on which processor.
#[derive(Debug)]
pub struct Failure {
    /// The processor, if it is one's alone.
    pub processor: Option<u32>,
    /// Why.
    pub why: Unmeasured,
}

/// Measures the item's snippet on all members.
///
/// # Errors
/// The members' PMUs differ, or the snippet raised an exception on one of them.
pub fn measure_all(
    set: &mut impl ProcessorSet,
    index: u32,
    item: &Processors,
) -> Result<ProcessorsResult, Failure> {
    let members = set.members().to_vec();
    if let Err(difference) = agreement::check(&members) {
        let why = Unmeasured::Refused(difference.to_string());
        return Err(Failure { processor: None, why });
    }
    let snippet = &item.snippet;
    let plan = set.prepare(snippet);
    let mut recorder = Recorder::new(set, plan.clone());
    let led = measure(&mut recorder, snippet);
    let (notes, mut skews, trapped) = (recorder.notes, recorder.skews, recorder.trapped);
    let uncore = recorder.uncore;
    let first = led.map_err(|why| Failure { processor: trapped, why })?;
    // Energy and the uncore are read by the leading processor's measurement, once of each package; a figure goes to the processor that
    // read it.
    let (of_packages, own) =
        first.metrics.into_iter().partition(|metric| metric.reader().is_some());
    let mut figures = Vec::from([own]);
    for (member, notes) in members[1..].iter().zip(notes) {
        let absent = member.pmu.as_ref().err().cloned();
        let mut replay = Replay::new(plan.clone(), notes, uncore, absent);
        let again = measure(&mut replay, snippet)
            .map_err(|why| Failure { processor: Some(member.number), why })?;
        let own = again.metrics.into_iter().filter(|metric| metric.reader().is_none());
        figures.push(own.collect());
    }
    give(of_packages, &members, &mut figures);
    let (taken, events) = snapshot(set, &plan, &first.uncounted);
    let interrupts = item.interrupt_every.map(|period| set.interrupts(period)).transpose();
    let interrupts = interrupts.map_err(|(number, reason)| {
        let why = Unmeasured::Refused(format!("interrupts at overflow: {reason}"));
        Failure { processor: Some(number), why }
    })?;
    let contention = item.contention.map(|rounds| {
        let judged = set.contend(rounds).and_then(|together| together.judge(rounds));
        judged.map_err(|(place, reason)| {
            let why = Unmeasured::Refused(format!("contention: {reason}"));
            Failure { processor: members.get(place).map(|member| member.number), why }
        })
    });
    let contention = contention.transpose()?.unwrap_or_default();
    skews.sort_unstable();
    Ok(ProcessorsResult {
        item: index,
        name: snippet.name.to_string(),
        core: members[0].core,
        more: false,
        verdict: Verdict::None,
        misses: Vec::new(),
        restored: Vec::new(),
        per: executions(snippet),
        runs: snippet.runs,
        sums: sums(&figures),
        uncounted: first.uncounted,
        in_turn: set.in_turn(),
        start_skew: summary(&skews),
        snapshot: Snapshot { deadline: taken.deadline, skew: skew(&taken.tsc), events },
        emulated: false,
        tsc: [0; 2],
        processors: results(
            &members,
            figures,
            &taken,
            &interrupts.unwrap_or_default(),
            &contention,
        ),
    })
}

/// Gives each figure of a package to the member that read it; one that none of them read goes to the first.
fn give(of_packages: Vec<Metric>, members: &[Member], figures: &mut [Vec<Metric>]) {
    for metric in of_packages {
        let place = members.iter().position(|member| Some(member.number) == metric.reader());
        figures[place.unwrap_or(0)].push(metric);
    }
}

/// The first pass that counts something, counting on all members.
fn snapshot(
    set: &mut impl ProcessorSet,
    plan: &Plan,
    uncounted: &[Uncounted],
) -> (SnapshotCounts, Vec<String>) {
    let pass = plan.passes.iter().find(|pass| !pass.is_empty() && !set.in_turn());
    let mut pass = pass.cloned().unwrap_or_default();
    pass.retain(|one| uncounted.iter().all(|other| other.event != one.event));
    while let Err((index, _)) = set.program(&pass) {
        // The result names what cannot be programmed.
        if index >= pass.len() {
            break;
        }
        pass.remove(index);
    }
    (set.snapshot(), pass.into_iter().map(|one| one.event).collect())
}

fn results(
    members: &[Member],
    figures: Vec<Vec<Metric>>,
    taken: &SnapshotCounts,
    interrupts: &[Option<Interrupts>],
    contention: &[ContentionRounds],
) -> Vec<ProcessorResult> {
    let each = members.iter().zip(figures).enumerate();
    each.map(|(place, (member, metrics))| ProcessorResult {
        processor: member.number,
        apic_id: member.apic_id,
        tsc_offset: member.offset.ticks,
        tsc_offset_error: member.offset.error,
        pmu_absent: member.pmu.as_ref().err().cloned(),
        metrics,
        snapshot_tsc: taken.tsc.get(place).copied().unwrap_or_default(),
        snapshot: taken.counts.get(place).cloned().unwrap_or_default(),
        interrupts: interrupts.get(place).copied().flatten(),
        contention: contention.get(place).copied(),
    })
    .collect()
}

/// Sums in the order in which the events first appear; time is no event to be summed.
fn sums(figures: &[Vec<Metric>]) -> Vec<Sum> {
    let mut sums: Vec<Sum> = Vec::new();
    let each = figures.iter().flat_map(|all| once(all));
    for metric in each.filter(|metric| metric.counting.is_some()) {
        let value = metric.value.median;
        match sums.iter_mut().find(|sum| sum.event == metric.event) {
            Some(sum) => {
                sum.value += value;
                sum.processors += 1;
            }
            None => sums.push(Sum { event: metric.event.clone(), value, processors: 1 }),
        }
    }
    sums
}

/// Each event of a processor once: it may have been asked for twice, or for each of several metrics. Registers of several packages
/// differ.
fn once(metrics: &[Metric]) -> impl Iterator<Item = &Metric> {
    let is_first =
        |(at, one): &(usize, &Metric)| !metrics[..*at].iter().any(|other| other.is_of_same(one));
    metrics.iter().enumerate().filter(is_first).map(|(_, one)| one)
}

fn summary(sorted: &[u64]) -> Skew {
    match sorted {
        [] => Skew::default(),
        [min, .., max] => Skew { min: *min, median: sorted[sorted.len() / 2], max: *max },
        [one] => Skew { min: *one, median: *one, max: *one },
    }
}
