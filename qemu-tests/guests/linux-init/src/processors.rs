//! Counts on each processor of several: one after the other, all at once, of a task that moves between them, and of a
//! processor that was switched off and on again.
//!
//! Each is one line, `processor N: NAME = COUNTED expected EXPECTED`.

use crate::console::say;
use crate::counted::{region, region_bounds, region_branches, region_instructions};
use crate::perf::{Counter, Event, How};
use crate::samples::Buffer;
use crate::{USER, kernel_log, mounted, write_file};
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use syscalls::{Errno, Sysno, syscall};

/// Words of a set of processors.
const SET: usize = 16;
/// Iterations of the counted loop, two instructions each: many times the kernel's ticks.
const ITERATIONS: u64 = 4_000_000;
/// Instructions from one sample to the next.
const PERIOD: u64 = 100_000;

/// Iterations of the loop that is stepped, and of those beside it, which last longer than their turns would if each were as
/// long as the hypervisor's work for some of the steps.
const STEPPED: u64 = 1_000;
const BESIDE: u64 = 10_000_000;

/// How many processors the machine has.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What a processor has counted, and what it should have.
type Count = Result<(u64, u64), Errno>;

/// How many processors this program may run on.
pub fn count() -> usize {
    let mut set = [0u64; SET];
    // SAFETY: the kernel writes as many bytes as the array has.
    let _ = unsafe { syscall!(Sysno::sched_getaffinity, 0, size_of_val(&set), &raw mut set) };
    set.iter().map(|word| word.count_ones() as usize).sum()
}

/// All of them.
pub fn all(count: usize) {
    COUNT.store(count, Relaxed);
    for processor in 0..count {
        run(&[processor], "alone", everything);
    }
    let every: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7][..count.min(8)];
    run(every, "together", instructions);
    run(every, "branches", branches);
    run(every, "samples", samples);
    run(every, "nanoseconds", stepped_beside_others);
    run(&[0], "moved", moved);
    if let Err(error) = switch_off_and_on() {
        say!("processor 1: off and on: {error}");
    }
    run(every, "again", instructions);
}

fn tell(processor: usize, name: &str, count: Count) {
    match count {
        Ok((counted, expected)) => {
            say!("processor {processor}: {name} = {counted} expected {expected}");
        }
        Err(error) => say!("processor {processor}: {name}: {error}"),
    }
}

/// Everything that runs in ring 3 on the processor, where nothing else does as soon as the first program waits.
fn everything(processor: usize) -> Count {
    const NAP: [u64; 2] = [0, 5_000_000];
    // SAFETY: the kernel reads two words.
    let _ = unsafe { syscall!(Sysno::nanosleep, NAP.as_ptr(), 0) };
    let counter = Counter::of_processor(processor, Event::INSTRUCTIONS, USER)?;
    region(counter.descriptor(), ITERATIONS);
    Ok((counter.read()?, region_instructions(ITERATIONS)))
}

fn instructions(processor: usize) -> Count {
    let counter = Counter::of_this_task_on(processor, Event::INSTRUCTIONS, USER)?;
    region(counter.descriptor(), ITERATIONS);
    Ok((counter.read()?, region_instructions(ITERATIONS)))
}

fn branches(processor: usize) -> Count {
    let counter = Counter::of_this_task_on(processor, Event::BRANCHES, USER)?;
    region(counter.descriptor(), ITERATIONS);
    Ok((counter.read()?, region_branches(ITERATIONS)))
}

fn samples(processor: usize) -> Count {
    let how = How { period: PERIOD, ..USER };
    let counter = Counter::of_this_task(Event::INSTRUCTIONS, how)?;
    let buffer = Buffer::of(&counter)?;
    region(counter.descriptor(), ITERATIONS);
    let records = buffer.records(region_bounds());
    if records.samples != records.inside || records.lost | records.throttled != 0 {
        say!("processor {processor}: samples: {records:?}");
    }
    Ok((records.inside, region_instructions(ITERATIONS) / PERIOD))
}

/// The last processor is stepped, while the others execute plain code: how long it takes, and how long its instructions would
/// take it alone.
fn stepped_beside_others(processor: usize) -> Count {
    if processor + 1 < COUNT.load(Relaxed) {
        let counter = Counter::of_this_task(Event::INSTRUCTIONS, USER)?;
        region(counter.descriptor(), BESIDE);
        return Ok((0, 0));
    }
    let counter = Counter::of_this_task(Event::two_loads_at_once(), USER)?;
    let begun = now();
    region(counter.descriptor(), STEPPED);
    let took = now() - begun;
    counter.read()?;
    Ok((took, region_instructions(STEPPED)))
}

/// The TSC: a nanosecond each.
fn now() -> u64 {
    // SAFETY: reads the counter, which Linux lets programs do.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// A task that is on each processor once.
fn moved(_: usize) -> Count {
    let processors = COUNT.load(Relaxed);
    let counter = Counter::of_this_task(Event::INSTRUCTIONS, USER)?;
    for processor in 0..processors {
        stay_on(processor)?;
        region(counter.descriptor(), ITERATIONS);
    }
    Ok((counter.read()?, processors as u64 * region_instructions(ITERATIONS)))
}

fn stay_on(processor: usize) -> Result<(), Errno> {
    let set = [1u64 << processor];
    // SAFETY: the kernel reads the set.
    unsafe { syscall!(Sysno::sched_setaffinity, 0, size_of_val(&set), &raw const set) }?;
    Ok(())
}

/// Does `work` on each of `processors`, in a task of its own each, all of which begin at once.
fn run(processors: &[usize], name: &str, work: fn(usize) -> Count) {
    if let Err(error) = try_run(processors, name, work) {
        say!("processors: {name}: {error}");
    }
}

fn try_run(processors: &[usize], name: &str, work: fn(usize) -> Count) -> Result<(), Errno> {
    let (mut start, mut result, mut status) = ([0i32; 2], [0i32; 2], 0i32);
    let bytes = size_of::<Told>();
    // SAFETY: the kernel writes two descriptors each.
    unsafe {
        syscall!(Sysno::pipe2, &raw mut start, 0)?;
        syscall!(Sysno::pipe2, &raw mut result, 0)?;
    }
    for &processor in processors {
        // SAFETY: this program has one thread.
        if unsafe { syscall!(Sysno::fork) }? == 0 {
            let mut byte = 0u8;
            let begun = stay_on(processor).and_then(|()| {
                // SAFETY: reads a byte into a variable.
                unsafe { syscall!(Sysno::read, start[0], &raw mut byte, 1) }
            });
            let told = Told::new(processor, begun.and_then(|_| work(processor)));
            // SAFETY: writes a structure, and ends.
            unsafe {
                let _ = syscall!(Sysno::write, result[1], &raw const told, bytes);
                let _ = syscall!(Sysno::exit, 0);
            }
        }
    }
    for _ in processors {
        // SAFETY: writes a byte; each of the tasks takes one.
        unsafe { syscall!(Sysno::write, start[1], c"x".as_ptr(), 1) }?;
    }
    for _ in processors {
        let mut told = Told::default();
        // SAFETY: the kernel writes a structure of numbers, and a status.
        unsafe {
            syscall!(Sysno::read, result[0], &raw mut told, bytes)?;
            syscall!(Sysno::wait4, usize::MAX, &raw mut status, 0, 0)?;
        }
        tell(told.processor, name, told.count());
    }
    Ok(())
}

/// What a task tells.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Told {
    processor: usize,
    counted: u64,
    expected: u64,
    error: i32,
}

impl Told {
    fn new(processor: usize, count: Count) -> Self {
        let (counted, expected) = count.unwrap_or_default();
        Self { processor, counted, expected, error: count.err().map_or(0, Errno::into_raw) }
    }

    fn count(&self) -> Count {
        if self.error == 0 {
            Ok((self.counted, self.expected))
        } else {
            Err(Errno::new(self.error))
        }
    }
}

/// The second processor, which takes INIT and a start-up interrupt to come back.
fn switch_off_and_on() -> Result<(), Errno> {
    const ONLINE: &CStr = c"/sys/devices/system/cpu/cpu1/online";
    mounted(c"/sys", c"sysfs")?;
    for text in [c"0", c"1"] {
        write_file(ONLINE, text)?;
    }
    Ok(())
}

/// Has the kernel show what each processor is at: it sends the others an NMI. The log has it.
pub fn backtraces() {
    let asked = mounted(c"/proc", c"proc").and_then(|()| write_file(c"/proc/sysrq-trigger", c"l"));
    match asked {
        Ok(()) => kernel_log::show_nmis(),
        Err(error) => say!("nmi: {error}"),
    }
}
