//! perf_event_open(2), as far as one counter of retired instructions in user mode needs it.

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

const TYPE_HARDWARE: u32 = 0;
const COUNT_HW_INSTRUCTIONS: u64 = 1;
/// Bits of `flags`.
const DISABLED: u64 = 1 << 0;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const ENABLE_ON_EXEC: u64 = 1 << 12;
/// Also tell how long the event was enabled and how long it was on a counter.
const FORMAT_TIMES: u64 = 0b11;

/// An event that is being counted.
pub struct Counter(i32);

impl Counter {
    /// Counts for this task, once it is switched on.
    pub fn of_this_task() -> Result<Self, Errno> {
        open(0, DISABLED)
    }

    /// Counts for the task `id` from the moment when it executes another program.
    pub fn of_program_in(id: usize) -> Result<Self, Errno> {
        open(id, DISABLED | ENABLE_ON_EXEC)
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

fn open(task: usize, flags: u64) -> Result<Counter, Errno> {
    const ANY_CPU: i64 = -1;
    const NO_GROUP: i64 = -1;
    let attributes = Attributes {
        kind: TYPE_HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: COUNT_HW_INSTRUCTIONS,
        read_format: FORMAT_TIMES,
        flags: flags | EXCLUDE_KERNEL | EXCLUDE_HV,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads the structure.
    let opened = unsafe {
        syscall!(Sysno::perf_event_open, &raw const attributes, task, ANY_CPU, NO_GROUP, 0)
    }?;
    Ok(Counter(opened as i32))
}
