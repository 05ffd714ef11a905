//! The report: a list of records, the first [`Start`], the last [`End`].

mod all;
mod bandwidth;
mod bindings;
mod bring_up;
mod check;
mod console;
mod cores;
mod count;
pub mod digest;
mod events;
mod exact;
mod facts;
mod fault;
pub(crate) mod figure;
mod history;
pub(crate) mod item;
mod machine;
mod noise;
mod pipeline;
mod place;
mod prefetch;
mod processors;
mod qualified;
mod result;
mod sampling;
mod series;
mod tasks;
mod times;
mod uncore;

pub use all::Record;
pub use bandwidth::{BandwidthFacts, BandwidthPoint, BandwidthSum, Moving};
pub use bindings::{BindMoment, CountBinding, StaleReading};
pub use bring_up::{AcpiTable, AcpiTables, CpuidLeaves, INDEXED_LEAVES, Measure, Msrs};
pub use check::{Check, CheckVerdict, Suite};
pub use console::{
    ConsoleBefore, ConsoleEvent, ConsoleRecord, ConsoleSet, ConsoleState, ConsoleWhat,
};
pub use cores::{
    Contention, ContentionPoint, CoreFacts, CorePlace, LineAccess, LineMatrix, Waiting, Wake,
};
pub use count::{
    ChangedEvent, CountCpu, CountGate, CountInterval, CountReading, CountResult, CountShare,
    CountSnapshot, CountValue, CountedEnergy, CountedEvent, CountedSet, Eviction,
};
pub use events::EventTables;
pub use exact::{Comparison, ExactCount, ExactResult, ListedInstruction};
pub use facts::{
    CacheFact, CurvePoint, FactsResult, FactsTimer, Fit, MemoryFacts, PolicyEvidence,
    PolicySequence, TlbFact, slack,
};
pub use fault::{Crash, CrashKind, Fault, Registers};
pub use figure::{Figure, figures};
pub use history::{HistoryPass, HistoryResult, HistorySeries, StoppedBy};
pub use item::{Head, HeadMut, ItemRecord};
pub use machine::{
    Apic, ApicMode, CoreType, CountedBy, EmulatedPmu, EnergyMeter, KindOfCores, Machine,
    MemoryDomains, Pmu, PmuArchitecture, Topology, Tsc, TscSource,
};
pub use noise::{Gap, NoiseFacts, NoiseWindow, TimerJitter, TransitionCost};
pub use pipeline::{
    CodeCacheFact, DirectFact, DirectLoops, ForwardFact, FrontEndFact, HazardFact, NopLoops,
    PipelineFacts, RetireFact, ReturnsFact, StoresFact, TargetsFact, WidthFact, WindowFact,
};
pub use place::HistoryPlace;
pub use prefetch::{PrefetchFacts, PrefetchStream, Prefetched};
pub use processors::{
    ContentionRounds, Interrupts, ListedProcessor, ProcessorResult, ProcessorState,
    ProcessorsResult, Skew, Snapshot, Sum,
};
pub use qualified::Qualified;
pub use result::{
    Aggregates, Applied, Counting, EnergyReading, Metric, Miss, RetiredRecords, SnippetResult,
    Uncounted, Verdict,
};
pub use sampling::{
    AddressCount, CodePlace, DataCount, EdgeCount, OutcomeCount, RecordedBranches, RetireLatency,
    SampleResult, SampledCount, SampledProcessor, SampledStacks, Samples, SamplingCapability,
    Schedule, SourceCount, StackCount, TimerResult,
};
pub use series::Series;
pub use tasks::{
    ProcessorShare, TaskEnd, TaskResult, TaskShare, TasksResult, Ticks, Together, VectorCount,
};
pub use times::Times;
pub use uncore::CountedUncore;

use crate::hex::Hex;
use crate::job::OnEnd;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Opens the report.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Start {
    /// Always `barecount`.
    pub program: String,
    /// Version of the firmware.
    pub version: String,
    /// [`crate::PROTOCOL_VERSION`] of the firmware.
    pub protocol: u16,
    /// Address at which the firmware's image starts: subtract it from a backtrace's addresses to get
    /// those of the ELF file.
    pub image_base: Hex,
    /// TSC when the boot loader entered the firmware, and when this record was made.
    pub tsc: [u64; 2],
}

/// How far the run is.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Progress {
    /// Items done.
    pub done: u32,
    /// Items in the job.
    pub total: u32,
    /// How far the item is that runs; absent: between items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
}

/// How far an item is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Within {
    /// What is counted here.
    pub unit: Unit,
    /// So many are done.
    pub done: u64,
    /// So many there are, or may be at most.
    pub total: u64,
}

/// What an item's progress is counted in.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Runs of the code.
    Runs,
    /// Instructions that are stepped over, of as many as the limit allows.
    Steps,
    /// Rows of a history.
    Rows,
    /// Milliseconds that tasks have run, of as many as all of them may take.
    Milliseconds,
    /// Bytes of memory that are filled before the code runs.
    Bytes,
}

/// Something that did not work.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorRecord {
    /// What kind of thing went wrong.
    pub code: ErrorCode,
    /// Index of the item in the job, if the error belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    /// Name of that item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The thing, the value and the reason, for people.
    pub text: String,
    /// The exception, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// State that the snippet had changed and that was put back behind it, in the manuals' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// The item has results of other kinds of core behind this.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub more: bool,
}

/// Kinds of errors.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// No job came with the kernel.
    NoJob,
    /// The job is damaged, truncated, too new or out of bounds.
    BadJob,
    /// A snippet raised an exception.
    SnippetFault,
    /// A snippet did not end within its time limit.
    TimeLimit,
    /// A snippet that is stepped through did not end within its limit of steps.
    StepLimit,
    /// A snippet took the whole machine or the firmware down; the host tool noticed, and ran the rest in another boot.
    SnippetLost,
    /// While the item ran, something else than the firmware wrote records, or there were some that do not fit the job.
    Forged,
    /// The item changed what the firmware needs and cannot put back.
    FirmwareChanged,
    /// The item was not run, because the run ended before it.
    NotRun,
    /// An item cannot be run on this machine.
    Unsupported,
    /// An item was not run, because its code needs what this processor has not. It counts neither as passed nor as
    /// failed.
    Skipped,
    /// A device of the machine does not work as it should; measuring goes on without it.
    Device,
    /// The event tables cannot be used; raw events can.
    EventTables,
    /// An interrupt or exception came while an item ran that nothing there can have raised. What the item measured is not
    /// reported.
    StrayInterrupt,
}

/// Closes the report.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct End {
    /// How many records the report has, this one included: the sequence number of this record plus one.
    pub records: u32,
    /// How the run went as a whole.
    pub outcome: Outcome,
    /// Items that were measured and met their expectation.
    pub passed: u32,
    /// Items that missed their expectation or ended in an error.
    pub failed: u32,
    /// Items that were measured without an expectation.
    pub measured: u32,
    /// What the machine does next.
    pub on_end: OnEnd,
    /// How much of its heap the firmware used for the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap: Option<HeapUse>,
    /// How much of its main stack the boot processor used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackUse>,
}

/// Bytes of a stack.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackUse {
    /// Most that was in use at any time since the start.
    pub most: u64,
    /// How many it has.
    pub bytes: u64,
}

/// Bytes of the firmware's heap in use.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapUse {
    /// Before the first item: the job is there.
    pub before: u64,
    /// After the last one.
    pub after: u64,
    /// Most at any time between.
    pub most: u64,
}

impl End {
    /// The end of a run that did no item; the report fills in the count.
    #[must_use]
    pub fn without_items(outcome: Outcome) -> Self {
        Self {
            records: 0,
            outcome,
            passed: 0,
            failed: 0,
            measured: 0,
            on_end: OnEnd::default(),
            heap: None,
            stack: None,
        }
    }
}

/// How a run went; the host tool exits with [`Outcome::exit_code`].
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything was measured, and every expectation met.
    Pass,
    /// At least one item failed.
    Fail,
    /// There was no usable job.
    BadJob,
    /// The firmware failed.
    Crash,
    /// Nothing could be run.
    Skip,
}

impl Outcome {
    /// Exit code of the host tool: 0, 1, 2, 3 or 77.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Pass => 0,
            Outcome::Fail => 1,
            Outcome::BadJob => 2,
            Outcome::Crash => 3,
            Outcome::Skip => 77,
        }
    }
}

#[cfg(test)]
mod tests;
