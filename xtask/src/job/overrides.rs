//! What the command line changes in a job.

use super::assemble::Syntax;
use super::errors::JobError;
use super::exact::ExactOverrides;
use super::expect::CriteriaFile;
use super::file::{JobFile, Options, SnippetFile, name_of};
use super::form::{Form, Wanted};
use super::function::{Argument, FunctionFile};
use super::history::HistoryOverrides;
use super::machine::MachineOptions;
use super::memory::{self, MemoryFile};
use super::metrics::MetricOptions;
use crate::cli::Shard;
use crate::events::{EventFile, EventText};
use clap::Args;
use protocol::bits::Bits;
use protocol::job::{Difference, limits};
use std::path::PathBuf;

/// What the command line changes in a job.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Job")]
pub struct Overrides {
    /// Is this PMU honest? Run experiments whose counts are known, in front of the job's items or alone, and certify
    /// each event: exact, exact up to a constant, noisy, or lying.
    #[arg(long)]
    pub honest: bool,
    /// Find out what this machine is, in front of the job's items or alone: CPUID, the PMU's registers as they were found, ACPI,
    /// timers, then the conformance suite by what was measured, then costs. What the report holds, `replay` emulates.
    #[arg(long, conflicts_with = "honest")]
    pub bring_up: bool,
    /// What is this processor? Measure its caches, TLBs, prefetchers and bandwidth, its core, latencies between processors, and stolen
    /// time, in front of the job's other items of that kind or alone.
    #[arg(long)]
    pub facts: bool,
    /// Measure this code. Instructions are separated by `;` or line ends.
    #[arg(long, value_name = "CODE")]
    pub asm: Option<String>,
    /// Measure the benchmarks of this Rust package, which registers them with the crate `barecount` (`new` writes an example).
    #[arg(long = "crate", value_name = "PATH", conflicts_with_all = ["asm", "object", "function"])]
    pub package: Option<PathBuf>,
    /// With --crate, or --object without --function: only the benchmarks whose name contains this.
    #[arg(long, value_name = "FILTER")]
    pub bench: Option<String>,
    /// The object file, static library or executable that has the function; without --function, the benchmarks that it
    /// registers by barecount.h or the crate `barecount`. Can be given several times.
    #[arg(long, value_name = "FILE")]
    pub object: Vec<PathBuf>,
    /// Measure this function of --object. Can be given several times: one item each.
    #[arg(long, value_name = "NAME")]
    pub function: Vec<String>,
    /// With --function: give it this argument, an integer or a place in a memory area. Can be given several times.
    #[arg(long = "arg", value_name = "VALUE", allow_hyphen_values = true)]
    pub arguments: Vec<Argument>,
    /// With --function: call this function of --object before each run, unmeasured, with the same arguments.
    #[arg(long, value_name = "NAME")]
    pub setup: Option<String>,
    /// With --function: call this function behind each run, unmeasured.
    #[arg(long, value_name = "NAME")]
    pub teardown: Option<String>,
    /// Measure the latency of this instruction form, like `imul r64, r64`, in chains: one for each pair of a source and a
    /// destination. Can be given several times.
    #[arg(long, value_name = "FORM")]
    pub latency: Vec<Form>,
    /// Measure the throughput of this instruction form, in copies that do not wait for each other. Can be given several
    /// times.
    #[arg(long, value_name = "FORM")]
    pub throughput: Vec<Form>,
    /// Measure only this part of the forms of each `all = true`: `3/16` is the fourth of 16.
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// With --asm: code that runs before each run, unmeasured.
    #[arg(long, value_name = "CODE")]
    pub init: Option<String>,
    /// With --asm: code that runs once, before everything else.
    #[arg(long, value_name = "CODE")]
    pub one_time_init: Option<String>,
    /// With --asm: code that runs directly before the body, while the counters count.
    #[arg(long, value_name = "CODE")]
    pub late_init: Option<String>,
    /// With --asm: syntax of the code.
    #[arg(long, value_enum)]
    pub syntax: Option<Syntax>,
    /// Assemble and run every snippet as code of this width: 64, or 32 for compatibility mode.
    #[arg(long, value_name = "64|32")]
    pub bits: Option<Bits>,
    /// Copies of the body in a row, for every snippet.
    #[arg(long, value_name = "N")]
    pub unroll: Option<u32>,
    /// Iterations of a loop around the copies, for every snippet; 0: no loop.
    #[arg(long = "loop", value_name = "N")]
    pub loop_count: Option<u64>,
    /// Runs before measuring, for every snippet.
    #[arg(long, value_name = "N")]
    pub warmup: Option<u32>,
    /// Runs before the first warm-up, for every snippet.
    #[arg(long, value_name = "N")]
    pub initial_warmup: Option<u32>,
    /// Start every body so many bytes behind a multiple of 64.
    #[arg(long, value_name = "BYTES")]
    pub alignment_offset: Option<u8>,
    /// Keep the measured values in registers, not in memory. Refused if a body or late init code uses R12 or R13, or init code R9 to
    /// R13.
    #[arg(long)]
    pub no_memory: bool,
    /// Drain the front end before every body.
    #[arg(long)]
    pub drain_frontend: bool,
    /// Measured runs, for every snippet.
    #[arg(long, value_name = "N")]
    pub runs: Option<u32>,
    /// How overhead is cancelled, for every snippet: `double` runs N and 2N copies, `empty` 0 and N.
    #[arg(long, value_parser = difference, value_name = "double|empty")]
    pub difference: Option<Difference>,
    /// Events in perfmon's JSON form, merged over the tables that go along with the job. For the processor that it
    /// runs on, or another one.
    #[arg(long = "event-file", value_name = "[CPU=]FILE")]
    pub event_files: Vec<EventFile>,
    /// List the value of every run.
    #[arg(long)]
    pub values: bool,
    /// Count this as well, in every snippet: an event by name, with modifiers, like inst_retired.any:u; a generic one
    /// like cycles or branch-misses (`cargo xtask events --generic`); event and unit mask like 0xc4.0x20; or several in
    /// braces, to be counted at the same time. Can be given several times.
    #[arg(long = "event", value_name = "EVENT")]
    pub events: Vec<EventText>,
    /// Pass although events of the job are not counted, for jobs that go to many machines. What is expected of them is
    /// not judged then.
    #[arg(long)]
    pub allow_uncounted: bool,
    /// Ask this of the machine, for every snippet: `ring=3`, `caches=cold`, `page-size=2m` and the like, as in a job's
    /// `machine`. Can be given several times.
    #[arg(long = "machine", value_name = "KEY=VALUE")]
    pub machine: Vec<MachineOptions>,
    /// Give every item with code this memory: `list=64M,page-size=2m,chase=random,stride=64,seed=1`, `table=8K,pattern=00ff`,
    /// `text,file=PATH`. Code finds it as `memory_NAME`, and its bytes as `memory_NAME_size`. Can be given several times.
    #[arg(long = "memory-area", value_name = "NAME=SIZE,…")]
    pub memory_areas: Vec<MemoryFile>,
    /// Metrics.
    #[command(flatten)]
    pub metrics: MetricOptions,
    /// Stepping.
    #[command(flatten)]
    pub exact: ExactOverrides,
    /// Cycle by cycle.
    #[command(flatten)]
    pub history: HistoryOverrides,
}

fn difference(text: &str) -> Result<Difference, String> {
    match text {
        "double" => Ok(Difference::Double),
        "empty" => Ok(Difference::Empty),
        _ => Err("it must be `double` or `empty`".to_string()),
    }
}

impl Overrides {
    /// The job that `--asm` stands for.
    pub(super) fn one_liner(&self, asm: &str) -> JobFile {
        let snippet = SnippetFile {
            name: name_of(asm),
            asm: asm.to_string(),
            init: self.init.clone().unwrap_or_default(),
            one_time_init: self.one_time_init.clone().unwrap_or_default(),
            late_init: self.late_init.clone().unwrap_or_default(),
            syntax: self.syntax.unwrap_or_default(),
            options: Options::default(),
            criteria: CriteriaFile::default(),
            processors: None,
            exact: None,
            history: None,
            wanted: None,
            function: None,
            metrics: Vec::new(),
            asks: Vec::new(),
            spans: None,
        };
        Self::job("--asm", "one snippet", snippet)
    }

    /// The functions of `--function`.
    ///
    /// # Errors
    /// An option without those that it needs.
    pub(super) fn functions(&self) -> Result<Vec<FunctionFile>, JobError> {
        let needs = |what: &str| Err(JobError::Function(what.to_string()));
        match (self.object.is_empty(), self.function.is_empty()) {
            (false, true) => return needs("--object needs --function: what is called in it"),
            (true, false) => return needs("--function needs --object: the file that has it"),
            (false, false) => {}
            (true, true) => {
                for (given, name) in [
                    (!self.arguments.is_empty(), "--arg"),
                    (self.setup.is_some(), "--setup"),
                    (self.teardown.is_some(), "--teardown"),
                ] {
                    if given {
                        return needs(&format!("{name} needs --function and --object"));
                    }
                }
            }
        }
        let one = |name: &String| FunctionFile {
            files: self.object.clone(),
            name: name.clone(),
            arguments: self.arguments.clone(),
            setup: self.setup.clone(),
            teardown: self.teardown.clone(),
        };
        Ok(self.function.iter().map(one).collect())
    }

    /// The job that they stand for.
    pub(super) fn of_functions(&self, functions: &[FunctionFile]) -> JobFile {
        let base = self.one_liner("").snippets.remove(0);
        let snippet = |function: &FunctionFile| {
            let mut snippet = SnippetFile { name: function.item_name(), ..base.clone() };
            snippet.options.call_once();
            snippet.function = Some(function.clone());
            snippet
        };
        let snippets = functions.iter().map(snippet).collect();
        let name = if functions.len() == 1 { "one function" } else { "functions" };
        JobFile { snippets, ..Self::job("--function", name, base.clone()) }
    }

    /// The forms of `--latency` and `--throughput`, if there are any.
    pub(super) fn forms(&self) -> Option<Wanted> {
        let (latency, throughput) = (self.latency.clone(), self.throughput.clone());
        let none = latency.is_empty() && throughput.is_empty();
        (!none).then_some(Wanted {
            latency,
            throughput,
            lenient: false,
            catalog: None,
            ports: false,
        })
    }

    /// The job that they stand for.
    pub(super) fn of_forms(&self, wanted: Wanted) -> JobFile {
        let source = if wanted.latency.is_empty() { "--throughput" } else { "--latency" };
        let snippet = SnippetFile { wanted: Some(wanted), ..self.one_liner("").snippets.remove(0) };
        Self::job(source, "instruction forms", snippet)
    }

    pub(super) fn job(source: &str, name: &str, snippet: SnippetFile) -> JobFile {
        JobFile {
            source: source.to_string(),
            name: name.to_string(),
            baud: limits::MAX_BAUD,
            snippets: vec![snippet],
            ..JobFile::default()
        }
    }

    /// Changes every snippet of `file`.
    pub(super) fn apply(&self, file: &mut JobFile) -> Result<(), JobError> {
        if self.asm.is_none() {
            for (given, name) in [
                (self.init.is_some(), "--init"),
                (self.one_time_init.is_some(), "--one-time-init"),
                (self.late_init.is_some(), "--late-init"),
                (self.syntax.is_some(), "--syntax"),
            ] {
                if given {
                    return Err(JobError::NeedsAsm(name));
                }
            }
        }
        if self.allow_uncounted {
            file.allow_uncounted = true;
            for item in file.items_mut() {
                item.criteria_mut().allow_uncounted = Some(true);
            }
        }
        for item in file.items_mut() {
            let memory = item.memory_mut();
            *memory = memory::over(&self.memory_areas, memory);
        }
        if let Some(shard) = self.shard {
            let wanted = file.snippets.iter_mut().filter_map(|snippet| snippet.wanted.as_mut());
            let mut catalogs = wanted.filter_map(|wanted| wanted.catalog.as_mut()).peekable();
            catalogs.peek().ok_or(JobError::NeedsCatalog)?;
            catalogs.for_each(|selection| selection.shard = shard);
        }
        self.metrics.apply(file)?;
        for snippet in &mut file.snippets {
            self.history.apply(snippet)?;
            let options = &mut snippet.options;
            options.bits = self.bits.unwrap_or(options.bits);
            options.unroll = self.unroll.unwrap_or(options.unroll);
            options.loop_count = self.loop_count.unwrap_or(options.loop_count);
            options.warmup = self.warmup.unwrap_or(options.warmup);
            options.runs = self.runs.unwrap_or(options.runs);
            options.difference = self.difference.unwrap_or(options.difference);
            options.values |= self.values;
            options.events.extend(self.events.iter().cloned());
            self.exact.apply(&mut snippet.exact)?;
            for machine in &self.machine {
                options.machine = machine.over(&options.machine);
            }
            let around = &mut options.around;
            around.initial_warmup = self.initial_warmup.unwrap_or(around.initial_warmup);
            around.alignment_offset = self.alignment_offset.unwrap_or(around.alignment_offset);
            around.no_memory |= self.no_memory;
            around.drain_frontend |= self.drain_frontend;
        }
        Ok(())
    }
}
