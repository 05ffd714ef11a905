//! What job files say of snippets, before anything is decided.

use crate::events::EventText;
use crate::job::assemble::Syntax;
use crate::job::exact::RawExact;
use crate::job::expect::RawExpect;
use crate::job::form::Form;
use crate::job::function::{Argument, RawFiles, RawFunction};
use crate::job::history::RawHistory;
use crate::job::machine::MachineOptions;
use crate::job::memory::MemoryFile;
use crate::job::only::RawOnly;
use crate::job::schema::{ExpectText, FilesText, HistoryText, Width};
use crate::limits::LimitTable;
use crate::metrics::Asked;
use protocol::bits::Bits;
use protocol::core_kind::CoreKind;
use protocol::job::Difference;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

/// What holds for every snippet that does not say otherwise.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Defaults")]
pub(super) struct RawOptions {
    /// Dialect of the assembly. Default: intel.
    pub(super) syntax: Option<Syntax>,
    /// Copies of the body. Default: 100; 1 for a history and for a function.
    pub(super) unroll: Option<u32>,
    /// Iterations of a loop around the copies. Default: 0, no loop.
    pub(super) r#loop: Option<u64>,
    /// Runs before the measured ones. Default: 5.
    pub(super) warmup: Option<u32>,
    /// Measured runs. Default: 10.
    pub(super) runs: Option<u32>,
    /// What is subtracted from what. Default: double.
    pub(super) difference: Option<Difference>,
    /// Whether the report lists the value of every run. Default: false.
    pub(super) values: Option<bool>,
    /// What is counted beside the TSC. Events that do not fit at once are counted in further passes.
    pub(super) events: Option<Vec<EventText>>,
    /// Count the events of some instructions only. It needs the emulated PMU; on others `only` of a sample estimates. As a default it
    /// is not for snippets with exact or history, nor for `[[processors]]`.
    pub(super) only: Option<RawOnly>,
    /// Step through the code in place of measuring it: true, or a table with filters.
    pub(super) exact: Option<RawExact>,
    /// Show in which cycles events happen: the number of cycles, or a table.
    #[schemars(with = "Option<HistoryText>")]
    pub(super) history: Option<RawHistory>,
    /// Runs before the first warm-up. Default: 0.
    pub(super) initial_warmup: Option<u32>,
    /// Bytes from a multiple of 64 to the body, 0 to 63. Default: 0.
    pub(super) alignment_offset: Option<u8>,
    /// Keep what is measured in registers, not in memory. Default: false.
    pub(super) no_memory: Option<bool>,
    /// Drain the front end of the processor before the body. Default: false.
    pub(super) drain_frontend: Option<bool>,
    /// The state of the machine in which the code is measured.
    pub(super) machine: Option<MachineOptions>,
    /// 64, or 32 for code of compatibility mode. Default: 64.
    #[schemars(with = "Option<Width>")]
    pub(super) bits: Option<Bits>,
    /// Memory besides the five areas of 1 MiB.
    #[serde(default)]
    pub(super) memory: Vec<MemoryFile>,
}

/// A piece of code to measure.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
#[schemars(rename = "Snippet")]
pub(crate) struct RawSnippet {
    /// Its name. Default: its code.
    pub(super) name: Option<String>,
    /// The code to measure: the body.
    #[schemars(with = "Option<String>")]
    pub(super) asm: Option<Spanned<String>>,
    /// Files of compiled code, in place of `asm`: one, or a list.
    #[schemars(with = "Option<FilesText>")]
    pub(super) object: Option<RawFiles>,
    /// The function of `object` to measure.
    pub(super) function: Option<String>,
    /// Arguments of the function: integers, or texts such as `memory:list+64`.
    pub(super) args: Option<Vec<Argument>>,
    /// A function of `object` that runs before each run, unmeasured.
    pub(super) setup: Option<String>,
    /// A function of `object` that runs behind each run, unmeasured.
    pub(super) teardown: Option<String>,
    /// An instruction form whose latency is measured, in place of `asm`.
    pub(super) latency: Option<Form>,
    /// An instruction form whose throughput is measured, in place of `asm`.
    pub(super) throughput: Option<Form>,
    /// Only in `[[processors]]`: the number of the processor to run on. Default: all.
    #[schemars(with = "Option<u16>")]
    pub(super) cpu: Option<Spanned<u16>>,
    /// Only in `[[processors]]`: the kind of core to run on, among whose processors `cpu` is then counted. Default: each kind, one
    /// after the other, with a result of its own.
    #[schemars(with = "Option<CoreKind>")]
    pub(super) core: Option<Spanned<CoreKind>>,
    /// Only in `[[processors]]`: run a loop with an interrupt at every so many instructions.
    #[schemars(with = "Option<u64>")]
    pub(super) interrupt_every: Option<Spanned<u64>>,
    /// Only in `[[processors]]`: so many rounds in which all processors at once take a lock, send each other interrupts, take one of
    /// their own PMU's vector, and start and stop a counter.
    #[schemars(with = "Option<u32>")]
    pub(super) contention: Option<Spanned<u32>>,
    /// Code that runs once, before everything else.
    #[schemars(with = "Option<String>")]
    pub(super) one_time_init: Option<Spanned<String>>,
    /// Code that runs before each run, unmeasured.
    #[schemars(with = "Option<String>")]
    pub(super) init: Option<Spanned<String>>,
    /// Code that runs directly before the body.
    #[schemars(with = "Option<String>")]
    pub(super) late_init: Option<Spanned<String>>,
    /// What figures must come to: a number for the TSC ticks, bounds, or a table of figures.
    #[schemars(with = "Option<ExpectText>")]
    pub(super) expect: Option<RawExpect>,
    /// Metrics to show: names of our own or of perfmon's for the processor, `topdown`, or `topdown-N` down to a level.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) metrics: Vec<Asked>,
    /// Whether it passes although an event was not counted. Default: as the job says.
    pub(super) allow_uncounted: Option<bool>,
    pub(super) syntax: Option<Syntax>,
    pub(super) unroll: Option<u32>,
    pub(super) r#loop: Option<u64>,
    pub(super) warmup: Option<u32>,
    pub(super) runs: Option<u32>,
    pub(super) difference: Option<Difference>,
    pub(super) values: Option<bool>,
    pub(super) events: Option<Vec<EventText>>,
    pub(super) only: Option<RawOnly>,
    pub(super) exact: Option<RawExact>,
    #[schemars(with = "Option<HistoryText>")]
    pub(super) history: Option<RawHistory>,
    pub(super) initial_warmup: Option<u32>,
    pub(super) alignment_offset: Option<u8>,
    pub(super) no_memory: Option<bool>,
    pub(super) drain_frontend: Option<bool>,
    pub(super) machine: Option<MachineOptions>,
    #[schemars(with = "Option<Width>")]
    pub(super) bits: Option<Bits>,
    #[serde(default)]
    pub(super) memory: Vec<MemoryFile>,
    /// How far figures may get worse from one report to the next.
    pub(super) limits: Option<LimitTable>,
}

impl RawSnippet {
    /// Takes out what it says of a function.
    pub(super) fn function(&mut self) -> RawFunction {
        RawFunction {
            object: self.object.take(),
            function: self.function.take(),
            args: self.args.take(),
            setup: self.setup.take(),
            teardown: self.teardown.take(),
        }
    }
}
