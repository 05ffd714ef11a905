//! A `sample` item of a job.

use super::log::{chunks, events_of};
use super::parts::{Counted, Every, Part};
use super::{
    Around, Sampler, Scheduled, Session, branches, groups, memory, only, plan, precise, shares,
    whole,
};
use crate::snippet::measure::Unmeasured;
use crate::tasks::Summary;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pmi::{self, ControlBlock};
use protocol::bits::Bits;
use protocol::hex::Hex;
use protocol::job::limits;
use protocol::job::sampling::{Delivery, Keep, Sampling};
use protocol::record::{
    AddressCount, CodePlace, SampleResult, Samples, SamplingCapability, Schedule, TimerResult,
    Uncounted, Verdict,
};

/// Samples the item's workload. Single samples are handed to `report`, at most 1,000 at a time. `around` begins when the workload is
/// about to run that is sampled, and ends after it, however it ended.
///
/// # Errors
/// The workload raised an exception, or cannot be sampled so.
pub fn measure<M: Sampler>(
    machine: &mut M,
    index: u32,
    item: &Sampling,
    around: &mut impl Around<M>,
    report: &mut dyn FnMut(Samples),
) -> Result<SampleResult, Unmeasured> {
    let clocks = machine.clocks();
    let cpus = item.workload.cpus();
    // Kinds of core are processors only now.
    limits::check_capacity(item).map_err(|error| Unmeasured::Refused(error.to_string()))?;
    only::check_opcodes(&item.only).map_err(Unmeasured::Refused)?;
    machine.gather(&cpus, !item.events.is_empty()).map_err(Unmeasured::Refused)?;
    let (events, uncounted) = plan(machine, item)?;
    // The scheduler stops the unit with the counters; the gate around a task that is called does not know it.
    let scheduled = item.is_scheduled() || events.iter().any(|one| one.ibs.is_some());
    let every = Every::of(item, scheduled, clocks).map_err(Unmeasured::Refused)?;
    // A timer samples without a PMU.
    let no_pmu = machine.pmu().err().filter(|_| item.events.is_empty() && every.is_some());
    let planned = match no_pmu {
        Some(_) => None,
        None => {
            let pmu = machine.pmu().map_err(Unmeasured::Refused)?;
            let besides = groups::plan(&pmu, item, &events).map_err(Unmeasured::Refused)?;
            Some((events, besides))
        }
    };
    let mut armed = Vec::with_capacity(cpus.len());
    for &cpu in &cpus {
        armed.push(Part::arm(machine, cpu, item, planned.as_ref(), every)?);
    }
    around.begin(machine);
    let (ran, parts) = run(machine, item, armed, every, scheduled);
    around.end(machine);
    let missing = no_pmu.as_deref().map_or(Ok(()), Err);
    let counted = parts.iter().map(|part| part.count(machine, missing, every));
    let counted = counted.collect::<Result<Vec<_>, _>>()?;
    let ran = ran?;
    for (part, counted) in parts.iter().zip(&counted) {
        part.check(&counted.counts)?;
    }
    if item.keep == Keep::Samples {
        let mut before = 0;
        for part in &parts {
            before = chunks((index, before), item, part, report);
        }
    }
    let mut results = Vec::with_capacity(parts.len());
    for (part, mut counted) in parts.iter().zip(counted) {
        only::estimate(machine, item, part, &ran, &mut counted.counts);
        let gathered = Gathered { index, item, ran: &ran, every, tsc_hz: clocks[0] };
        results.push((part.cpu, gathered.result(machine, part, counted, &uncounted)));
    }
    let mut result = whole::together(results)
        .ok_or_else(|| Unmeasured::Refused("there is no task".to_string()))?;
    shares::leave_out(&mut result);
    Ok(result)
}

/// Lets the interrupts come, runs the tasks, and takes the blocks back.
fn run(
    machine: &mut impl Sampler,
    item: &Sampling,
    armed: Vec<(Part, arch::pmu::Gate)>,
    every: Option<Every>,
    scheduled: bool,
) -> (Result<Ran, Unmeasured>, Vec<Part>) {
    let delivery = match item.delivery {
        Delivery::Fixed => pmi::Delivery::Fixed,
        Delivery::Nmi => pmi::Delivery::Nmi,
    };
    let timer = every.and_then(|every| every.timer);
    // One task that is called: made ready before its interrupts come, as the block knows where its gate is closed again.
    let called = match (&armed[..], &item.workload.tasks[..]) {
        ([(_, gate)], [task]) if !scheduled => Some((task, machine.load_task(task, gate))),
        _ => None,
    };
    let mut parts: Vec<Part> = armed.into_iter().map(|(part, _)| part).collect();
    for part in &mut parts {
        if let Some((_, (_, closed))) = &called {
            part.block.closes_in(closed);
        }
        machine.deliver(part.cpu, &part.block, delivery, timer);
    }
    let ran = match called {
        Some((task, (place, _))) => {
            let vectors = delivery == pmi::Delivery::Fixed || timer.is_some();
            let ran = machine.run_task(task, vectors);
            ran.map(|ticks| Ran { places: Vec::from([place]), schedule: None, ticks })
        }
        None => {
            let ran = machine.run_tasks(item, every.map(|every| every.ticks));
            ran.map(Ran::from).map_err(Unmeasured::Refused)
        }
    };
    for part in &mut parts {
        machine.withdraw(part.cpu, &mut part.block);
    }
    (ran, parts)
}

/// What the parts of a result have in common.
struct Gathered<'a> {
    index: u32,
    item: &'a Sampling<'a>,
    ran: &'a Ran,
    every: Option<Every>,
    tsc_hz: u64,
}

impl Gathered<'_> {
    /// What a processor's part comes to.
    fn result(
        &self,
        machine: &mut impl Sampler,
        part: &Part,
        counted: Counted,
        uncounted: &[Uncounted],
    ) -> SampleResult {
        let Part { cpu, session, block } = part;
        let Counted { counts, capability, entries, latencies } = counted;
        let mut data = precise::data(session, block);
        memory::with_latencies(&mut data, session, block);
        let (sources, sources_elsewhere) = memory::sources(session, block);
        let (outcomes, outcomes_elsewhere) = memory::outcomes(block);
        SampleResult {
            item: self.index,
            events: counts,
            addresses: histogram(machine, *cpu, session, block),
            logged: session.samples(block).len() as u64,
            timer: self.every.map(|every| timer(self.item, every, block, self.tsc_hz)),
            emulated: machine.has_emulated_pmu() && !session.events.is_empty(),
            uncounted: uncounted.to_vec(),
            data,
            branches: branches::record(block, entries),
            sources,
            sources_elsewhere,
            latencies,
            outcomes,
            outcomes_elsewhere,
            stacks: branches::stacks(session, block, entries),
            values: session.besides.names(),
            ..self.record(block, capability)
        }
    }

    fn record(&self, block: &ControlBlock, capability: SamplingCapability) -> SampleResult {
        let Self { item, ran, .. } = self;
        let tasks = item.workload.tasks.iter().map(|task| task.name.to_string());
        SampleResult {
            item: 0,
            name: item.name.to_string(),
            verdict: Verdict::None,
            misses: Vec::new(),
            restored: Vec::new(),
            events: Vec::new(),
            processors: Vec::new(),
            tasks: tasks.collect(),
            code: ran.places.clone(),
            schedule: ran.schedule.clone(),
            addresses: Vec::new(),
            elsewhere: block.histogram().map_or(0, |histogram| histogram.elsewhere),
            logged: 0,
            dropped: block.dropped,
            on_full: item.on_full,
            stopped: block.stopped,
            delivery: item.delivery,
            handling: block.handling().to_string(),
            handler_instructions: block.handling().seen(),
            interrupts: block.pmis,
            spurious: block.spurious,
            back_to_back: block.back_to_back,
            throttled: block.throttle.raised,
            eased: block.throttle.eased,
            timer: None,
            capability: Box::new(capability),
            emulated: false,
            uncounted: Vec::new(),
            ticks: ran.ticks,
            tsc: [0; 2],
            data: Vec::new(),
            data_elsewhere: block.data().map_or(0, |histogram| histogram.elsewhere),
            branches: None,
            sources: Vec::new(),
            sources_elsewhere: 0,
            latencies: None,
            outcomes: Vec::new(),
            outcomes_elsewhere: 0,
            stacks: None,
            values: Vec::new(),
            energy: Vec::new(),
            uncore: Vec::new(),
            unread: Vec::new(),
        }
    }
}

/// How the workload ran.
pub(super) struct Ran {
    pub(super) places: Vec<CodePlace>,
    pub(super) schedule: Option<Schedule>,
    ticks: u64,
}

impl From<Scheduled> for Ran {
    fn from(Scheduled { summary, places, ticks }: Scheduled) -> Self {
        let Summary { tasks, switches, ticks: timer, .. } = summary;
        Self { places, schedule: Some(Schedule { tasks, switches, ticks: timer }), ticks }
    }
}

fn timer(item: &Sampling, every: Every, block: &ControlBlock, tsc_hz: u64) -> TimerResult {
    let times = block.times.seen();
    let ns = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(tsc_hz.max(1))) as u64;
    let mut seen: Vec<u64> =
        times.windows(2).map(|pair| ns(pair[1].saturating_sub(pair[0]))).collect();
    seen.sort_unstable();
    let measured_ns = match (seen.first(), seen.last()) {
        (Some(&least), Some(&most)) => Some([least, seen[seen.len() / 2], most]),
        _ => None,
    };
    let doubled = block.times.doubled;
    TimerResult { asked_ns: item.interval_ns, set_ns: every.ns, doubled, measured_ns }
}

/// The histogram.
fn histogram(
    machine: &mut impl Sampler,
    cpu: u16,
    session: &Session,
    block: &ControlBlock,
) -> Vec<AddressCount> {
    let Some(histogram) = block.histogram() else { return Vec::new() };
    histogram
        .used()
        .map(|bucket| AddressCount {
            address: Hex(bucket.address),
            event: events_of(session, 1 << bucket.bit).trailing_zeros(),
            task: bucket.task,
            ring: bucket.ring(),
            count: bucket.count,
            bytes: hex(&machine.code(bucket.address)),
            bits: if bucket.is_compatibility() { Bits::Compatibility } else { Bits::SixtyFour }
                .number(),
            cpu,
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
