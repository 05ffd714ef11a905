//! A `sample` item of a job.

use super::{
    Sampler, Scheduled, Session, account, branches, capability, groups, ibs, memory, plan, precise,
};
use crate::snippet::measure::Unmeasured;
use crate::tasks::Summary;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::data_source::Datum;
use arch::pmu::pmi::{self, ControlBlock, Interval, Times};
use arch::pmu::{Gate, PmuError};
use protocol::bits::Bits;
use protocol::record::{
    AddressCount, CodePlace, Hex, SampleResult, Samples, SamplingCapability, Schedule, TimerResult,
    Verdict,
};
use protocol::sampling::{Delivery, Keep, Sampling};

/// Samples of one record, without registers.
const CHUNK: usize = 1000;

/// Samples the item's workload. Single samples are handed to `report`, at most 1,000 at a time.
///
/// # Errors
/// The workload raised an exception, or cannot be sampled so.
pub fn measure(
    machine: &mut impl Sampler,
    index: u32,
    item: &Sampling,
    report: &mut dyn FnMut(Samples),
) -> Result<SampleResult, Unmeasured> {
    let [tsc_hz, timer_hz] = machine.clocks();
    let interval = interval(item, timer_hz).map_err(Unmeasured::Refused)?;
    let (events, uncounted) = plan(machine, item)?;
    let refused = |error: PmuError| Unmeasured::Refused(error.to_string());
    // A timer samples without a PMU.
    let no_pmu = machine.pmu().err().filter(|_| item.events.is_empty() && interval.is_some());
    let (mut session, mut block, gate) = match no_pmu {
        Some(_) => {
            let (session, block) = Session::without_counters(item, tsc_hz);
            (session, block, Gate::EMPTY)
        }
        None => {
            let pmu = machine.pmu().map_err(Unmeasured::Refused)?;
            let besides = groups::plan(&pmu, item, &events).map_err(Unmeasured::Refused)?;
            let all = (events, besides);
            let armed = Session::arm(pmu.registers, pmu.driver, item, all, tsc_hz);
            let (session, block) = armed.map_err(refused)?;
            let gate = pmu.driver.gate();
            let gate = if item.call_graph.is_some() { block.with_records(gate) } else { gate };
            (session, block, gate)
        }
    };
    if let Some(interval) = interval {
        let ticks = u128::from(interval.ns) * u128::from(tsc_hz) / 1_000_000_000;
        block.times = Times::watching(ticks as u64, session.times());
    }
    let delivery = match item.delivery {
        Delivery::Fixed => pmi::Delivery::Fixed,
        Delivery::Nmi => pmi::Delivery::Nmi,
    };
    // The scheduler stops the unit with the counters; the gate around a task that is called does not know it.
    let scheduled = item.is_scheduled() || session.has_instruction_based();
    let (ran, block) = match (scheduled, &item.workload.tasks[..]) {
        (false, [task]) => {
            let (place, closed) = machine.load_task(task, &gate);
            block.closes_in(&closed);
            machine.deliver(block, delivery, interval);
            let vectors = delivery == pmi::Delivery::Fixed || interval.is_some();
            let ran = machine.run_task(task, vectors);
            let ran = ran.map(|ticks| Ran { places: Vec::from([place]), schedule: None, ticks });
            (ran, machine.withdraw())
        }
        _ => {
            machine.deliver(block, delivery, interval);
            let ran = machine.run_tasks(item).map(Ran::from).map_err(Unmeasured::Refused);
            (ran, machine.withdraw())
        }
    };
    let emulated = machine.has_emulated_pmu();
    let (counts, capability, entries, latencies) = if let Some(reason) = &no_pmu {
        let counts = account::timer_alone(&session, &block, interval);
        (counts, capability::none(reason), 0, None)
    } else {
        let pmu = machine.pmu().map_err(Unmeasured::Refused)?;
        pmu.driver.stop(pmu.registers).map_err(refused)?;
        ibs::disarm(pmu.registers, pmu.driver.capabilities(), &session.events).map_err(refused)?;
        let counts = account::account(pmu.registers, pmu.driver, &session, &block, interval);
        let counts = counts.map_err(refused)?;
        branches::stop(pmu.registers, pmu.driver, &block).map_err(refused)?;
        let capability = capability::capability(pmu.driver.capabilities(), emulated);
        // The PMU is the next item's.
        pmu.driver.reset(pmu.registers).map_err(refused)?;
        let has = pmu.driver.capabilities();
        let latencies = block.accesses().map(|_| memory::latencies(has));
        (counts, capability, has.lbr.entries(), latencies)
    };
    let ran = ran?;
    if block.storms() {
        return Err(Unmeasured::Refused(format!(
            "the PMU's interrupt came {} times without an overflow, so it was masked: what came after that is not sampled",
            block.spurious
        )));
    }
    account::check(&counts, &block).map_err(Unmeasured::Refused)?;
    if item.keep == Keep::Samples {
        chunks(index, item, &session, &block, report);
    }
    let addresses = histogram(machine, &session, &block);
    let mut data = precise::data(&session, &block);
    memory::with_latencies(&mut data, &session, &block);
    let (sources, sources_elsewhere) = memory::sources(&session, &block);
    let (outcomes, outcomes_elsewhere) = memory::outcomes(&block);
    let stacks = branches::stacks(&session, &block, entries);
    let result = Gathered { item, block: &block, ran, capability };
    Ok(SampleResult {
        item: index,
        events: counts,
        addresses,
        logged: session.samples(&block).len() as u64,
        timer: interval.map(|interval| timer(item, interval, &block, tsc_hz)),
        emulated: emulated && !session.events.is_empty(),
        uncounted,
        data,
        branches: branches::record(&block, entries),
        sources,
        sources_elsewhere,
        latencies,
        outcomes,
        outcomes_elsewhere,
        stacks,
        values: session.besides.names(),
        ..result.record()
    })
}

/// The parts of a result that are only copied.
struct Gathered<'a> {
    item: &'a Sampling<'a>,
    block: &'a ControlBlock,
    ran: Ran,
    capability: SamplingCapability,
}

impl Gathered<'_> {
    fn record(self) -> SampleResult {
        let Self { item, block, ran, capability } = self;
        let tasks = item.workload.tasks.iter().map(|task| task.name.to_string());
        SampleResult {
            item: 0,
            name: item.name.to_string(),
            verdict: Verdict::None,
            misses: Vec::new(),
            restored: Vec::new(),
            events: Vec::new(),
            tasks: tasks.collect(),
            code: ran.places,
            schedule: ran.schedule,
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
            capability,
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
        }
    }
}

/// How the workload ran.
struct Ran {
    places: Vec<CodePlace>,
    schedule: Option<Schedule>,
    ticks: u64,
}

impl From<Scheduled> for Ran {
    fn from(Scheduled { summary, places, ticks }: Scheduled) -> Self {
        let Summary { tasks, switches, ticks: timer, .. } = summary;
        Self { places, schedule: Some(Schedule { tasks, switches, ticks: timer }), ticks }
    }
}

fn interval(item: &Sampling, timer_hz: u64) -> Result<Option<Interval>, String> {
    match item.interval_ns {
        0 => Ok(None),
        ns => Interval::nearest(ns, timer_hz).map(Some).ok_or_else(|| {
            format!("the local APIC's timer, which counts at {timer_hz} Hz, makes no interval of {ns} ns")
        }),
    }
}

fn timer(item: &Sampling, interval: Interval, block: &ControlBlock, tsc_hz: u64) -> TimerResult {
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
    TimerResult { asked_ns: item.interval_ns, set_ns: interval.ns, doubled, measured_ns }
}

/// Index of the event that a bit of the status stands for.
fn events_of(session: &Session, status: u64) -> u32 {
    let counters = session.events.iter().map(|one| one.counter.index());
    let slots = counters.chain([pmi::TIMER_SLOT]).enumerate();
    slots.fold(0, |bits, (index, slot)| bits | ((status >> slot & 1) as u32) << index)
}

/// The histogram, most often first.
fn histogram(
    machine: &mut impl Sampler,
    session: &Session,
    block: &ControlBlock,
) -> Vec<AddressCount> {
    let Some(histogram) = block.histogram() else { return Vec::new() };
    let mut rows: Vec<AddressCount> = histogram
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
        })
        .collect();
    rows.sort_by_key(|row| (core::cmp::Reverse(row.count), row.event, row.address.0));
    rows
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sources and latencies of single samples, where they are told.
fn told(chunk: &mut Samples, block: &ControlBlock, data: &[Datum]) {
    if data.iter().any(|one| one.latency != 0) {
        chunk.latencies = data.iter().map(|one| one.latency).collect();
    }
    if !data.iter().any(Datum::is_told) {
        return;
    }
    for one in data {
        let source = memory::source(block, one).map_or(0, |name| {
            let known = chunk.source_names.iter().position(|known| *known == name);
            let place = known.unwrap_or_else(|| {
                chunk.source_names.push(name);
                chunk.source_names.len() - 1
            });
            place as u32 + 1
        });
        chunk.sources.push(source);
    }
}

/// Single samples, in records that stay well below the longest line.
fn chunks(
    index: u32,
    item: &Sampling,
    session: &Session,
    block: &ControlBlock,
    report: &mut dyn FnMut(Samples),
) {
    let wanted: Vec<usize> = (0..16).filter(|n| item.registers >> n & 1 != 0).collect();
    let besides = session.besides.words();
    let size = CHUNK / (1 + wanted.len() + besides + 3 * usize::from(!session.data().is_empty()));
    let mut first = 0;
    for part in session.samples(block).chunks(size) {
        let mut chunk = Samples { item: index, first: first as u64, ..Samples::default() };
        let mut last = [0; 2];
        let compatibility = (0..).zip(part).filter(|(_, sample)| sample.is_compatibility());
        chunk.compatibility = compatibility.map(|(index, _)| index).collect();
        for sample in part {
            let task = 4 * sample.task + u32::from(sample.ring());
            let events = events_of(session, sample.status);
            chunk.push(&mut last, sample.rip, sample.tsc, events, task);
        }
        if chunk.tasks.iter().all(|&task| task == 0) {
            chunk.tasks.clear();
        }
        if let Some(sets) = session.registers().get(first..first + part.len()) {
            let each = |set: &[u64; pmi::REGISTERS]| -> Vec<Hex> {
                wanted.iter().map(|&n| Hex(set[n])).collect()
            };
            chunk.registers = sets.iter().flat_map(each).collect();
        }
        if let Some(data) = session.data().get(first..first + part.len())
            && data.iter().any(|one| one.address != 0)
        {
            chunk.data = data.iter().map(|one| Hex(one.address)).collect();
            told(&mut chunk, block, data);
        }
        groups::told(&mut chunk, session, first, part.len());
        first += part.len();
        report(chunk);
    }
}
