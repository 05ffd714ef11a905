//! `[[sample]]`: code that is sampled while it runs.

use super::assemble::{Code, Source, Syntax, assemble_with_labels};
use super::errors::{JobError, Place};
use super::expect::{CriteriaFile, Names, RawExpect};
use super::file::{
    FileItem, JobFile, Lines, Options, PackedItem, Section, SnippetFile, Spans, Text, lines,
    name_of, position,
};
use super::function::{Argument, FunctionFile, Programs, RawFiles, RawFunction};
use super::memory::{self, MemoryFile};
use super::only::RawOnly;
use super::schema::{ExpectText, FilesText, Width};
use super::workload::{Assembled, DEFAULT_LIMIT_US, RawTask, TaskFile, WorkloadFile};
use super::{SOURCES, analyse, place, sources};
use crate::compare::LimitTable;
use crate::events::EventText;
use crate::metrics::Asked;
use crate::metrics::request::Ask;
use protocol::bits::Bits;
use protocol::job::Item;
use protocol::limits;
use protocol::sampling::{CallGraph, Delivery, Freeze, Keep, OnFull, Rate, SampledEvent, Sampling};
use protocol::workload::{Ring, Task, Workload};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// Entries of the logs or the histograms of all processors together, if the job does not say.
const CAPACITY: u32 = 4096;
/// The general registers, in the order of their encoding.
pub const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Sampled code, all decided.
#[derive(Clone, Debug)]
pub struct SampleFile {
    /// Its name, code and place in the file.
    pub(super) code: SnippetFile,
    /// The events' texts, in the order of those of `sampling`.
    pub(super) texts: Vec<EventText>,
    /// Turns of the code.
    turns: u64,
    /// Its tasks; `None`: the code is the only one.
    tasks: Option<WorkloadFile>,
    /// Everything else; its workload is empty.
    sampling: Sampling<'static>,
}

/// What the host knows of a task's code.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TaskCode {
    /// The body.
    pub body: Vec<u8>,
    /// Its labels, with their places in it, in order.
    pub labels: Vec<(u64, String)>,
}

/// Code that is sampled while it runs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Sample")]
pub(crate) struct RawSample {
    name: Option<String>,
    /// The code, if there is one task.
    #[schemars(with = "Option<String>")]
    asm: Option<Spanned<String>>,
    #[schemars(with = "Option<FilesText>")]
    object: Option<RawFiles>,
    function: Option<String>,
    args: Option<Vec<Argument>>,
    setup: Option<String>,
    teardown: Option<String>,
    /// Code that runs once, before it.
    #[schemars(with = "Option<String>")]
    init: Option<Spanned<String>>,
    syntax: Option<Syntax>,
    /// How often the code runs. Default: 1.
    turns: Option<u64>,
    #[schemars(with = "Option<Width>")]
    bits: Option<Bits>,
    /// What samples are taken by, each with a period or a frequency.
    #[serde(default)]
    events: Vec<RawEvent>,
    /// Events from one sample to the next, if an event does not say.
    period: Option<u64>,
    /// Samples a second, if an event does not say.
    frequency: Option<u32>,
    /// Sample by a timer, every so many nanoseconds.
    interval_ns: Option<u64>,
    /// What is kept of the samples. Default: histogram.
    #[serde(default)]
    keep: Keep,
    /// Entries of the log or of the histogram of each processor. Default: 4096, divided by the number of processors with a task.
    capacity: Option<u32>,
    /// What happens when there is no room. Default: drop.
    #[serde(default)]
    on_full: OnFull,
    /// How the interrupt comes. Default: fixed.
    #[serde(default)]
    delivery: Delivery,
    /// How counters are kept from counting the handler. Default: auto.
    #[serde(default)]
    freeze: Freeze,
    /// General registers that are kept with each sample.
    #[serde(default)]
    registers: Vec<String>,
    /// Keep the vector registers XMM0 to XMM15 with each sample, out of PEBS records. Default: false.
    #[serde(default)]
    vectors: bool,
    /// Events that are counted beside, and whose counters' values are kept with each sample, out of PEBS records.
    #[serde(default)]
    counters: Vec<EventText>,
    /// Interrupts in a millisecond above which the period is made longer.
    limit_per_ms: Option<u32>,
    /// Sample the instruction itself: by PEBS records, on AMD by IBS. Default: false.
    #[serde(default)]
    precise: bool,
    /// Count the branches that the processor recorded before each sample. Default: false.
    #[serde(default)]
    branches: bool,
    /// With IBS: periods are random, and the given one is their mean. Default: false.
    #[serde(default)]
    randomise: bool,
    /// The calls that led to each sample. lbr: by branch records in call-stack mode, of Intel's processors from Haswell on.
    call_graph: Option<CallGraph>,
    /// Estimate the events of some instructions only, by the samples that are of those. It needs precise and keep = "samples".
    only: Option<RawOnly>,
    tick_ns: Option<u64>,
    jitter: Option<u64>,
    limit_us: Option<u64>,
    #[schemars(with = "Option<ExpectText>")]
    expect: Option<RawExpect>,
    allow_uncounted: Option<bool>,
    limits: Option<LimitTable>,
    /// Metrics to show, of the counts beside the samples: of events that are sampled.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    metrics: Vec<Asked>,
    /// Memory besides the areas of each task; all of them share it.
    #[serde(default)]
    memory: Vec<MemoryFile>,
    /// Tasks, in place of one code.
    #[serde(default)]
    #[schemars(with = "Vec<RawTask>")]
    task: Vec<Spanned<RawTask>>,
}

/// `"cycles"`, or with a rate of its own.
#[derive(Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "an event, or { event = ..., period = ... }, or { event = ..., frequency = ... }"
)]
#[schemars(rename = "SampledBy")]
enum RawEvent {
    Plain(EventText),
    Own(OwnRate),
}

/// An event with a rate of its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SampledEvent")]
struct OwnRate {
    /// The event.
    event: EventText,
    /// Events from one sample to the next.
    period: Option<u64>,
    /// Samples a second.
    frequency: Option<u32>,
    /// With mem-loads: of loads that take longer than so many cycles alone. Default: 3.
    latency: Option<u32>,
}

/// An event with its threshold of latency in it.
fn with_latency(event: EventText, latency: Option<u32>) -> Result<EventText, String> {
    let Some(cycles) = latency else { return Ok(event) };
    let text = event.to_string();
    let plain = text.trim();
    if plain != "mem-loads" && !plain.starts_with("mem-loads:") || plain.contains("ldlat=") {
        return Err(format!("{text}: a latency is for mem-loads, once"));
    }
    format!("{plain}:ldlat={cycles}").parse().map_err(|error| format!("{error}"))
}

/// Fills in what is not said.
fn decide(spanned: Spanned<RawSample>, text: &Text, source: &str) -> Result<SampleFile, JobError> {
    let whole = lines(text, &spanned.span());
    let at = spanned.span().start;
    let wrong = |message: String| {
        let (line, column) = position(text, at);
        let message = format!("line {line}, column {column}: {message}");
        JobError::Toml { file: source.to_string(), message }
    };
    let mut raw = spanned.into_inner();
    let rate = |event: &str, period: Option<u64>, frequency: Option<u32>| match (period, frequency)
    {
        (Some(_), Some(_)) => {
            Err(wrong(format!("{event}: give a period or a frequency, not both")))
        }
        (Some(period), None) => Ok(Some(Rate::Period(period))),
        (None, Some(frequency)) => Ok(Some(Rate::PerSecond(frequency))),
        (None, None) => Ok(None),
    };
    let common = rate("the sample", raw.period, raw.frequency)?;
    let (mut events, mut texts) = (Vec::new(), Vec::new());
    for event in std::mem::take(&mut raw.events) {
        let (event, own) = match event {
            RawEvent::Plain(event) => (event, None),
            RawEvent::Own(OwnRate { event, period, frequency, latency }) => {
                let own = rate(&event.to_string(), period, frequency)?;
                (with_latency(event, latency).map_err(wrong)?, own)
            }
        };
        let Some(rate) = own.or(common) else {
            return Err(wrong(format!("`{event}` has neither a period nor a frequency")));
        };
        events.push(SampledEvent { event: Cow::Owned(event.to_string()), rate });
        texts.push(event);
    }
    let mut registers = 0;
    for name in &raw.registers {
        let Some(number) = REGISTERS.iter().position(|register| register == name) else {
            let known = REGISTERS.join(", ");
            return Err(wrong(format!("`{name}` is no general register; there are {known}")));
        };
        registers |= 1 << number;
    }
    let function = RawFunction {
        object: raw.object.take(),
        function: raw.function.take(),
        args: raw.args.take(),
        setup: raw.setup.take(),
        teardown: raw.teardown.take(),
    };
    let tasks = match function.decide(source).map_err(wrong)? {
        Some(function) => Some(of_function(&raw, function, &whole, source).map_err(wrong)?),
        None => written_tasks(&mut raw, text, source).map_err(wrong)?,
    };
    let cpus = tasks.as_ref().map_or(1, processors);
    let asm = raw.asm.as_ref().map_or(whole, |asm| lines(text, &asm.span()));
    let init_lines = raw.init.as_ref().map_or(Lines::default(), |init| lines(text, &init.span()));
    let init = raw.init.map(Spanned::into_inner).unwrap_or_default();
    let body = raw.asm.map(Spanned::into_inner).unwrap_or_default();
    let unnamed = || tasks.as_ref().map_or_else(|| name_of(&body), name_of_tasks);
    let name = raw.name.unwrap_or_else(unnamed);
    let none = Lines::default();
    let criteria = CriteriaFile::new(raw.expect, raw.allow_uncounted, raw.limits);
    Ok(SampleFile {
        texts,
        turns: raw.turns.unwrap_or(1),
        tasks,
        sampling: Sampling {
            name: Cow::Owned(name.clone()),
            events,
            interval_ns: raw.interval_ns.unwrap_or(0),
            workload: Workload::default(),
            limit_us: raw.limit_us.unwrap_or(DEFAULT_LIMIT_US),
            keep: raw.keep,
            capacity: raw.capacity.unwrap_or(CAPACITY / cpus),
            on_full: raw.on_full,
            delivery: raw.delivery,
            freeze: raw.freeze,
            registers,
            limit_per_ms: raw.limit_per_ms.unwrap_or(0),
            precise: raw.precise,
            branches: raw.branches,
            randomise: raw.randomise,
            call_graph: raw.call_graph,
            vectors: raw.vectors,
            counters: raw.counters.iter().map(|text| Cow::Owned(text.to_string())).collect(),
            only: raw.only.as_ref().map(RawOnly::decide).unwrap_or_default(),
        },
        code: SnippetFile {
            name,
            asm: body,
            init,
            one_time_init: String::new(),
            late_init: String::new(),
            syntax: raw.syntax.unwrap_or_default(),
            options: Options {
                bits: raw.bits.unwrap_or_default(),
                memory: raw.memory,
                ..Options::default()
            },
            criteria,
            exact: None,
            history: None,
            processors: None,
            wanted: None,
            function: None,
            metrics: raw.metrics,
            asks: Vec::new(),
            spans: Some(Spans {
                whole,
                asm,
                one_time_init: none,
                init: init_lines,
                late_init: none,
            }),
        },
    })
}

/// The task of a sample that is of a function: it runs in ring 3, under the scheduler.
fn of_function(
    raw: &RawSample,
    function: FunctionFile,
    whole: &Lines,
    source: &str,
) -> Result<WorkloadFile, String> {
    if raw.asm.is_some() || !raw.task.is_empty() {
        return Err("give asm, a function of object, or [[sample.task]] tables".to_string());
    }
    if raw.init.is_some() || raw.syntax.is_some() || raw.bits.is_some() {
        return Err("a function has no init, syntax or bits".to_string());
    }
    let place = Place { file: source.to_string(), position: Some((whole.line, whole.column)) };
    let name = raw.name.clone().unwrap_or_else(|| function.item_name());
    let task = TaskFile::calling(name, function, raw.turns.unwrap_or(1), place);
    Ok(WorkloadFile {
        tasks: vec![task],
        tick_ns: raw.tick_ns.unwrap_or(0),
        jitter: raw.jitter,
        memory: raw.memory.clone(),
    })
}

/// The tasks of a sample that has such, and not code of its own.
fn written_tasks(
    raw: &mut RawSample,
    text: &Text,
    source: &str,
) -> Result<Option<WorkloadFile>, String> {
    let of_code = [
        ("init", raw.init.is_some()),
        ("syntax", raw.syntax.is_some()),
        ("turns", raw.turns.is_some()),
        ("bits", raw.bits.is_some()),
    ];
    let of_tasks = [
        ("tick-ns", raw.tick_ns.is_some()),
        ("jitter", raw.jitter.is_some()),
        ("limit-us", raw.limit_us.is_some()),
    ];
    let given = |options: &[(&'static str, bool)]| {
        options.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    };
    match (&raw.asm, raw.task.is_empty()) {
        (Some(_), false) => Err("give asm or [[sample.task]] tables, not both".to_string()),
        (None, true) => Err("there is no code: give asm, or [[sample.task]] tables".to_string()),
        (Some(_), true) => match given(&of_tasks) {
            Some(name) => Err(format!("{name} is for [[sample.task]] tables; asm runs alone")),
            None => Ok(None),
        },
        (None, false) => match given(&of_code) {
            Some(name) => {
                Err(format!("{name} stands in each [[sample.task]] table, not beside them"))
            }
            None => {
                let tasks = std::mem::take(&mut raw.task);
                let workload = WorkloadFile::decide(tasks, raw.tick_ns, raw.jitter, text, source);
                Ok(Some(WorkloadFile { memory: std::mem::take(&mut raw.memory), ..workload }))
            }
        },
    }
}

/// How many processors tasks name; a kind of core is one.
fn processors(workload: &WorkloadFile) -> u32 {
    // A child runs where its parent does, if it does not say.
    let own = workload.tasks.iter().filter(|task| task.cpu.is_some() || task.parent.is_none());
    let mut places: Vec<_> = own
        .map(|task| (task.cpu.unwrap_or(0), task.core.map(|core| format!("{core:?}"))))
        .collect();
    places.sort();
    places.dedup();
    (places.len() as u32).clamp(1, CAPACITY)
}

fn name_of_tasks(workload: &WorkloadFile) -> String {
    let names: Vec<&str> = workload.tasks.iter().map(|task| &*task.name).collect();
    name_of(&names.join(", "))
}

/// Assembles the samples of a job: each as an item, with what the host keeps of its tasks' code.
///
/// # Errors
/// What the assembler refuses; a task too large for the code area; what is wrong with tasks, each named.
fn pack(
    file: &JobFile,
    samples: &[SampleFile],
    programs: &Programs,
) -> Result<Vec<PackedItem>, JobError> {
    let alone = samples.iter().filter(|sample| sample.tasks.is_none());
    let snippets: Vec<SnippetFile> = alone.map(|sample| sample.code.clone()).collect();
    let symbols: Vec<_> = snippets.iter().map(|one| memory::symbols(&one.options.memory)).collect();
    let both = snippets.iter().zip(&symbols);
    let all: Vec<Source> = both.flat_map(|(one, symbols)| sources(one, symbols)).collect();
    let assembled = assemble_with_labels(&all).map_err(|failed| {
        let alone = JobFile { snippets: snippets.clone(), ..file.clone() };
        place::explain(failed, &all, &alone)
    })?;
    let mut parts = assembled.as_chunks::<SOURCES>().0.iter();
    let mut items = Vec::with_capacity(samples.len());
    for sample in samples {
        let (workload, codes) = match &sample.tasks {
            Some(tasks) => of_tasks(tasks, programs)?,
            None => {
                let part = parts.next().expect("each sample with code of its own was assembled");
                let (task, code) = sample.task(part, &file.source)?;
                (Workload { tasks: vec![task], tick_ns: 0, jitter: None }, vec![code])
            }
        };
        let item = Item::Sample(Sampling { workload, ..sample.sampling.clone() });
        limits::check_item(&item).map_err(|error| {
            let of_task = sample.tasks.as_ref().and_then(|one| one.task_error(&error));
            of_task.unwrap_or_else(|| sample.code.at(&file.source, &error))
        })?;
        items.push((item, Some(codes)));
    }
    Ok(items)
}

/// Tasks for the scheduler.
fn of_tasks(
    tasks: &WorkloadFile,
    programs: &Programs,
) -> Result<(Workload<'static>, Vec<TaskCode>), JobError> {
    let Assembled { mut workload, symbols } = tasks.assemble()?;
    programs.fill(tasks, &mut workload)?;
    let codes = workload.tasks.iter().zip(symbols).map(|(task, labels)| {
        // The body follows the init code, from whose begin labels count.
        let ahead = task.init.len() as u64;
        let labels =
            labels.into_iter().filter_map(|(name, at)| Some((at.checked_sub(ahead)?, name)));
        TaskCode { body: task.body.to_vec(), labels: labels.collect() }
    });
    let codes = codes.collect();
    Ok((workload, codes))
}

impl FileItem for SampleFile {
    fn place(&self, source: &str) -> Place {
        self.code.place(source)
    }

    fn criteria(&self) -> &CriteriaFile {
        &self.code.criteria
    }

    fn criteria_mut(&mut self) -> &mut CriteriaFile {
        &mut self.code.criteria
    }

    fn memory(&self) -> &[MemoryFile] {
        self.tasks.as_ref().map_or(&self.code.options.memory, |tasks| &tasks.memory)
    }

    fn memory_mut(&mut self) -> &mut Vec<MemoryFile> {
        let own = &mut self.code.options.memory;
        self.tasks.as_mut().map_or(own, |tasks| &mut tasks.memory)
    }

    fn asks(&self) -> &[Ask] {
        &self.code.asks
    }

    fn events(&self) -> Vec<&EventText> {
        self.texts.iter().collect()
    }

    fn workload(&self) -> Option<&WorkloadFile> {
        self.tasks.as_ref()
    }

    fn check_expected(&self, source: &str) -> Result<(), JobError> {
        let tasks = self.tasks.iter().flat_map(|tasks| &tasks.tasks);
        let whole = tasks.map(|task| format!("turns, task {}", task.name)).collect();
        let mut events = Names::of_events(self.texts.iter());
        events.extend((self.sampling.interval_ns != 0).then(|| "timer".to_string()));
        let behind = &[", overflows", ", samples", ", dropped", ", estimate"];
        let names = Names { whole, behind, events };
        names.check(&self.code.criteria).map_err(|message| self.code.refused(source, message))
    }

    fn refused(&self, source: &str, message: String) -> JobError {
        self.code.refused(source, message)
    }
}

impl Section for SampleFile {
    type Raw = RawSample;

    fn decide(
        raw: Spanned<RawSample>,
        _number: usize,
        text: &Text,
        source: &str,
    ) -> Result<Self, JobError> {
        decide(raw, text, source)
    }

    fn pack(
        file: &JobFile,
        all: &[Self],
        programs: &Programs,
    ) -> Result<Vec<PackedItem>, JobError> {
        pack(file, all, programs)
    }
}

impl SampleFile {
    /// Its code as a task that runs alone.
    fn task(
        &self,
        [_, init, _, body]: &[Code; SOURCES],
        source: &str,
    ) -> Result<(Task<'static>, TaskCode), JobError> {
        let bytes = (init.bytes.len() + body.bytes.len()) as u64 + limits::HARNESS_BYTES;
        if bytes > limits::CODE_AREA_BYTES {
            let max = limits::CODE_AREA_BYTES;
            let message = format!("its code takes {bytes} bytes; at most {max} fit");
            return Err(self.code.refused(source, message));
        }
        let bits = self.code.options.bits;
        let codes = [&init.bytes[..], &body.bytes];
        let task = Task {
            name: self.sampling.name.clone(),
            init: Cow::Owned(init.bytes.clone()),
            body: Cow::Owned(body.bytes.clone()),
            turns: self.turns,
            loop_counter: analyse::loop_counter(&codes, bits),
            extended_state: codes.iter().any(|code| analyse::uses_extended_state(code, bits)),
            ring: Ring::Kernel,
            parent: None,
            cpu: None,
            cpus: None,
            core: None,
            outlives: false,
            program: None,
            bits,
        };
        let labels = body.labels.iter().map(|(name, at)| (*at, name.clone())).collect();
        Ok((task, TaskCode { body: body.bytes.clone(), labels }))
    }
}

#[cfg(test)]
mod tests;
