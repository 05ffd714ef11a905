//! Counts and samples of what is stepped, of everything at once, and at the rates of perf's defaults.

use crate::console::say;
use crate::perf::{Counter, Event, How};
use crate::samples::{Buffer, Records};
use crate::{USER, counted, mounted, write_file};
use core::ffi::CStr;
use syscalls::{Errno, Sysno, syscall};

/// Iterations of the sampled loop: two instructions each.
const SAMPLED: u64 = 10_000_000;
/// Of the loop of which branches are sampled.
const SAMPLED_BRANCHES: u64 = 5_000;
/// Samples a second, as `perf record` asks for.
const FREQUENCY: u64 = 4_000;

/// All of them.
pub fn all() {
    stepped();
    default_set();
    at_the_default_rate();
    precise();
    everything_without_throttling();
}

/// Events that are stepped, of a short program in ring 3.
fn stepped() {
    let short = |event| program(counted::SHORT_NAME, [event], USER).map(|[count]| count);
    tell("short", "instructions:u", short(Event::INSTRUCTIONS), counted::SHORT_INSTRUCTIONS);
    tell("short", "branches:u", short(Event::BRANCHES), counted::SHORT_BRANCHES);
    tell("short", "L1-dcache-loads:u", short(Event::L1_LOADS), counted::SHORT_LOADS);
    tell("short", "branch-misses:u", short(Event::BRANCH_MISSES), 0);
    let missed = Counter::of_this_task(Event::CACHE_MISSES, USER).and_then(|counter| {
        counted::stores(counter.descriptor());
        counter.read()
    });
    tell("stores", "cache-misses:u", missed, counted::LINES as u64);
}

fn tell(program: &str, event: &str, counted: Result<u64, Errno>, expected: u64) {
    match counted {
        Ok(counted) => say!("count: {program}: {event} = {counted} expected {expected}"),
        Err(error) => say!("count: {program}: {event}: {error}"),
    }
}

/// What `perf stat` counts without being told, as root: in both rings.
fn default_set() {
    let events = [
        Event::TASK_CLOCK,
        Event::CONTEXT_SWITCHES,
        Event::MIGRATIONS,
        Event::PAGE_FAULTS,
        Event::CYCLES,
        Event::INSTRUCTIONS,
        Event::BRANCHES,
        Event::BRANCH_MISSES,
    ];
    match program(counted::SHORT_NAME, events, How::default()) {
        Ok(counts) => say!("default set: {counts:?}"),
        Err(error) => say!("default set: {error}"),
    }
}

/// The time of CLOCK_MONOTONIC in nanoseconds.
fn nanoseconds() -> u64 {
    const MONOTONIC: u32 = 1;
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes two words.
    let _ = unsafe { syscall!(Sysno::clock_gettime, MONOTONIC, time.as_mut_ptr()) };
    time[0] * 1_000_000_000 + time[1]
}

/// Samples the loop, and says in how many nanoseconds of the system's clock it ran.
fn sample(event: Event, how: How, iterations: u64) -> Result<(Records, u64), Errno> {
    let counter = Counter::of_this_task(event, how)?;
    let buffer = Buffer::of(&counter)?;
    let begun = nanoseconds();
    counted::region(counter.descriptor(), iterations);
    Ok((buffer.records(counted::region_bounds()), nanoseconds() - begun))
}

fn tell_samples(name: &str, sampled: Result<(Records, u64), Errno>) {
    match sampled {
        Ok((Records { samples, throttled, lost, inside }, nanoseconds)) => say!(
            "sampled: {name}: {samples} samples {throttled} throttled {lost} lost {inside} inside {nanoseconds} ns"
        ),
        Err(error) => say!("sampled: {name}: {error}"),
    }
}

/// `perf record` without an option but the ring.
fn at_the_default_rate() {
    let how = How { frequency: FREQUENCY, ..USER };
    tell_samples("cycles:u at 4 kHz", sample(Event::CYCLES, how, SAMPLED));
}

/// With PEBS, where there is any.
fn precise() {
    let how = How { precise: 2, ..USER };
    let cycles = How { period: 1_000_000, ..how };
    tell_samples("cycles:upp", sample(Event::CYCLES, cycles, SAMPLED));
    tell_samples("cycles:up", sample(Event::CYCLES, How { precise: 1, ..cycles }, SAMPLED));
    let instructions = How { period: 100_000, ..how };
    tell_samples("instructions:upp", sample(Event::INSTRUCTIONS, instructions, SAMPLED));
    // So often that a device would now and then interrupt between an overflow and its record.
    let often = How { period: 10_000, ..how };
    tell_samples("often:upp", sample(Event::INSTRUCTIONS, often, SAMPLED));
    let seldom = How { period: 100, ..how };
    tell_samples("branches:upp", sample(Event::BRANCHES, seldom, SAMPLED_BRANCHES));
}

/// Several events in both rings at once, at a rate that their handlers have no time for, with the kernel's throttling
/// switched off.
fn everything_without_throttling() {
    if let Err(error) = switch_throttling_off() {
        return say!("sampled: everything: {error}");
    }
    let how = How { frequency: 20 * FREQUENCY, ..How::default() };
    let others = [Event::CYCLES, Event::INSTRUCTIONS, Event::CYCLES]
        .map(|event| Counter::of_this_task(event, how));
    for counter in others.iter().flatten() {
        counter.enable();
    }
    tell_samples("everything", sample(Event::INSTRUCTIONS, how, SAMPLED / 100));
}

/// Writes to two files of procfs, which has to be mounted first.
fn switch_throttling_off() -> Result<(), Errno> {
    mounted(c"/proc", c"proc")?;
    // The rate first, which cannot be set while throttling is off.
    write_file(c"/proc/sys/kernel/perf_event_max_sample_rate", c"100000")?;
    write_file(c"/proc/sys/kernel/perf_cpu_time_max_percent", c"0")
}

/// Runs this file as the program `name`, with all of `events` counted as `how` says.
pub fn program<const N: usize>(
    name: &CStr,
    events: [Event; N],
    how: How,
) -> Result<[u64; N], Errno> {
    let (mut pipe, mut status) = ([0i32; 2], 0i32);
    // SAFETY: the kernel writes two descriptors.
    unsafe { syscall!(Sysno::pipe2, &raw mut pipe, 0) }?;
    // SAFETY: this program has one thread, and the child does no more than wait and execute another.
    let child = unsafe { syscall!(Sysno::fork) }?;
    if child == 0 {
        start_counted_program(pipe[0], name);
    }
    let counters = events.map(|event| Counter::of_program_in(child, event, how));
    // SAFETY: reads one byte; the child waits for it.
    unsafe { syscall!(Sysno::write, pipe[1], c"x".as_ptr(), 1) }?;
    // SAFETY: the kernel writes a status.
    unsafe { syscall!(Sysno::wait4, child, &raw mut status, 0, 0) }?;
    if status != 0 {
        return Err(Errno::ECHILD);
    }
    let mut counts = [0; N];
    for (count, counter) in counts.iter_mut().zip(counters) {
        *count = counter?.read()?;
    }
    Ok(counts)
}

/// In the child: waits until the counters are there.
fn start_counted_program(pipe: i32, name: &CStr) -> ! {
    let mut byte = 0u8;
    let arguments = [name.as_ptr(), core::ptr::null()];
    // SAFETY: reads one byte into a variable; the argument list ends with a null pointer. Neither call's failure needs
    // handling beyond the status with which the child ends.
    unsafe {
        let _ = syscall!(Sysno::read, pipe, &raw mut byte, 1);
        let _ = syscall!(Sysno::execve, c"/init".as_ptr(), arguments.as_ptr(), 0);
        let _ = syscall!(Sysno::exit, 1);
    }
    unreachable!("exit does not return")
}
