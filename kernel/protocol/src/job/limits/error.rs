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
    /// More addresses than debug registers.
    #[error(
        "task `{0}` has {1} addresses at which counting starts or stops; the processor has 4 debug registers"
    )]
    GatePoints(String, usize),
    /// The same address twice.
    #[error("{1} of task `{0}` is given twice")]
    GateTwice(String, String),
    /// A length that no debug register has.
    #[error("{0} bytes of data cannot be watched; a debug register watches 1, 2, 4 or 8")]
    GateBytes(u64),
    /// Data that a debug register of that length cannot watch.
    #[error(
        "{0} is no multiple of {1}, and a debug register watches bytes from a multiple of their number"
    )]
    GateAlign(String, u64),
    /// Not in the task's memory.
    #[error("{0} is not in memory: {1} has {2} bytes on either side")]
    GateBeyond(String, &'static str, i64),
    /// An instruction in data.
    #[error(
        "{0} is data, where no instruction is executed: write it as {{ write = … }} or {{ access = … }}"
    )]
    GateData(String),
    /// A write to code.
    #[error("the code of task `{0}` is never written to: it is read and executed only")]
    GateCode(String),
    /// Depth without addresses.
    #[error("nested is for counting that starts and stops at addresses: start-at is missing")]
    GateNested,
    /// Addresses start and stop one set.
    #[error(
        "start-at and stop-at stand beside bind or sets; what they count is the tasks that they name"
    )]
    GateBound,
    /// Nothing starts.
    #[error("counting of task `{0}` stops at addresses, but starts at none: start-at is missing")]
    GateNeverStarts(String),
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
    /// What `only` cannot be.
    #[error("only: {0}")]
    Only(&'static str),
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
    /// Where a task may run, or what does not go there with it.
    #[error("{0}")]
    Affinity(&'static str),
    /// A generator without use.
    #[error("jitter is given, but tick-ns is 0: there are no ticks to spread")]
    JitterWithoutTicks,
    /// A series without a clock.
    #[error("interval-ns is given, but tick-ns is 0: rows of the series end at ticks")]
    IntervalWithoutTick,
    /// Two that start and stop counting.
    #[error("console is given beside start-at or stop-at: either starts and stops counting")]
    ConsoleWithGate,
    /// A console that would be on several processors.
    #[error(
        "console is given, but tasks or sets are on several processors; its own is the only one"
    )]
    ConsoleOfSeveral,
    /// Times without a clock.
    #[error("at-us or until-us is given, but tick-ns is 0: sets are bound and released at ticks")]
    TimeWithoutTick,
    /// A set that would be released as it is bound.
    #[error("a set is released at the tick or marker at which it is bound, or before")]
    BoundForNoTime,
    /// Rows of a set that may have no counters.
    #[error(
        "interval-ns is given beside sets with at, until or wait: a series has no rows of a set that has no counters"
    )]
    SeriesOfScheduled,
    /// A marker is reached on one processor.
    #[error(
        "set `{0}` needs the counters of several processors, and a marker is reached on one: give the sets of this item \
         one processor each, or at-us and until-us in place of markers"
    )]
    MarkerOfSeveral(String),
    /// Two that bind and release sets.
    #[error("console is given beside sets with at, until or wait: either says who counts when")]
    ConsoleOfScheduled,
    /// Two ways to say what is counted, and for whom.
    #[error("events, together, bind or inherit stand beside sets; give each set its own")]
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
    /// What a history cannot have.
    #[error("history: {0}")]
    History(&'static str),
    /// An empty name.
    #[error("the name is empty")]
    EmptyName,
}
