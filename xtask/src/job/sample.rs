//! `[[sample]]`: code that is sampled while it runs.

use super::assemble::{Code, Source, Syntax, assemble_with_labels};
use super::errors::JobError;
use super::file::{JobFile, Lines, Options, SnippetFile, Spans, lines, name_of, position};
use super::workload::{Assembled, DEFAULT_LIMIT_US, RawTask, WorkloadFile};
use super::{SOURCES, analyse, place, sources};
use crate::events::EventText;
use protocol::job::{Item, LoopCounter};
use protocol::limits;
use protocol::sampling::{Delivery, Freeze, Keep, OnFull, Rate, SampledEvent, Sampling};
use protocol::workload::{Ring, Task, Workload};
use serde::Deserialize;
use std::borrow::Cow;
use toml::Spanned;

/// Entries of the log or the histogram, if the job does not say.
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawSample {
    name: Option<String>,
    asm: Option<Spanned<String>>,
    init: Option<Spanned<String>>,
    syntax: Option<Syntax>,
    turns: Option<u64>,
    #[serde(default)]
    events: Vec<RawEvent>,
    period: Option<u64>,
    frequency: Option<u32>,
    interval_ns: Option<u64>,
    #[serde(default)]
    keep: Keep,
    capacity: Option<u32>,
    #[serde(default)]
    on_full: OnFull,
    #[serde(default)]
    delivery: Delivery,
    #[serde(default)]
    freeze: Freeze,
    #[serde(default)]
    registers: Vec<String>,
    limit_per_ms: Option<u32>,
    tick_ns: Option<u64>,
    jitter: Option<u64>,
    limit_us: Option<u64>,
    #[serde(default)]
    task: Vec<Spanned<RawTask>>,
}

/// `"cycles"`, or with a rate of its own.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "an event, or { event = ..., period = ... }, or { event = ..., frequency = ... }"
)]
enum RawEvent {
    Plain(EventText),
    Own(OwnRate),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnRate {
    event: EventText,
    period: Option<u64>,
    frequency: Option<u32>,
}

/// Fills in what is not said.
pub(super) fn decide(
    spanned: Spanned<RawSample>,
    text: &str,
    source: &str,
) -> Result<SampleFile, JobError> {
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
            RawEvent::Own(OwnRate { event, period, frequency }) => {
                let own = rate(&event.to_string(), period, frequency)?;
                (event, own)
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
    let tasks = written_tasks(&mut raw, text, source).map_err(wrong)?;
    let asm = raw.asm.as_ref().map_or(whole, |asm| lines(text, &asm.span()));
    let init_lines = raw.init.as_ref().map_or(Lines::default(), |init| lines(text, &init.span()));
    let init = raw.init.map(Spanned::into_inner).unwrap_or_default();
    let body = raw.asm.map(Spanned::into_inner).unwrap_or_default();
    let unnamed = || tasks.as_ref().map_or_else(|| name_of(&body), name_of_tasks);
    let name = raw.name.unwrap_or_else(unnamed);
    let none = Lines::default();
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
            capacity: raw.capacity.unwrap_or(CAPACITY),
            on_full: raw.on_full,
            delivery: raw.delivery,
            freeze: raw.freeze,
            registers,
            limit_per_ms: raw.limit_per_ms.unwrap_or(0),
        },
        code: SnippetFile {
            name,
            asm: body,
            init,
            one_time_init: String::new(),
            late_init: String::new(),
            syntax: raw.syntax.unwrap_or_default(),
            options: Options::default(),
            expect: None,
            exact: None,
            processors: None,
            wanted: None,
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

/// The tasks of a sample that has such, and not code of its own.
fn written_tasks(
    raw: &mut RawSample,
    text: &str,
    source: &str,
) -> Result<Option<WorkloadFile>, String> {
    let of_code = [
        ("init", raw.init.is_some()),
        ("syntax", raw.syntax.is_some()),
        ("turns", raw.turns.is_some()),
    ];
    let of_tasks = [
        ("tick-ns", raw.tick_ns.is_some()),
        ("jitter", raw.jitter.is_some()),
        ("limit-us", raw.limit_us.is_some()),
    ];
    let given = |options: [(&'static str, bool); 3]| {
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    };
    match (&raw.asm, raw.task.is_empty()) {
        (Some(_), false) => Err("give asm or [[sample.task]] tables, not both".to_string()),
        (None, true) => Err("there is no code: give asm, or [[sample.task]] tables".to_string()),
        (Some(_), true) => match given(of_tasks) {
            Some(name) => Err(format!("{name} is for [[sample.task]] tables; asm runs alone")),
            None => Ok(None),
        },
        (None, false) => match given(of_code) {
            Some(name) => {
                Err(format!("{name} stands in each [[sample.task]] table, not beside them"))
            }
            None => {
                let tasks = std::mem::take(&mut raw.task);
                Ok(Some(WorkloadFile::decide(tasks, raw.tick_ns, raw.jitter, text, source)))
            }
        },
    }
}

fn name_of_tasks(workload: &WorkloadFile) -> String {
    let names: Vec<&str> = workload.tasks.iter().map(|task| &*task.name).collect();
    name_of(&names.join(", "))
}

/// Assembles the samples of a job: each as an item, with what the host keeps of its tasks' code.
///
/// # Errors
/// What the assembler refuses; a task too large for the code area; what is wrong with tasks, each named.
pub(super) fn pack(file: &JobFile) -> Result<Vec<(Item<'static>, Vec<TaskCode>)>, JobError> {
    let alone = file.samples.iter().filter(|sample| sample.tasks.is_none());
    let snippets: Vec<SnippetFile> = alone.map(|sample| sample.code.clone()).collect();
    let all: Vec<Source> = snippets.iter().flat_map(sources).collect();
    let assembled = assemble_with_labels(&all).map_err(|failed| {
        let samples = JobFile { snippets: snippets.clone(), ..file.clone() };
        place::explain(failed, &all, &samples)
    })?;
    let mut parts = assembled.as_chunks::<SOURCES>().0.iter();
    let mut items = Vec::with_capacity(file.samples.len());
    for sample in &file.samples {
        let (workload, codes) = match &sample.tasks {
            Some(tasks) => of_tasks(tasks)?,
            None => {
                let part = parts.next().expect("each sample with code of its own was assembled");
                let (task, code) = sample.task(part, &file.source)?;
                (Workload { tasks: vec![task], tick_ns: 0, jitter: None }, vec![code])
            }
        };
        items.push((Item::Sample(Sampling { workload, ..sample.sampling.clone() }), codes));
    }
    Ok(items)
}

/// Tasks for the scheduler.
fn of_tasks(tasks: &WorkloadFile) -> Result<(Workload<'static>, Vec<TaskCode>), JobError> {
    let Assembled { workload, symbols } = tasks.assemble()?;
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
        let memory = [init, body].map(|code| analyse::loop_counter(&code.bytes));
        let loop_counter = match memory.contains(&LoopCounter::Memory) {
            true => LoopCounter::Memory,
            false => LoopCounter::R15,
        };
        let task = Task {
            name: self.sampling.name.clone(),
            init: Cow::Owned(init.bytes.clone()),
            body: Cow::Owned(body.bytes.clone()),
            turns: self.turns,
            loop_counter,
            extended_state: [init, body].iter().any(|c| analyse::uses_extended_state(&c.bytes)),
            ring: Ring::Kernel,
            parent: None,
            cpu: None,
        };
        let labels = body.labels.iter().map(|(name, at)| (*at, name.clone())).collect();
        Ok((task, TaskCode { body: body.bytes.clone(), labels }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::parse;
    use super::super::{Purpose, pack as pack_job};
    use super::*;

    fn sampling(rest: &str) -> Result<(Sampling<'static>, TaskCode), String> {
        let text = format!("[[sample]]\nasm = 'nop; here: nop; 2: nop; .Lx: nop'\n{rest}");
        let file = parse(&text, "x.toml").map_err(|error| error.to_string())?;
        let packed = pack_job(&file, Purpose::Qemu).map_err(|error| error.to_string())?;
        let [Item::Sample(sampling)] = &packed.job.items[..] else { panic!("{packed:?}") };
        Ok((sampling.clone(), packed.sampled[0].1[0].clone()))
    }

    #[test]
    fn i4_events_have_their_own_rate_or_the_common_one() {
        let (seen, code) = sampling(
            "events = ['cycles', { event = 'instructions', frequency = 50 }, { event = 'r00c4', period = 7 }]\n\
             period = 1000\nturns = 5\nregisters = ['rax', 'r15']\nkeep = 'samples'\non-full = 'stop'",
        )
        .unwrap();
        let rates: Vec<_> = seen.events.iter().map(|event| (&*event.event, event.rate)).collect();
        let expected = [
            ("cycles", Rate::Period(1000)),
            ("instructions", Rate::PerSecond(50)),
            ("r00c4", Rate::Period(7)),
        ];
        assert_eq!(rates, expected);
        assert_eq!((seen.registers, seen.on_full, seen.capacity), (0x8001, OnFull::Stop, 4096));
        let task = &seen.workload.tasks[0];
        assert_eq!((task.turns, &*task.body), (5, &[0x90; 4][..]));
        assert_eq!(code, TaskCode { body: vec![0x90; 4], labels: vec![(1, "here".into())] });
    }

    #[test]
    fn c7_what_is_wrong_is_named_with_its_place() {
        for (rest, part) in [
            ("events = ['cycles']", "`cycles` has neither"),
            ("events = ['cycles']\nperiod = 1\nfrequency = 1", "not both"),
            ("events = [{ event = 'cycles', times = 1 }]", "an event, or {"),
            ("", "nothing to sample by"),
            ("events = ['cycles']\nperiod = 0", "period is 0"),
            ("interval-ns = 10", "interval-ns is 10"),
            ("interval-ns = 10000\ndelivery = 'nmi'", "delivery"),
            ("interval-ns = 10000\nregisters = ['eax']", "`eax` is no general register"),
            ("interval-ns = 10000\nregisters = ['rax']", "keep = \"samples\""),
            ("interval-ns = 10000\ncapacity = 1000000", "capacity is 1000000"),
            ("interval-ns = 10000\ninit = 'bad code'", "init code"),
            ("interval-ns = 10000\ntick-ns = 5000", "tick-ns is for [[sample.task]]"),
            ("interval-ns = 10000\n[[sample.task]]\nname = 'a'\nasm = 'nop'", "not both"),
        ] {
            let error = sampling(rest).unwrap_err();
            assert!(error.contains(part), "{rest}: {error}");
        }
    }

    const TASKS: &str = "[[sample]]\nevents = ['instructions:u']\nperiod = 100\n\
        [[sample.task]]\nname = 'a'\nasm = 'nop; here: nop'\ninit = 'first: nop; nop'\n\
        [[sample.task]]\nname = 'b'\nasm = 'inc rax; there: inc rax'\nring = 3\nparent = 'a'\nturns = 7\n";

    fn tasks(text: &str) -> Result<(Sampling<'static>, Vec<TaskCode>, u32), String> {
        let file = parse(text, "x.toml").map_err(|error| error.to_string())?;
        let packed = pack_job(&file, Purpose::Qemu).map_err(|error| error.to_string())?;
        let Some(Item::Sample(sampling)) = packed.job.items.last() else { panic!("{packed:?}") };
        let (item, codes) = packed.sampled[0].clone();
        Ok((sampling.clone(), codes, item))
    }

    #[test]
    fn i8_tasks_are_written_as_for_a_run_and_keep_their_own_labels() {
        // Items of other kinds come before it.
        let before = "[[run]]\n[[run.task]]\nname = 'r'\nasm = 'nop'\n";
        let (sampling, codes, item) = tasks(&format!("{before}{TASKS}")).unwrap();
        assert_eq!((&*sampling.name, item), ("a, b", 1));
        assert_eq!((sampling.limit_us, sampling.workload.tick_ns), (DEFAULT_LIMIT_US, 1_000_000));
        let [a, b] = &sampling.workload.tasks[..] else { panic!() };
        assert_eq!((a.ring, b.ring, b.parent, b.turns), (Ring::Kernel, Ring::User, Some(0), 7));
        assert_eq!(codes[0], TaskCode { body: vec![0x90; 2], labels: vec![(1, "here".into())] });
        assert_eq!(codes[1].labels, [(3, "there".to_string())]);
    }

    #[test]
    fn c7_what_is_wrong_with_tasks_is_named_with_its_place() {
        for (from, to, part) in [
            ("period = 100", "period = 100\ninterval-ns = 10000", "interval-ns needs tick-ns = 0"),
            ("period = 100", "period = 100\nlimit-us = 0", "limit-us is 0"),
            ("period = 100", "period = 100\nturns = 5", "turns stands in each"),
            ("ring = 3", "ring = 2", "ring is 2"),
            ("parent = 'a'", "parent = 'c'", "parent `c` does not exist"),
            ("inc rax;", "inc nonsense;", "x.toml:10"),
        ] {
            let text = TASKS.replace(from, to);
            assert_ne!(text, TASKS, "{from}");
            let error = tasks(&text).unwrap_err();
            assert!(error.contains(part), "{to}: {error}");
        }
        let bare = "[[sample]]\nevents = ['cycles']\nperiod = 100";
        assert!(tasks(bare).unwrap_err().contains("there is no code"));
        let both = TASKS.replace("period = 100", "period = 100\ninterval-ns = 10000\ntick-ns = 0");
        assert_eq!(tasks(&both).unwrap().0.interval_ns, 10_000);
    }
}
