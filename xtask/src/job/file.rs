//! The job file.

mod forms;
mod lines;
mod raw;
mod read;
mod sections;
mod snippet;

use super::assemble::Syntax;
use super::exact::ExactOptions;
use super::expect::CriteriaFile;
use super::form::Wanted;
use super::function::FunctionFile;
use super::history::HistoryOptions;
use super::machine::MachineOptions;
use super::memory::MemoryFile;
use crate::events::EventText;
use crate::metrics::Asked;
use crate::metrics::request::Ask;
pub(crate) use forms::RawForms;
pub(crate) use lines::Text;
pub(super) use lines::{Lines, Spans, lines, position};
use protocol::bits::Bits;
use protocol::core_kind::CoreKind;
use protocol::job::Difference;
use protocol::job::exact::Filter;
pub(crate) use raw::RawSnippet;
pub use read::{parse, read};
pub use sections::JobFile;
pub(crate) use sections::{FileItem, PackedItem, RawJob, Section};
pub(super) use snippet::name_of;

/// Most processors that a guest can have.
pub const MAX_CPUS: u32 = 255;

/// How often and in what arrangement a snippet runs, all decided.
#[derive(Clone, Debug)]
pub struct Options {
    /// Copies of the body.
    pub unroll: u32,
    /// Whether the job says how many; else it is the default.
    pub unroll_given: bool,
    /// Iterations of the loop around them; 0: none.
    pub loop_count: u64,
    /// Runs before measuring.
    pub warmup: u32,
    /// Measured runs.
    pub runs: u32,
    /// What is subtracted from what.
    pub difference: Difference,
    /// Whether every run's value is listed.
    pub values: bool,
    /// What is counted beside the TSC.
    pub events: Vec<EventText>,
    /// What stands around the body.
    pub around: Around,
    /// What is asked of the machine.
    pub machine: MachineOptions,
    /// What the code is assembled and run as.
    pub bits: Bits,
    /// Of which instructions the events are counted.
    pub only: Filter<'static>,
    /// `[defaults]` says so, and not the snippet itself.
    pub only_by_default: bool,
    /// Memory besides the five areas.
    pub memory: Vec<MemoryFile>,
}

/// What the measuring code does around the body.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Around {
    /// Runs before the first warm-up.
    pub initial_warmup: u32,
    /// Bytes from a multiple of 64 to the body.
    pub alignment_offset: u8,
    /// Whether what is measured is kept in registers meanwhile.
    pub no_memory: bool,
    /// Whether the front end is drained before the body.
    pub drain_frontend: bool,
}

/// A snippet, all decided.
#[derive(Clone, Debug)]
pub struct SnippetFile {
    /// Its name.
    pub name: String,
    /// The measured code.
    pub asm: String,
    /// Code that runs before each run.
    pub init: String,
    /// Code that runs once, before everything else.
    pub one_time_init: String,
    /// Code that runs directly before the body.
    pub late_init: String,
    /// Syntax of all of them.
    pub syntax: Syntax,
    /// How it runs.
    pub options: Options,
    /// What it has to come to.
    pub criteria: CriteriaFile,
    /// How it is stepped through, if it is.
    pub exact: Option<ExactOptions>,
    /// How it is looked at cycle by cycle, if it is.
    pub history: Option<HistoryOptions>,
    /// Instruction forms that it stands for; it has no code of its own then.
    pub wanted: Option<Wanted>,
    /// A function of compiled code that it calls, in place of code of its own.
    pub function: Option<FunctionFile>,
    /// Metrics that are asked for.
    pub metrics: Vec<Asked>,
    /// The same, ready for the machine that is measured.
    pub asks: Vec<Ask>,
    /// Where it runs, if it stands in `[[processors]]`.
    pub processors: Option<OnProcessors>,
    /// Places in the file: of the snippet and of its texts.
    pub(super) spans: Option<Spans>,
}

/// Where a snippet of `[[processors]]` runs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct OnProcessors {
    /// On the processor with this number; `None`: on all.
    pub cpu: Option<u16>,
    /// On cores of this kind, among whose processors `cpu` is counted.
    pub core: Option<CoreKind>,
    /// Instructions from one interrupt to the next, in a loop of its own.
    pub interrupt_every: Option<u64>,
    /// Rounds in which all of them do the same at once.
    pub contention: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            unroll: 100,
            unroll_given: false,
            loop_count: 0,
            warmup: 5,
            runs: 10,
            difference: Difference::Double,
            values: false,
            events: Vec::new(),
            around: Around::default(),
            machine: MachineOptions::default(),
            bits: Bits::default(),
            only: Filter::default(),
            only_by_default: false,
            memory: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
