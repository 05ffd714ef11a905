//! Bounds of a job. The host checks them for a good error with line and column; the target checks
//! them again, because a ramdisk can come from anywhere.

use crate::job::control::{Control, Ring};
use crate::job::exact::Exact;
use crate::job::sampling::{Delivery, Keep, OnFull, Rate, Sampling, VectorRegisters};
use crate::job::{Conformance, Item, Job, Processors, criteria, workload};

mod count;
mod error;
mod gate;
mod memory;
mod moving;
mod only;
mod schedule;
mod snippet;

pub(crate) use count::{check_count, check_whole};
use memory::check_memories;
pub(crate) use only::{check as check_only, check_none};
pub(crate) use snippet::check_snippet;

pub use error::LimitError;
pub use gate::MAX_GATE_POINTS;
pub use memory::{
    MAX_FILE_BYTES, MAX_ITEM_MEMORIES, MAX_MEMORIES, MAX_MEMORY_BYTES, MAX_MEMORY_NAME,
    MAX_PATTERN_BYTES,
};
pub use schedule::MAX_BINDINGS;

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
/// Rows of the series of an item.
pub const MAX_INTERVALS: usize = 1_000;
/// Readings of tasks that one processor keeps for an item: some 200 bytes each on the serial line.
pub const MAX_READINGS: usize = 256;
/// Opcodes of a filter.
pub const MAX_OPCODES: usize = 100;
/// The same where events are counted: as many as the emulated PMU looks for.
pub const MAX_QUALIFIED_OPCODES: usize = 16;
/// Most instructions that exact mode steps over in one run, those of the measuring code among them.
pub const MAX_STEPS: u64 = 1_000_000_000;
/// Rows of a listing of instructions: some 50 bytes each on the serial line.
pub const MAX_LISTED_INSTRUCTIONS: usize = 1_000;
/// Runs before measuring.
pub const MAX_WARMUP: u32 = 1_000_000;
/// Bytes that a body may start after a multiple of 64.
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
/// Entries of a log that also keeps vector registers, or values of counters: 400 bytes each.
pub const MAX_SAMPLES_WITH_VECTORS: u32 = 1 << 14;
/// Kinds of vector registers: each once.
pub const MAX_VECTORS: u64 = VectorRegisters::ALL.len() as u64;
/// Entries of a log that also keeps vector registers other than XMM: up to 2.4 kB each.
pub const MAX_SAMPLES_WITH_WIDE_VECTORS: u32 = 1 << 12;
/// Events whose counters' values go with samples: as many as there are counters.
pub const MAX_VALUES: usize = 16;
/// Shortest interval of a timer that samples, in nanoseconds: its handler takes about a microsecond.
pub const MIN_INTERVAL_NS: u64 = 5_000;
/// Longest one: a minute.
pub const MAX_INTERVAL_NS: u64 = 60_000_000_000;
/// Instructions from one interrupt to the next: several times the handler's own sixty, so that work goes on between.
pub const MIN_INTERRUPT_EVERY: u64 = 500;
/// The loop that is interrupted is not much longer.
pub const MAX_INTERRUPT_EVERY: u64 = 1_000_000;
/// Most rounds of a [`Processors`] with contention.
pub const MAX_CONTENTION: u32 = 1_000_000;
/// Rates that a 16550 with its standard 1.8432 MHz clock can make: 115,200 divided by a whole number.
pub const MAX_BAUD: u32 = 115_200;
/// Slowest rate accepted.
pub const MIN_BAUD: u32 = 300;

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
    check_items(job.items.len() as u64)?;
    // One for each item at most: what stands beyond would be judged by nobody.
    let (criteria, items) = (job.criteria.len() as u64, job.items.len() as u64);
    range("the number of items with expectations", criteria, 0, items)?;
    job.criteria.iter().try_for_each(criteria::check)?;
    check_memories(job)
}

/// Checks how many items a job has, before they are made.
///
/// # Errors
/// More than [`MAX_ITEMS`].
pub fn check_items(items: u64) -> Result<(), LimitError> {
    range("the number of items", items, 0, MAX_ITEMS as u64)
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
    item.part().check()
}

pub(crate) fn check_processors(processors: &Processors) -> Result<(), LimitError> {
    only::check_none(&processors.snippet)?;
    check_snippet(&processors.snippet)?;
    range("cpu", processors.cpu.unwrap_or(0).into(), 0, MAX_CPU.into())?;
    let (least, most) = (MIN_INTERRUPT_EVERY, MAX_INTERRUPT_EVERY);
    range("interrupt-every", processors.interrupt_every.unwrap_or(least), least, most)?;
    range("contention", processors.contention.unwrap_or(1).into(), 1, MAX_CONTENTION.into())?;
    let asked = &processors.snippet.setup.control;
    let time_limit_ms = asked.time_limit_ms;
    if *asked != (Control { time_limit_ms, ..Control::default() }) {
        return Err(LimitError::ProcessorsMachine);
    }
    Ok(())
}

pub(crate) fn check_exact(exact: &Exact) -> Result<(), LimitError> {
    only::check_none(&exact.snippet)?;
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
    range("exact.steps", exact.steps, 1, MAX_STEPS)?;
    if exact.verify && !exact.filter.is_empty() {
        return Err(LimitError::VerifyFiltered);
    }
    Ok(())
}

pub(crate) fn check_sampling(sampling: &Sampling) -> Result<(), LimitError> {
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
    range(
        "the number of kinds of vector registers",
        sampling.vectors.len() as u64,
        0,
        MAX_VECTORS,
    )?;
    range("the number of counters", sampling.counters.len() as u64, 0, MAX_VALUES as u64)?;
    for text in &sampling.counters {
        length("the text of a counter's event", text.len(), MAX_EVENT_BYTES)?;
    }
    let besides = !sampling.vectors.is_empty() || !sampling.counters.is_empty();
    check_whole(&sampling.energy, &sampling.uncore)?;
    check_capacity(sampling)?;
    if !samples && (sampling.registers != 0 || besides || sampling.on_full != OnFull::Drop) {
        return Err(LimitError::NeedsSamples);
    }
    if sampling.interval_ns != 0 && sampling.delivery == Delivery::Nmi {
        return Err(LimitError::TimerWithNmi);
    }
    range("limit-us", sampling.limit_us, 1, workload::MAX_LIMIT_US)?;
    moving::check_sampling(sampling)?;
    only::check_sampling(sampling)?;
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

/// Whether the logs or histograms of all processors fit into memory, and into a record.
///
/// # Errors
/// How much of it there may be.
pub fn check_capacity(sampling: &Sampling) -> Result<(), LimitError> {
    let besides = !sampling.vectors.is_empty() || !sampling.counters.is_empty();
    let wide = sampling.vectors.iter().any(|&one| one != VectorRegisters::Xmm);
    let most = match (sampling.keep, besides, sampling.registers) {
        (Keep::Histogram, ..) => MAX_ADDRESSES,
        (Keep::Samples, true, _) if wide => MAX_SAMPLES_WITH_WIDE_VECTORS,
        (Keep::Samples, true, _) => MAX_SAMPLES_WITH_VECTORS,
        (Keep::Samples, false, 0) => MAX_SAMPLES,
        (Keep::Samples, false, _) => MAX_SAMPLES_WITH_REGISTERS,
    };
    let capacity = sampling.capacity.into();
    match sampling.workload.cpus().len() as u64 {
        0 | 1 => range("capacity", capacity, 1, most.into()),
        cpus => {
            let all = capacity.saturating_mul(cpus);
            range("capacity, of all processors together,", all, cpus, most.into())
        }
    }
}

pub(crate) fn check_conformance(conformance: &Conformance) -> Result<(), LimitError> {
    name(&conformance.name)?;
    range("the number of checks", conformance.checks.len() as u64, 0, MAX_CHECKS as u64)?;
    conformance.checks.iter().try_for_each(|check| name(check))
}

#[cfg(test)]
mod tests;
