//! The job file.

mod forms;
mod lines;

use super::about::digest;
use super::assemble::Syntax;
use super::count::{CountFile, RawCount};
use super::errors::{JobError, Place};
use super::exact::{ExactOptions, RawExact};
use super::expect::{CriteriaFile, Names, RawExpect, is_mnemonic, of_stepping};
use super::form::{Form, Wanted};
use super::function::{Argument, FunctionFile, RawFiles, RawFunction};
use super::history::{HistoryOptions, RawHistory};
use super::machine::MachineOptions;
use super::memory::{self, MemoryFile};
use super::sample::{self, RawSample, SampleFile};
use super::schema::{ExpectText, FilesText, HistoryText, Width};
use super::workload::{RawRun, RunFile};
use crate::compare::LimitTable;
use crate::events::EventText;
use crate::metrics::Asked;
use crate::metrics::request::Ask;
use forms::{RawForms, characterise, check_code};
pub(super) use lines::{Lines, Spans, Text, lines, position};
use protocol::PROTOCOL_VERSION;
use protocol::bits::Bits;
use protocol::core_kind::CoreKind;
use protocol::criteria::{Expect, TSC};
use protocol::job::{Difference, OnEnd, SelfTest};
use protocol::limits::{self, LimitError};
use protocol::record::Hex;
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::Path;
use toml::Spanned;

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
}

/// A whole job, all decided.
#[derive(Clone, Debug)]
pub struct JobFile {
    /// Where the text came from, for messages.
    pub source: String,
    /// The job's name.
    pub name: String,
    /// Rate of the serial line.
    pub baud: u32,
    /// What a real machine does at the end.
    pub on_end: OnEnd,
    /// For barecount's own tests.
    pub self_test: Option<SelfTest>,
    /// Whether items pass although events of theirs were not counted, if they do not say.
    pub allow_uncounted: bool,
    /// Processors that the job needs, if it says so.
    pub cpus: Option<u32>,
    /// Names of checks, if the conformance suite runs; it comes before the snippets. Empty: all.
    pub checks: Option<Vec<String>>,
    /// The suite is that of a bring-up, behind all that can be found out about the machine.
    pub brings_up: bool,
    /// The snippets; those of `[[processors]]` behind the others.
    pub snippets: Vec<SnippetFile>,
    /// Workloads; they come behind the snippets.
    pub runs: Vec<RunFile>,
    /// What is counted over tasks; it comes behind the snippets.
    pub counts: Vec<CountFile>,
    /// What is sampled; it comes behind the snippets.
    pub samples: Vec<SampleFile>,
    /// How far a figure of any item may get worse from one report to the next.
    pub limits: LimitTable,
    /// Digest of the file's text, if it is a file.
    pub(super) text: Option<Hex>,
}

/// What a job is for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Measuring snippets.
    #[default]
    Snippets,
    /// Checking the PMU.
    Conformance,
    /// Whether the PMU can be believed: experiments in front of the job's own items.
    Honest,
    /// Finding out what a machine is, before its PMU is checked.
    BringUp,
}

/// A job: what is measured, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Job")]
pub(super) struct RawJob {
    /// Version of the form of jobs. Default: the newest.
    #[schemars(with = "Option<u64>")]
    version: Option<Spanned<u64>>,
    /// Name of the job. Default: the name of the file.
    name: Option<String>,
    /// Rate of the serial line: 115200 divided by a whole number. Default: 115200.
    #[schemars(with = "Option<u32>")]
    baud: Option<Spanned<u32>>,
    /// What a real machine does at the end. Default: halt.
    #[serde(default)]
    on_end: OnEnd,
    /// Break the firmware on purpose, for tests of what it then reports.
    self_test: Option<SelfTest>,
    /// Whether items pass although events of theirs were not counted. Default: false.
    #[serde(default)]
    allow_uncounted: bool,
    /// Processors that the job needs, 1 to 255. Default: as many as it names.
    #[schemars(with = "Option<u32>")]
    cpus: Option<Spanned<u32>>,
    /// What the job is for. Default: snippets.
    #[serde(default)]
    kind: Kind,
    /// With `kind = "conformance"` and `"bring-up"`: names of checks, with `*` as wild card. Default: all.
    #[schemars(with = "Option<Vec<String>>")]
    checks: Option<Spanned<Vec<String>>>,
    /// What holds for every snippet that does not say otherwise.
    #[serde(default)]
    defaults: RawOptions,
    /// Pieces of code to measure.
    #[serde(default)]
    #[schemars(with = "Vec<RawSnippet>")]
    snippet: Vec<Spanned<RawSnippet>>,
    /// Workloads: tasks that a timer switches between.
    #[serde(default)]
    #[schemars(with = "Vec<RawRun>")]
    run: Vec<Spanned<RawRun>>,
    /// Instruction forms, each measured for latency and throughput.
    #[serde(default)]
    #[schemars(with = "Vec<RawForms>")]
    characterise: Vec<Spanned<RawForms>>,
    /// Events that are counted while tasks run.
    #[serde(default)]
    #[schemars(with = "Vec<RawCount>")]
    count: Vec<Spanned<RawCount>>,
    /// Code that runs on several processors at the same time.
    #[serde(default)]
    #[schemars(with = "Vec<RawSnippet>")]
    processors: Vec<Spanned<RawSnippet>>,
    /// Code that is sampled while it runs.
    #[serde(default)]
    #[schemars(with = "Vec<RawSample>")]
    sample: Vec<Spanned<RawSample>>,
    /// How far figures of any item may get worse from one report to the next.
    #[serde(default)]
    limits: LimitTable,
}

impl RawJob {
    /// Its items at least: a form of instructions can become several.
    fn items(&self) -> usize {
        let forms = self.characterise.iter().map(|one| one.get_ref().len()).sum::<usize>();
        let code = self.snippet.len() + self.processors.len() + forms;
        let over_time = self.run.len() + self.count.len() + self.sample.len();
        code + over_time + usize::from(matches!(self.kind, Kind::Conformance | Kind::BringUp))
    }
}

/// What holds for every snippet that does not say otherwise.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Defaults")]
struct RawOptions {
    /// Dialect of the assembly. Default: intel.
    syntax: Option<Syntax>,
    /// Copies of the body. Default: 100; 1 for a history and for a function.
    unroll: Option<u32>,
    /// Iterations of a loop around the copies. Default: 0, no loop.
    r#loop: Option<u64>,
    /// Runs before the measured ones. Default: 5.
    warmup: Option<u32>,
    /// Measured runs. Default: 10.
    runs: Option<u32>,
    /// What is subtracted from what. Default: double.
    difference: Option<Difference>,
    /// Whether the report lists the value of every run. Default: false.
    values: Option<bool>,
    /// What is counted beside the TSC. Events that do not fit at once are counted in further passes.
    events: Option<Vec<EventText>>,
    /// Step through the code in place of measuring it: true, or a table with filters.
    exact: Option<RawExact>,
    /// Show in which cycles events happen: the number of cycles, or a table.
    #[schemars(with = "Option<HistoryText>")]
    history: Option<RawHistory>,
    /// Runs before the first warm-up. Default: 0.
    initial_warmup: Option<u32>,
    /// Bytes from a multiple of 64 to the body, 0 to 63. Default: 0.
    alignment_offset: Option<u8>,
    /// Keep what is measured in registers, not in memory. Default: false.
    no_memory: Option<bool>,
    /// Drain the front end of the processor before the body. Default: false.
    drain_frontend: Option<bool>,
    /// The state of the machine in which the code is measured.
    machine: Option<MachineOptions>,
    /// 64, or 32 for code of compatibility mode. Default: 64.
    #[schemars(with = "Option<Width>")]
    bits: Option<Bits>,
    /// Memory besides the five areas of 1 MiB.
    #[serde(default)]
    memory: Vec<MemoryFile>,
}

/// A piece of code to measure.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Snippet")]
struct RawSnippet {
    /// Its name. Default: its code.
    name: Option<String>,
    /// The code to measure: the body.
    #[schemars(with = "Option<String>")]
    asm: Option<Spanned<String>>,
    /// Files of compiled code, in place of `asm`: one, or a list.
    #[schemars(with = "Option<FilesText>")]
    object: Option<RawFiles>,
    /// The function of `object` to measure.
    function: Option<String>,
    /// Arguments of the function: integers, or texts such as `memory:list+64`.
    args: Option<Vec<Argument>>,
    /// A function of `object` that runs before each run, unmeasured.
    setup: Option<String>,
    /// A function of `object` that runs behind each run, unmeasured.
    teardown: Option<String>,
    /// An instruction form whose latency is measured, in place of `asm`.
    latency: Option<Form>,
    /// An instruction form whose throughput is measured, in place of `asm`.
    throughput: Option<Form>,
    /// Only in `[[processors]]`: the number of the processor to run on. Default: all.
    #[schemars(with = "Option<u16>")]
    cpu: Option<Spanned<u16>>,
    /// Only in `[[processors]]`: the kind of core to run on, among whose processors `cpu` is then counted. Default: each kind, one
    /// after the other, with a result of its own.
    #[schemars(with = "Option<CoreKind>")]
    core: Option<Spanned<CoreKind>>,
    /// Only in `[[processors]]`: run a loop with an interrupt at every so many instructions.
    #[schemars(with = "Option<u64>")]
    interrupt_every: Option<Spanned<u64>>,
    /// Code that runs once, before everything else.
    #[schemars(with = "Option<String>")]
    one_time_init: Option<Spanned<String>>,
    /// Code that runs before each run, unmeasured.
    #[schemars(with = "Option<String>")]
    init: Option<Spanned<String>>,
    /// Code that runs directly before the body.
    #[schemars(with = "Option<String>")]
    late_init: Option<Spanned<String>>,
    /// What figures must come to: a number for the TSC ticks, bounds, or a table of figures.
    #[schemars(with = "Option<ExpectText>")]
    expect: Option<RawExpect>,
    /// Metrics to show: names of our own or of perfmon's for the processor, `topdown`, or `topdown-N` down to a level.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    metrics: Vec<Asked>,
    /// Whether it passes although an event was not counted. Default: as the job says.
    allow_uncounted: Option<bool>,
    syntax: Option<Syntax>,
    unroll: Option<u32>,
    r#loop: Option<u64>,
    warmup: Option<u32>,
    runs: Option<u32>,
    difference: Option<Difference>,
    values: Option<bool>,
    events: Option<Vec<EventText>>,
    exact: Option<RawExact>,
    #[schemars(with = "Option<HistoryText>")]
    history: Option<RawHistory>,
    initial_warmup: Option<u32>,
    alignment_offset: Option<u8>,
    no_memory: Option<bool>,
    drain_frontend: Option<bool>,
    machine: Option<MachineOptions>,
    #[schemars(with = "Option<Width>")]
    bits: Option<Bits>,
    #[serde(default)]
    memory: Vec<MemoryFile>,
    /// How far figures may get worse from one report to the next.
    limits: Option<LimitTable>,
}

impl RawSnippet {
    /// Takes out what it says of a function.
    fn function(&mut self) -> RawFunction {
        RawFunction {
            object: self.object.take(),
            function: self.function.take(),
            args: self.args.take(),
            setup: self.setup.take(),
            teardown: self.teardown.take(),
        }
    }
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
            memory: Vec::new(),
        }
    }
}

/// Reads a job file.
///
/// # Errors
/// The file, or its content.
pub fn read(path: &Path) -> Result<JobFile, JobError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| JobError::Read { path: path.to_path_buf(), error })?;
    parse(&text, &path.display().to_string())
}

/// Reads a job from its text; `source` is its name in messages.
///
/// # Errors
/// The first thing that is wrong, with line and column.
pub fn parse(text: &str, source: &str) -> Result<JobFile, JobError> {
    let wrong = |message: String| JobError::Toml { file: source.to_string(), message };
    let raw: RawJob = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
    check_version(&raw, source)?;
    // Before anything is done for each item.
    limits::check_items(raw.items() as u64)
        .map_err(|error| JobError::Limit { file: source.to_string(), error })?;
    let places = Text::new(text);
    let baud = raw.baud.as_ref().map_or(limits::MAX_BAUD, |baud| *baud.get_ref());
    if let (Err(error), Some(spanned)) = (limits::check_baud(baud), &raw.baud) {
        let (line, column) = places.position(spanned.span().start);
        return Err(wrong(format!("line {line}, column {column}: {error}")));
    }
    let cpus = raw.cpus.as_ref().map(|cpus| *cpus.get_ref());
    if let (Some(wrong_number), Some(spanned)) =
        (cpus.filter(|cpus| !(1..=MAX_CPUS).contains(cpus)), &raw.cpus)
    {
        let (line, column) = places.position(spanned.span().start);
        let reason = format!("cpus is {wrong_number}; it must be 1 to {MAX_CPUS}");
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let (Kind::Snippets | Kind::Honest, Some(checks)) = (raw.kind, &raw.checks) {
        let (line, column) = places.position(checks.span().start);
        let reason = "checks needs kind = \"conformance\"";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    let checks = raw.checks.map(Spanned::into_inner).unwrap_or_default();
    let stem = Path::new(source).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    if let Some(cpu) = raw.snippet.iter().find_map(|one| one.get_ref().cpu.as_ref()) {
        let (line, column) = places.position(cpu.span().start);
        let reason = "cpu needs [[processors]] in place of [[snippet]]";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let Some(core) = raw.snippet.iter().find_map(|one| one.get_ref().core.as_ref()) {
        let (line, column) = places.position(core.span().start);
        let reason = "core needs [[processors]] in place of [[snippet]]";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    if let Some(every) = raw.snippet.iter().find_map(|one| one.get_ref().interrupt_every.as_ref()) {
        let (line, column) = places.position(every.span().start);
        let reason = "interrupt-every needs [[processors]] in place of [[snippet]]";
        return Err(wrong(format!("line {line}, column {column}: {reason}")));
    }
    let place =
        |(line, column), reason: String| wrong(format!("line {line}, column {column}: {reason}"));
    let mut snippets = Vec::new();
    for mut snippet in raw.snippet {
        let at = places.position(snippet.span().start);
        let function = snippet.get_mut().function();
        check_code(snippet.get_ref(), function.is_there())
            .map_err(|why| place(at, why.to_string()))?;
        let function = function.decide(source).map_err(|reason| place(at, reason))?;
        snippets.push(decide(snippet, function, &raw.defaults, &places));
    }
    for forms in raw.characterise {
        snippets.push(characterise(forms, &raw.defaults, &places));
    }
    for mut one in raw.processors {
        let at = places.position(one.span().start);
        let function = one.get_mut().function();
        check_code(one.get_ref(), function.is_there()).map_err(|why| place(at, why.to_string()))?;
        let function = function.decide(source).map_err(|reason| place(at, reason))?;
        let cpu = one.get_ref().cpu.as_ref().map(|cpu| *cpu.get_ref());
        let interrupt_every = one.get_ref().interrupt_every.as_ref().map(|every| *every.get_ref());
        let core = one.get_ref().core.as_ref().map(|core| *core.get_ref());
        let processors = Some(OnProcessors { cpu, core, interrupt_every });
        snippets.push(SnippetFile { processors, ..decide(one, function, &raw.defaults, &places) });
    }
    let counts = (1..).zip(raw.count);
    let mut file = JobFile {
        source: source.to_string(),
        name: raw.name.or(stem).unwrap_or_default(),
        baud,
        on_end: raw.on_end,
        self_test: raw.self_test,
        allow_uncounted: raw.allow_uncounted,
        cpus,
        checks: matches!(raw.kind, Kind::Conformance | Kind::BringUp).then_some(checks),
        brings_up: raw.kind == Kind::BringUp,
        runs: (1..)
            .zip(raw.run)
            .map(|(number, run)| RunFile::decide(run, number, &places, source))
            .collect(),
        counts: counts
            .map(|(number, count)| CountFile::decide(count, number, &places, source))
            .collect(),
        snippets,
        samples: raw
            .sample
            .into_iter()
            .map(|sample| sample::decide(sample, &places, source))
            .collect::<Result<_, _>>()?,
        limits: raw.limits,
        text: Some(digest(text.as_bytes())),
    };
    let folder = Path::new(source).parent().unwrap_or(Path::new(""));
    file.all_memory().flatten().for_each(|memory| memory.based_on(folder));
    if raw.kind == Kind::Honest {
        file.add_experiments()?;
    }
    Ok(file)
}

fn check_version(raw: &RawJob, source: &str) -> Result<(), JobError> {
    let Some(version) = &raw.version else {
        return Ok(());
    };
    let (found, known) = (*version.get_ref(), PROTOCOL_VERSION);
    if found <= u64::from(known) {
        return Ok(());
    }
    Err(JobError::Newer { file: source.to_string(), found, known })
}

fn decide(
    spanned: Spanned<RawSnippet>,
    function: Option<FunctionFile>,
    defaults: &RawOptions,
    text: &Text,
) -> SnippetFile {
    let whole = text.lines(&spanned.span());
    let raw = spanned.into_inner();
    let base = Options::default();
    let place = |code: &Option<Spanned<String>>| {
        code.as_ref().map_or(Lines::default(), |code| text.lines(&code.span()))
    };
    let [asm, one_time_init, init, late_init] =
        [&raw.asm, &raw.one_time_init, &raw.init, &raw.late_init].map(place);
    let code = |code: Option<Spanned<String>>| code.map(Spanned::into_inner).unwrap_or_default();
    let body = code(raw.asm);
    let (latency, throughput) = (Vec::from_iter(raw.latency), Vec::from_iter(raw.throughput));
    let wanted = (!latency.is_empty() || !throughput.is_empty()).then_some(Wanted {
        latency,
        throughput,
        lenient: false,
    });
    let history = raw.history.as_ref().or(defaults.history.as_ref());
    let history = history.and_then(RawHistory::decide);
    // A history is of one copy, as cycle by cycle there is nothing to divide.
    let copies = if history.is_some() { 1 } else { base.unroll };
    let mut file = SnippetFile {
        name: raw.name.unwrap_or_else(|| match &function {
            Some(function) => function.item_name(),
            None => name_of(&body),
        }),
        init: code(raw.init),
        one_time_init: code(raw.one_time_init),
        late_init: code(raw.late_init),
        syntax: raw.syntax.or(defaults.syntax).unwrap_or_default(),
        options: Options {
            unroll: raw.unroll.or(defaults.unroll).unwrap_or(copies),
            unroll_given: raw.unroll.or(defaults.unroll).is_some(),
            loop_count: raw.r#loop.or(defaults.r#loop).unwrap_or(base.loop_count),
            warmup: raw.warmup.or(defaults.warmup).unwrap_or(base.warmup),
            runs: raw.runs.or(defaults.runs).unwrap_or(base.runs),
            difference: raw.difference.or(defaults.difference).unwrap_or(base.difference),
            values: raw.values.or(defaults.values).unwrap_or(base.values),
            events: raw.events.or_else(|| defaults.events.clone()).unwrap_or(base.events),
            around: Around {
                initial_warmup: raw.initial_warmup.or(defaults.initial_warmup).unwrap_or_default(),
                alignment_offset: raw
                    .alignment_offset
                    .or(defaults.alignment_offset)
                    .unwrap_or_default(),
                no_memory: raw.no_memory.or(defaults.no_memory).unwrap_or_default(),
                drain_frontend: raw.drain_frontend.or(defaults.drain_frontend).unwrap_or_default(),
            },
            machine: {
                let base = defaults.machine.clone().unwrap_or_default();
                raw.machine.map_or(base.clone(), |machine| machine.over(&base))
            },
            bits: raw.bits.or(defaults.bits).unwrap_or(base.bits),
            memory: memory::over(&raw.memory, &defaults.memory),
        },
        criteria: CriteriaFile::new(raw.expect, raw.allow_uncounted, raw.limits),
        processors: None,
        history,
        exact: raw.exact.as_ref().or(defaults.exact.as_ref()).and_then(RawExact::decide),
        wanted,
        function,
        metrics: raw.metrics,
        asks: Vec::new(),
        spans: Some(Spans { whole, asm, one_time_init, init, late_init }),
        asm: body,
    };
    if file.function.is_some() {
        file.options.call_once();
        file.options.unroll = raw.unroll.unwrap_or(file.options.unroll);
        file.options.loop_count = raw.r#loop.unwrap_or(file.options.loop_count);
        file.options.difference = raw.difference.unwrap_or(file.options.difference);
        file.options.bits = raw.bits.unwrap_or(file.options.bits);
        file.options.around.no_memory = raw.no_memory.unwrap_or_default();
    }
    file
}

impl Options {
    /// Makes them those of a function, which is called once in each run, whatever holds for copies of code.
    pub(super) fn call_once(&mut self) {
        (self.unroll, self.loop_count, self.difference) = (1, 0, Difference::Empty);
        self.bits = Bits::SixtyFour;
        self.around.no_memory = false;
    }
}

/// A name for a snippet that has none: its code in one line, cut.
pub(super) fn name_of(asm: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = asm.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("; ");
    if line.is_empty() {
        return "empty".to_string();
    }
    line.chars().take(MAX_CHARS).collect()
}

impl JobFile {
    /// Whether it has the experiments of a certificate.
    pub(super) fn is_honest(&self) -> bool {
        self.snippets.iter().any(|one| one.name.starts_with(crate::honest::PREFIX))
    }

    /// Puts the experiments of the certificate in front of the items of their kinds. Their places are not in this file.
    pub(super) fn add_experiments(&mut self) -> Result<(), JobError> {
        let mut given = parse(crate::honest::JOB, "the experiments of a certificate")?;
        given.all_criteria().for_each(|criteria| criteria.allow_uncounted = Some(true));
        given.snippets.iter_mut().for_each(|snippet| snippet.spans = None);
        self.checks = given.checks;
        self.snippets.splice(0..0, given.snippets);
        self.counts.splice(0..0, given.counts);
        self.samples.splice(0..0, given.samples);
        Ok(())
    }

    /// What each of the items has to come to.
    pub(super) fn all_criteria(&mut self) -> impl Iterator<Item = &mut CriteriaFile> {
        let snippets = self.snippets.iter_mut().map(|snippet| &mut snippet.criteria);
        let runs = self.runs.iter_mut().map(|run| &mut run.criteria);
        let counts = self.counts.iter_mut().map(|count| &mut count.criteria);
        let samples = self.samples.iter_mut().map(|sample| &mut sample.code.criteria);
        snippets.chain(runs).chain(counts).chain(samples)
    }

    /// The memory of each of the items.
    fn all_memory(&mut self) -> impl Iterator<Item = &mut Vec<MemoryFile>> {
        let snippets = self.snippets.iter_mut().map(|snippet| &mut snippet.options.memory);
        let runs = self.runs.iter_mut().map(|run| &mut run.workload.memory);
        let counts = self.counts.iter_mut().map(CountFile::memory_mut);
        let samples = self.samples.iter_mut().map(SampleFile::memory_mut);
        snippets.chain(runs).chain(counts).chain(samples)
    }

    /// How many processors it needs: as many as it says, and those that its items name.
    #[must_use]
    pub fn needed_cpus(&self) -> u32 {
        // Of a kind of core, cpu is no number of a processor.
        let numbered = |on: &OnProcessors| on.core.is_none();
        let snippets =
            self.snippets.iter().filter_map(|snippet| snippet.processors.filter(numbered)?.cpu);
        let runs = self.runs.iter().filter_map(|run| run.workload.greatest_cpu());
        let counts = self.counts.iter().filter_map(CountFile::greatest_cpu);
        let samples = self.samples.iter().filter_map(SampleFile::greatest_cpu);
        let named = snippets.chain(runs).chain(counts).chain(samples).max();
        let named = named.map_or(1, |greatest| u32::from(greatest) + 1);
        named.max(self.cpus.unwrap_or(1))
    }
}

impl SnippetFile {
    /// Whether there can be every figure that is expected.
    ///
    /// # Errors
    /// The first one that there cannot.
    pub(super) fn check_expected(&self, source: &str) -> Result<(), JobError> {
        let mut names =
            Names { events: Names::of_events(self.options.events.iter()), ..Names::default() };
        if self.exact.is_some() {
            // Stepping tells mnemonics as well, of which there are too many to list.
            let is_opcode = |expect: &&Expect| is_mnemonic(&expect.figure);
            let expect = self.criteria.expect.iter();
            names = of_stepping();
            names.whole.extend(expect.filter(is_opcode).map(|expect| expect.figure.to_string()));
        } else if self.history.is_some() {
            names.behind = &[", row "];
        } else {
            names.whole.push(TSC.to_string());
            names.whole.extend(self.options.machine.msr_names());
            if self.processors.is_some() {
                names.behind = &[" on cpu ", ", sum"];
                names.events.append(&mut names.whole);
            }
        }
        names.check(&self.criteria).map_err(|message| self.refused(source, message))
    }

    /// Where the snippet stands.
    #[must_use]
    pub fn place(&self, source: &str) -> Place {
        let position = self.spans.as_ref().map(|spans| (spans.whole.line, spans.whole.column));
        Place { file: source.to_string(), position }
    }

    /// The error that the snippet breaks a bound.
    pub(super) fn at(&self, source: &str, error: &LimitError) -> JobError {
        self.refused(source, error.to_string())
    }

    /// The error that `message` says.
    pub(super) fn refused(&self, source: &str, message: String) -> JobError {
        JobError::Snippet { place: self.place(source), snippet: self.name.clone(), message }
    }
}

#[cfg(test)]
mod tests;
