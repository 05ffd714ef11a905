//! What is wrong with a value.

use alloc::boxed::Box;
use alloc::string::String;
use thiserror::Error;

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
    /// Memory of a fact sheet that has no such size.
    #[error("the memory of a fact sheet is {0} bytes; it must be a power of two, at least 8 MiB")]
    FactBytes(u64),
    /// A rate that the UART cannot make.
    #[error(
        "baud is {0}; it must divide 115200 without remainder (115200, 57600, 38400, 9600, ...)"
    )]
    Baud(u32),
    /// An expectation that no value can meet.
    #[error("the job expects `{figure}` to be at least {min} and at most {max}")]
    EmptyExpectation { figure: String, min: f64, max: f64 },
    /// An expectation that is not a number.
    #[error("expect: {1} of `{0}` is not a finite number")]
    NotFinite(String, &'static str),
    /// An expectation without bounds.
    #[error("the job expects nothing of `{0}`: give a number, min, max, or both of these")]
    NothingExpected(String),
    /// Counting would start in one task and stop in another.
    #[error(
        "counting starts and stops at addresses of one task, which has its own address space; they are in `{0}` and `{1}`"
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
        "start-at and stop-at cannot be given with bind or sets: they name the task that is counted"
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
    /// The PMU cannot filter as exact mode does.
    #[error(
        "exact.verify compares with the PMU, which does not have this filter; give one of the two"
    )]
    VerifyFiltered,
    /// What no-memory mode has no room for.
    #[error("no-memory is set, but {0} must be kept in memory")]
    NoMemory(&'static str),
    /// Machine options are the boot processor's.
    #[error("machine options are only for [[snippet]], not for several processors")]
    ProcessorsMachine,
    /// A way of measuring that ring 3 does not allow.
    #[error("ring = 3: {0}")]
    UserRing(&'static str),
    /// What 32-bit code does not allow.
    #[error("bits = 32: {0}")]
    Compatibility(&'static str),
    /// What a call of a function does not allow.
    #[error("function: {0}")]
    Call(&'static str),
    /// A value of a task is out of its bounds.
    #[error("task {index} (`{name}`): {error}")]
    Task { index: usize, name: String, error: Box<LimitError> },
    /// A value of a piece of memory is out of its bounds.
    #[error("memory `{name}`: {error}")]
    Memory { name: String, error: Box<LimitError> },
    /// A name that no symbol can have.
    #[error("its name may have letters, digits and _")]
    MemoryName,
    /// Memory where none can be, or of nothing.
    #[error("{0}")]
    MemoryPlace(&'static str),
    /// Two of one name.
    #[error("the item has another one with this name")]
    MemoryTwice,
    /// A distance that splits pointers.
    #[error("stride is {0}; it must be a multiple of 8, the bytes of a pointer")]
    Stride(u32),
    /// A task's parent does not stand before it.
    #[error(
        "its parent is task {parent}; a parent must come before its children, so below {index}"
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
    #[error("interval-ns is given, but a series has the rows of one set that counts one processor")]
    SeriesOfSeveral,
    /// Two ways to say what is counted.
    #[error("events and sets are both given; give each set its own events")]
    EventsAndSets,
    /// One task in two places.
    #[error("bind names task {0} twice")]
    BoundTwice(u16),
    /// Neither an event nor a timer.
    #[error("there is nothing to sample by: give events, or interval-ns")]
    NothingToSampleBy,
    /// Options of single samples without these.
    #[error(
        "registers, vectors, counters and on-full = \"stop\" need keep = \"samples\": a histogram has none of them"
    )]
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
