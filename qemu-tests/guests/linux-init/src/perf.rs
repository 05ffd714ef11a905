//! perf_event_open(2), as far as counting and sampling one event of a task needs it.

use syscalls::{Errno, Sysno, syscall};

/// The first published form of `struct perf_event_attr` (PERF_ATTR_SIZE_VER0), which every kernel takes.
#[derive(Default)]
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config_1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64);

/// An event: `type` and `config` of the attributes.
#[derive(Clone, Copy)]
pub struct Event(u32, u64);

/// PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_RAW.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const HARDWARE_CACHE: u32 = 3;
const RAW: u32 = 4;

impl Event {
    pub const CYCLES: Self = Self(HARDWARE, 0);
    pub const INSTRUCTIONS: Self = Self(HARDWARE, 1);
    pub const CACHE_MISSES: Self = Self(HARDWARE, 3);
    pub const BRANCHES: Self = Self(HARDWARE, 4);
    pub const BRANCH_MISSES: Self = Self(HARDWARE, 5);
    pub const TASK_CLOCK: Self = Self(SOFTWARE, 1);
    pub const PAGE_FAULTS: Self = Self(SOFTWARE, 2);
    pub const CONTEXT_SWITCHES: Self = Self(SOFTWARE, 3);
    pub const MIGRATIONS: Self = Self(SOFTWARE, 4);
    /// First-level data cache, read, accesses.
    pub const L1_LOADS: Self = Self(HARDWARE_CACHE, 0);

    /// Cycles in which two loads or more retire: MEM_INST_RETIRED.ALL_LOADS of Skylake, LsDispatch of Zen, with a counter mask
    /// of 2. An emulated PMU has to see each instruction for it.
    pub fn two_loads_at_once() -> Self {
        const COUNTER_MASK: u64 = 2 << 24;
        let vendor = core::arch::x86_64::__cpuid(0).ebx.to_le_bytes();
        let loads = if vendor == *b"Genu" { 0x81d0 } else { 0x0129 };
        Self(RAW, loads | COUNTER_MASK)
    }
}

/// What is counted of an event, and how it is sampled.
#[derive(Clone, Copy, Default)]
pub struct How {
    /// In ring 3 alone.
    pub user: bool,
    /// It starts when the task executes another program.
    pub on_exec: bool,
    /// A sample for each so many events.
    pub period: u64,
    /// So many samples a second.
    pub frequency: u64,
    /// How precise the samples' addresses have to be, 0 to 3.
    pub precise: u64,
}

/// PERF_SAMPLE_IP.
const SAMPLE_IP: u64 = 1;
/// Bits of `flags`.
const DISABLED: u64 = 1 << 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const FREQUENCY: u64 = 1 << 10;
const ENABLE_ON_EXEC: u64 = 1 << 12;
const PRECISE_SHIFT: u32 = 15;
/// Also tell how long the event was enabled and how long it was on a counter.
const FORMAT_TIMES: u64 = 0b11;

/// An event that is being counted.
pub struct Counter(i32);

impl Counter {
    /// Counts `event` for this task, once it is switched on.
    pub fn of_this_task(event: Event, how: How) -> Result<Self, Errno> {
        open(0, ANY_PROCESSOR, event, how)
    }

    /// Counts `event` for the task `id` from the moment when it executes another program.
    pub fn of_program_in(id: usize, event: Event, how: How) -> Result<Self, Errno> {
        open(id, ANY_PROCESSOR, event, How { on_exec: true, ..how })
    }

    /// Counts `event` for all tasks on a processor, once it is switched on.
    pub fn of_processor(processor: usize, event: Event, how: How) -> Result<Self, Errno> {
        open(ANY_TASK, processor as i64, event, how)
    }

    /// Switches it on.
    pub fn enable(&self) {
        const ENABLE: u32 = 0x2400;
        // SAFETY: a call that takes a descriptor and no pointer.
        let _ = unsafe { syscall!(Sysno::ioctl, self.0, ENABLE, 0) };
    }

    /// Counts `event` for this task on a processor, once it is switched on.
    pub fn of_this_task_on(processor: usize, event: Event, how: How) -> Result<Self, Errno> {
        open(0, processor as i64, event, how)
    }

    /// Its file descriptor.
    pub fn descriptor(&self) -> i32 {
        self.0
    }

    /// The count. An event that shared its counter with others has none: ENODATA.
    pub fn read(&self) -> Result<u64, Errno> {
        let mut words = [0u64; 3];
        // SAFETY: the kernel writes as many bytes as the array has.
        unsafe { syscall!(Sysno::read, self.0, words.as_mut_ptr(), size_of_val(&words)) }?;
        let [count, enabled, running] = words;
        if running == enabled && running > 0 { Ok(count) } else { Err(Errno::ENODATA) }
    }
}

const ANY_TASK: usize = usize::MAX;
const ANY_PROCESSOR: i64 = -1;

fn open(task: usize, processor: i64, event: Event, how: How) -> Result<Counter, Errno> {
    const NO_GROUP: i64 = -1;
    let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
    let sampled = how.period | how.frequency > 0;
    let attributes = Attributes {
        kind: event.0,
        size: size_of::<Attributes>() as u32,
        config: event.1,
        sample_period: how.period | how.frequency,
        sample_type: bit(sampled, SAMPLE_IP),
        read_format: FORMAT_TIMES,
        flags: DISABLED
            | EXCLUDE_HV
            | bit(how.user, EXCLUDE_KERNEL)
            | bit(how.frequency > 0, FREQUENCY)
            | bit(how.on_exec, ENABLE_ON_EXEC)
            | how.precise << PRECISE_SHIFT,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads the structure.
    let opened = unsafe {
        syscall!(Sysno::perf_event_open, &raw const attributes, task, processor, NO_GROUP, 0)
    }?;
    Ok(Counter(opened as i32))
}
