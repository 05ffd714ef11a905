//! Bounds of a job. The host checks them for a good error with line and column; the target checks
//! them again, because a ramdisk can come from anywhere.

use crate::bits::Bits;
use crate::control::{Control, PageSize, Ring};
use crate::count::{Bind, Count, CountRequest, MAX_SETS};
use crate::exact::Exact;
use crate::history;
use crate::job::{Conformance, Difference, Item, Job, LoopCounter, Processors, Snippet};
use crate::marker::{STUB_BYTES, markers};
use crate::sampling::{Delivery, Keep, OnFull, Rate, Sampling};
use crate::workload::{self, Workload};
use alloc::boxed::Box;
use alloc::string::String;
use thiserror::Error;

mod gate;

pub use gate::MAX_GATE_POINTS;

/// Longest name of a job or an item, in bytes.
pub const MAX_NAME_BYTES: usize = 200;
/// Most items in a job.
pub const MAX_ITEMS: usize = 100_000;
/// Longest machine code of one part (body or init) of a snippet, in bytes.
pub const MAX_CODE_BYTES: usize = 1 << 20;
/// Executable memory on the target, in bytes: the init code, the unrolled body and the measuring
/// code around them have to fit.
pub const CODE_AREA_BYTES: u64 = 16 << 20;
/// Room kept in the code area for the measuring code.
pub const HARNESS_BYTES: u64 = 4096;
/// Copies of the body, as asked for; differencing runs up to twice as many.
pub const MAX_UNROLL: u32 = 1_000_000;
/// Iterations of the loop around the copies.
pub const MAX_LOOP: u64 = 1_000_000_000_000;
/// Names of checks in one item.
pub const MAX_CHECKS: usize = 1000;
/// Events of one snippet, each comma in their texts taken for one more: what does not fit into the counters at once
/// takes further passes, so this bounds the time and the length of the result's line.
pub const MAX_EVENTS: usize = 500;
/// Longest text of an event or a group of events, in bytes.
pub const MAX_EVENT_BYTES: usize = 1000;
/// Tasks of one item.
pub const MAX_TASKS: usize = 64;
/// Shortest time between two timer ticks, in nanoseconds: a tick takes some microseconds itself.
pub const MIN_TICK_NS: u64 = 10_000;
/// Longest time between two timer ticks: a second.
pub const MAX_TICK_NS: u64 = 1_000_000_000;
/// Rows of the series of an item.
pub const MAX_INTERVALS: usize = 1_000;
/// Opcodes of a filter.
pub const MAX_OPCODES: usize = 100;
/// Instructions that exact mode steps over in one run, those of the measuring code among them.
pub const MAX_STEPS: u64 = 1_000_000;
/// Rows of a listing of instructions: some 50 bytes each on the serial line.
pub const MAX_LISTED_INSTRUCTIONS: usize = 1_000;
/// Runs before measuring.
pub const MAX_WARMUP: u32 = 1_000_000;
/// Bytes that a body may start behind a multiple of 64.
pub const MAX_ALIGNMENT_OFFSET: u8 = 63;
/// Longest time limit of a run, in milliseconds: an hour.
pub const MAX_TIME_LIMIT_MS: u32 = 3_600_000;
/// Highest core clock that can be asked for, in MHz: the ratio of IA32_PERF_CTL has 8 bits, of 100 MHz each.
pub const MAX_FREQUENCY_MHZ: u32 = 25_500;
/// Repetitions of a run after system management interrupts.
pub const MAX_SMI_REPEATS: u32 = 1_000;
/// Model-specific registers that are read around a run.
pub const MAX_MSRS: usize = 8;
/// Measured runs.
pub const MAX_RUNS: u32 = 100_000;
/// Most runs whose single values go into the report: two series of 20 digits each make a line of
/// 40 kB, 4 s at 115,200 baud.
pub const MAX_LISTED_RUNS: u32 = 1_000;
/// Greatest number of a processor.
pub const MAX_CPU: u16 = 255;
/// Events that are sampled by at once.
pub const MAX_SAMPLED_EVENTS: usize = 32;
/// Addresses of a histogram: some 150 bytes each on the serial line, all on one.
pub const MAX_ADDRESSES: u32 = 4096;
/// Entries of a log of samples: 32 bytes each on the target.
pub const MAX_SAMPLES: u32 = 1 << 19;
/// Entries of a log that also keeps registers: 160 bytes each.
pub const MAX_SAMPLES_WITH_REGISTERS: u32 = 1 << 16;
/// Shortest interval of a timer that samples, in nanoseconds: its handler takes about a microsecond.
pub const MIN_INTERVAL_NS: u64 = 5_000;
/// Longest one: a minute.
pub const MAX_INTERVAL_NS: u64 = 60_000_000_000;
/// Instructions from one interrupt to the next: several times the handler's own sixty, so that work goes on between.
pub const MIN_INTERRUPT_EVERY: u64 = 500;
/// The loop that is interrupted is not much longer.
pub const MAX_INTERRUPT_EVERY: u64 = 1_000_000;
/// Rates that a 16550 with its standard 1.8432 MHz clock can make: 115,200 divided by a whole number.
pub const MAX_BAUD: u32 = 115_200;
/// Slowest rate accepted.
pub const MIN_BAUD: u32 = 300;

/// A value outside its bounds. The text names the thing, the value and the bound.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum LimitError {
    /// A whole number outside its range.
    #[error("{field} is {value}; it must be {min} to {max}")]
    Range { field: &'static str, value: u64, min: u64, max: u64 },
    /// A text or code that is too long.
    #[error("{field} is {bytes} bytes long; at most {max} are allowed")]
    TooLong { field: &'static str, bytes: u64, max: u64 },
    /// All copies together do not fit into executable memory.
    #[error(
        "{copies} copies of a body of {body} bytes make {total} bytes; the code area holds {max}: \
         lower unroll, or use loop"
    )]
    CodeArea { copies: u64, body: u64, total: u64, max: u64 },
    /// A rate that the UART cannot make.
    #[error(
        "baud is {0}; it must divide 115200 without remainder (115200, 57600, 38400, 9600, ...)"
    )]
    Baud(u32),
    /// An expectation that no value can meet.
    #[error("expect.min is {min}, above expect.max, which is {max}")]
    EmptyExpectation { min: f64, max: f64 },
    /// An expectation that is not a number.
    #[error("expect.{0} is not a finite number")]
    NotFinite(&'static str),
    /// Counting would start in one task and stop in another.
    #[error(
        "counting starts and stops at addresses of one task, which has its own address space; these are in `{0}` and `{1}`"
    )]
    GateTasks(String, String),
    /// A task of ring 0.
    #[error(
        "task `{0}` runs in ring 0, where the handler that starts and stops would be counted with it: ring = 3 is \
         exact"
    )]
    GateRing(String),
    /// The same address twice.
    #[error("the address at offset {0:#x} is given twice")]
    GateTwice(u64),
    /// Addresses start and stop one set, of one task.
    #[error(
        "start-at and stop-at stand beside bind or sets; what they count is the task that they name"
    )]
    GateBound,
    /// Nothing starts.
    #[error("counting stops at addresses, but starts at none: start-at is missing")]
    GateNeverStarts,
    /// A range of instructions that hangs on a register.
    #[error(
        "exact.instructions is counted from a register; it must be counted from the start of the body"
    )]
    InstructionBase,
    /// Bounds for ticks that are not counted.
    #[error("expect bounds TSC ticks, which exact mode does not count; give one of the two")]
    ExactExpectation,
    /// Bounds for one figure where there are several.
    #[error("expect bounds one figure; [[processors]] gives one for each processor")]
    ProcessorsExpectation,
    /// The PMU cannot filter as exact mode does.
    #[error("exact.verify compares with the PMU, which has no such filter; give one of the two")]
    VerifyFiltered,
    /// What no-memory mode has no room for.
    #[error("no-memory is set, and {0} would have to be kept in memory")]
    NoMemory(&'static str),
    /// Machine options are the boot processor's.
    #[error("machine options are for [[snippet]]; several processors are taken as they are")]
    ProcessorsMachine,
    /// A way of measuring that ring 3 does not allow.
    #[error("ring = 3: {0}")]
    UserRing(&'static str),
    /// What 32-bit code does not allow.
    #[error("bits = 32: {0}")]
    Narrow(&'static str),
    /// A value of a task is out of its bounds.
    #[error("task {index} (`{name}`): {error}")]
    Task { index: usize, name: String, error: Box<LimitError> },
    /// A task's parent does not stand before it.
    #[error(
        "its parent is task {parent}; a parent must stand before its children, so below {index}"
    )]
    Parent { parent: u16, index: usize },
    /// A task that its parent cannot start.
    #[error(
        "cpu is {cpu}, but its parent `{parent}` runs on processor {other} and starts it there"
    )]
    ParentElsewhere { parent: String, cpu: u16, other: u16 },
    /// A generator without use.
    #[error("jitter is given, but tick-ns is 0: there are no ticks to spread")]
    JitterWithoutTicks,
    /// A series without a clock.
    #[error("interval-ns is given, but tick-ns is 0: rows of the series end at ticks")]
    IntervalWithoutTick,
    /// A series that would have several sources.
    #[error(
        "interval-ns is given, but rows of the series are those of one set that counts one processor"
    )]
    SeriesOfSeveral,
    /// Two ways to say what is counted.
    #[error("events are given beside sets; give each set its own events")]
    EventsAndSets,
    /// One task in two places.
    #[error("bind names task {0} twice")]
    BoundTwice(u16),
    /// Neither an event nor a timer.
    #[error("there is nothing to sample by: give events, or interval-ns")]
    NothingToSampleBy,
    /// Options of single samples without these.
    #[error("registers and on-full = \"stop\" need keep = \"samples\": a histogram has neither")]
    NeedsSamples,
    /// A tick could be interrupted in the middle of its sample.
    #[error(
        "interval-ns needs delivery = \"fixed\": an NMI could come while a tick is being sampled"
    )]
    TimerWithNmi,
    /// Two users of one timer.
    #[error(
        "interval-ns needs tick-ns = 0: the local APIC has one timer, which cannot both sample and switch between tasks"
    )]
    TimerWithTicks,
    /// What a history cannot have.
    #[error("history: {0}")]
    History(&'static str),
    /// An empty name.
    #[error("the name is empty")]
    EmptyName,
}

pub(crate) fn range(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), LimitError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(LimitError::Range { field, value, min, max })
}

pub(crate) fn length(field: &'static str, bytes: usize, max: usize) -> Result<(), LimitError> {
    if bytes <= max {
        return Ok(());
    }
    Err(LimitError::TooLong { field, bytes: bytes as u64, max: max as u64 })
}

pub(crate) fn name(text: &str) -> Result<(), LimitError> {
    if text.is_empty() {
        return Err(LimitError::EmptyName);
    }
    length("the name", text.len(), MAX_NAME_BYTES)
}

/// Checks what belongs to the whole job, but not its items.
///
/// # Errors
/// The first value outside its bounds.
pub fn check_job(job: &Job) -> Result<(), LimitError> {
    name(&job.name)?;
    check_baud(job.baud)?;
    range("the number of items", job.items.len() as u64, 0, MAX_ITEMS as u64)
}

/// Checks one rate of the serial line, in bits per second.
///
/// # Errors
/// A rate outside 300 to 115,200 or that does not divide 115,200.
pub fn check_baud(baud: u32) -> Result<(), LimitError> {
    range("baud", u64::from(baud), u64::from(MIN_BAUD), u64::from(MAX_BAUD))?;
    if MAX_BAUD.is_multiple_of(baud) { Ok(()) } else { Err(LimitError::Baud(baud)) }
}

/// Checks one item.
///
/// # Errors
/// The first value outside its bounds.
pub fn check_item(item: &Item) -> Result<(), LimitError> {
    match item {
        Item::Snippet(snippet) => check_snippet(snippet),
        Item::Conformance(conformance) => check_conformance(conformance),
        Item::Exact(exact) => check_exact(exact),
        Item::Tasks(tasks) => workload::check_tasks(tasks),
        Item::Count(count) => check_count(count),
        Item::Processors(processors) => check_processors(processors),
        Item::Sample(sampling) => check_sampling(sampling),
        Item::History(history) => {
            check_snippet(&history.snippet)?;
            history::check(history)
        }
    }
}

fn check_count(count: &Count) -> Result<(), LimitError> {
    name(&count.name)?;
    range("the number of sets", count.sets.len() as u64, 0, MAX_SETS as u64)?;
    if !count.sets.is_empty() && !count.requests.is_empty() {
        return Err(LimitError::EventsAndSets);
    }
    count.sets.iter().try_for_each(|set| name(&set.name))?;
    for set in count.all_sets() {
        check_requests(set.requests)?;
        check_bind(set.bind, &count.workload)?;
    }
    if count.interval_ns > 0 {
        check_series(count)?;
    }
    range("limit-us", count.limit_us, 1, workload::MAX_LIMIT_US)?;
    workload::check(&count.workload)?;
    gate::check(count)
}

fn check_requests(requests: &[CountRequest]) -> Result<(), LimitError> {
    range("the number of events", requests.len() as u64, 1, MAX_EVENTS as u64)?;
    for request in requests {
        length("the text of an event", request.event.len(), MAX_EVENT_BYTES)?;
        if let Some(every) = request.every {
            range("every", every, 1, u64::MAX)?;
        }
        for &other in &request.starts {
            range("starts", u64::from(other), 0, requests.len() as u64 - 1)?;
        }
    }
    Ok(())
}

fn check_bind(bind: &Bind, workload: &Workload) -> Result<(), LimitError> {
    match bind {
        Bind::System | Bind::AllProcessors => Ok(()),
        Bind::Processor(cpu) => range("cpu", u64::from(*cpu), 0, u64::from(MAX_CPU)),
        Bind::Tasks(tasks) => {
            let most = workload.tasks.len() as u64;
            range("the number of tasks that are bound", tasks.len() as u64, 1, most)?;
            for (index, &task) in tasks.iter().enumerate() {
                range("the index of a task", u64::from(task), 0, most.saturating_sub(1))?;
                if tasks[..index].contains(&task) {
                    return Err(LimitError::BoundTwice(task));
                }
            }
            Ok(())
        }
    }
}

/// A series has the rows of one set on one processor.
fn check_series(count: &Count) -> Result<(), LimitError> {
    if count.workload.tick_ns == 0 {
        return Err(LimitError::IntervalWithoutTick);
    }
    let mut cpus = (0..count.workload.tasks.len()).map(|index| count.workload.cpu_of(index));
    let first = cpus.next().unwrap_or(0);
    let one = match count.bind {
        Bind::System => true,
        Bind::Processor(cpu) => cpu == first,
        Bind::AllProcessors | Bind::Tasks(_) => false,
    };
    match one && count.sets.is_empty() && cpus.all(|cpu| cpu == first) {
        true => Ok(()),
        false => Err(LimitError::SeriesOfSeveral),
    }
}

fn check_processors(processors: &Processors) -> Result<(), LimitError> {
    check_snippet(&processors.snippet)?;
    range("cpu", processors.cpu.unwrap_or(0).into(), 0, MAX_CPU.into())?;
    let (least, most) = (MIN_INTERRUPT_EVERY, MAX_INTERRUPT_EVERY);
    range("interrupt-every", processors.interrupt_every.unwrap_or(least), least, most)?;
    if processors.snippet.expect.is_some() {
        return Err(LimitError::ProcessorsExpectation);
    }
    let asked = &processors.snippet.setup.control;
    let time_limit_ms = asked.time_limit_ms;
    if *asked != (Control { time_limit_ms, ..Control::default() }) {
        return Err(LimitError::ProcessorsMachine);
    }
    Ok(())
}

fn check_exact(exact: &Exact) -> Result<(), LimitError> {
    check_snippet(&exact.snippet)?;
    let opcodes = &exact.filter.opcodes;
    range("the number of opcodes", opcodes.len() as u64, 0, MAX_OPCODES as u64)?;
    opcodes.iter().try_for_each(|opcode| name(opcode))?;
    if exact.filter.instructions.is_some_and(|range| range.base.is_some()) {
        return Err(LimitError::InstructionBase);
    }
    if exact.snippet.setup.control.ring == Ring::User {
        return Err(LimitError::UserRing("exact mode steps through code of ring 0 only"));
    }
    if exact.snippet.expect.is_some() {
        return Err(LimitError::ExactExpectation);
    }
    if exact.verify && !exact.filter.is_empty() {
        return Err(LimitError::VerifyFiltered);
    }
    Ok(())
}

fn check_sampling(sampling: &Sampling) -> Result<(), LimitError> {
    name(&sampling.name)?;
    let events = &sampling.events;
    range("the number of events", events.len() as u64, 0, MAX_SAMPLED_EVENTS as u64)?;
    for event in events {
        length("the text of an event", event.event.len(), MAX_EVENT_BYTES)?;
        match event.rate {
            Rate::Period(period) => range("period", period, 1, u64::MAX)?,
            Rate::PerSecond(rate) => range("frequency", rate.into(), 1, u32::MAX.into())?,
        }
    }
    if sampling.interval_ns != 0 {
        range("interval-ns", sampling.interval_ns, MIN_INTERVAL_NS, MAX_INTERVAL_NS)?;
    } else if events.is_empty() {
        return Err(LimitError::NothingToSampleBy);
    }
    let samples = sampling.keep == Keep::Samples;
    let most = match (samples, sampling.registers) {
        (false, _) => MAX_ADDRESSES,
        (true, 0) => MAX_SAMPLES,
        (true, _) => MAX_SAMPLES_WITH_REGISTERS,
    };
    range("capacity", sampling.capacity.into(), 1, most.into())?;
    if !samples && (sampling.registers != 0 || sampling.on_full != OnFull::Drop) {
        return Err(LimitError::NeedsSamples);
    }
    if sampling.interval_ns != 0 && sampling.delivery == Delivery::Nmi {
        return Err(LimitError::TimerWithNmi);
    }
    if sampling.interval_ns != 0 && sampling.workload.tick_ns != 0 {
        return Err(LimitError::TimerWithTicks);
    }
    range("limit-us", sampling.limit_us, 1, workload::MAX_LIMIT_US)?;
    match &sampling.workload.tasks[..] {
        [task] if !sampling.is_scheduled() => {
            name(&task.name)?;
            length("the body's machine code", task.body.len(), MAX_CODE_BYTES)?;
            length("the init code", task.init.len(), MAX_CODE_BYTES)?;
            workload::check_turns("turns", task.turns, task.bits, task.loop_counter)
        }
        _ => workload::check(&sampling.workload),
    }
}

fn check_conformance(conformance: &Conformance) -> Result<(), LimitError> {
    name(&conformance.name)?;
    range("the number of checks", conformance.checks.len() as u64, 0, MAX_CHECKS as u64)?;
    conformance.checks.iter().try_for_each(|check| name(check))
}

fn check_snippet(snippet: &Snippet) -> Result<(), LimitError> {
    name(&snippet.name)?;
    length("the body's machine code", snippet.body.len(), MAX_CODE_BYTES)?;
    length("the init code", snippet.init.len(), MAX_CODE_BYTES)?;
    let setup = &snippet.setup;
    length("the one-time init code", setup.one_time_init.len(), MAX_CODE_BYTES)?;
    length("the late init code", setup.late_init.len(), MAX_CODE_BYTES)?;
    range("initial-warmup", u64::from(setup.initial_warmup), 0, u64::from(MAX_WARMUP))?;
    let (offset, max) = (u64::from(setup.alignment_offset), u64::from(MAX_ALIGNMENT_OFFSET));
    range("alignment-offset", offset, 0, max)?;
    range("unroll", u64::from(snippet.unroll), 1, u64::from(MAX_UNROLL))?;
    if snippet.loop_count == 0 || setup.bits == Bits::Wide {
        range("loop", snippet.loop_count, 0, MAX_LOOP)?;
    } else {
        workload::check_turns("loop", snippet.loop_count, setup.bits, snippet.loop_counter)?;
    }
    range("warmup", u64::from(snippet.warmup), 0, u64::from(MAX_WARMUP))?;
    range("runs", u64::from(snippet.runs), 1, u64::from(MAX_RUNS))?;
    if snippet.values {
        range("runs (with values listed)", u64::from(snippet.runs), 1, u64::from(MAX_LISTED_RUNS))?;
    }
    check_control(snippet)?;
    let events = |text: &str| 1 + text.matches(',').count() as u64;
    let events = snippet.events.iter().map(|text| events(text)).sum();
    range("the number of events", events, 0, MAX_EVENTS as u64)?;
    snippet
        .events
        .iter()
        .try_for_each(|text| length("the text of an event", text.len(), MAX_EVENT_BYTES))?;
    if let Some(expect) = &snippet.expect {
        for (field, value) in [("min", expect.min), ("max", expect.max)] {
            if !value.is_finite() {
                return Err(LimitError::NotFinite(field));
            }
        }
        if expect.min > expect.max {
            return Err(LimitError::EmptyExpectation { min: expect.min, max: expect.max });
        }
    }
    code_area(snippet)
}

fn check_control(snippet: &Snippet) -> Result<(), LimitError> {
    let control = &snippet.setup.control;
    for (field, value, max) in [
        ("time-limit", control.time_limit_ms, MAX_TIME_LIMIT_MS),
        ("frequency", control.frequency_mhz, MAX_FREQUENCY_MHZ),
        ("smi-repeats", control.smi_repeats, MAX_SMI_REPEATS),
        ("the number of msrs", control.msrs.len() as u32, MAX_MSRS as u32),
    ] {
        range(field, u64::from(value), 0, u64::from(max))?;
    }
    control.msrs.iter().try_for_each(|msr| name(&msr.name))?;
    let pauses = !markers(&snippet.body).is_empty();
    if snippet.setup.no_memory && !control.msrs.is_empty() {
        return Err(LimitError::NoMemory("what the msrs were before"));
    }
    if snippet.setup.no_memory && pauses {
        return Err(LimitError::NoMemory("registers at a pause of counting"));
    }
    if snippet.setup.bits == Bits::Narrow {
        if snippet.setup.no_memory {
            return Err(LimitError::Narrow(
                "no-memory mode keeps values in R9 to R13, which 32-bit code need not preserve",
            ));
        }
        if pauses {
            return Err(LimitError::Narrow(
                "counting cannot be paused: the code that does it is 64-bit",
            ));
        }
        if control.page_size == PageSize::Giant {
            return Err(LimitError::Narrow(
                "page-size = \"1g\" puts the memory areas above 4 GiB, out of its reach",
            ));
        }
    }
    if control.ring == Ring::Kernel {
        return Ok(());
    }
    if snippet.setup.no_memory {
        return Err(LimitError::UserRing("no-memory mode has nowhere to keep the way back"));
    }
    if snippet.loop_count > 0 && snippet.loop_counter == LoopCounter::Memory {
        return Err(LimitError::UserRing(
            "the loop's count has to be in R15, which the snippet uses or, as 32-bit code, lacks",
        ));
    }
    if pauses {
        return Err(LimitError::UserRing("counting cannot be paused: WRMSR needs ring 0"));
    }
    Ok(())
}

fn code_area(snippet: &Snippet) -> Result<(), LimitError> {
    let copies = match snippet.difference {
        Difference::Double => 2 * u64::from(snippet.unroll),
        Difference::Empty => u64::from(snippet.unroll),
    };
    let stubs = markers(&snippet.body).len() as u64 * STUB_BYTES;
    let body = snippet.body.len() as u64 + stubs;
    let inits = snippet.init.len() + snippet.setup.late_init.len();
    let total = copies * body + inits as u64 + HARNESS_BYTES;
    if total <= CODE_AREA_BYTES {
        return Ok(());
    }
    Err(LimitError::CodeArea { copies, body, total, max: CODE_AREA_BYTES })
}

#[cfg(test)]
mod tests;
