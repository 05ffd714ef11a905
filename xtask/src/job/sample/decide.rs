//! What a sample's keys leave open is decided.

use super::keys::{OwnRate, RawEvent, RawSample};
use super::{CAPACITY, REGISTERS, SampleFile};
use crate::events::EventText;
use crate::job::errors::{JobError, Place};
use crate::job::expect::CriteriaFile;
use crate::job::file::{Lines, Options, SnippetFile, Spans, Text, lines, name_of, position};
use crate::job::function::{FunctionFile, RawFunction};
use crate::job::only::RawOnly;
use crate::job::whole::{self, is_whole};
use crate::job::workload::{DEFAULT_LIMIT_US, TaskFile, WorkloadFile};
use crate::metrics::shares;
use protocol::job::sampling::{Rate, SampledEvent, Sampling};
use protocol::job::workload::Workload;
use std::borrow::Cow;
use toml::Spanned;

/// Fills in what is not said.
pub(super) fn decide(
    spanned: Spanned<RawSample>,
    text: &Text,
    source: &str,
) -> Result<SampleFile, JobError> {
    let place = lines(text, &spanned.span());
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
    let mut of_whole = Vec::new();
    for event in std::mem::take(&mut raw.events) {
        let (event, own) = match event {
            RawEvent::Plain(event) if is_whole(&event) => {
                whole::add(&mut of_whole, [event]);
                continue;
            }
            RawEvent::Own(OwnRate { event, .. }) if is_whole(&event) => {
                return Err(wrong(format!(
                    "{event}: {} is read before the code and after it, and no sample is taken by it: write the event alone",
                    whole::what(&event)
                )));
            }
            RawEvent::Own(OwnRate { event, .. }) if is_field(&event) => {
                return Err(wrong(format!(
                    "{event}: PERF_METRICS is counted beside samples, and no sample is taken by it: write the event alone"
                )));
            }
            RawEvent::Plain(event) if is_field(&event) => (event, Some(BESIDE)),
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
    let vectors = std::mem::take(&mut raw.vectors).decide().map_err(wrong)?;
    let function = RawFunction {
        object: raw.object.take(),
        function: raw.function.take(),
        args: raw.args.take(),
        setup: raw.setup.take(),
        teardown: raw.teardown.take(),
    };
    let tasks = match function.decide(source).map_err(wrong)? {
        Some(function) => Some(of_function(&raw, function, &place, source).map_err(wrong)?),
        None => written_tasks(&mut raw, text, source).map_err(wrong)?,
    };
    let cpus = tasks.as_ref().map_or(1, processors);
    let asm = raw.asm.as_ref().map_or(place, |asm| lines(text, &asm.span()));
    let init_lines = raw.init.as_ref().map_or(Lines::default(), |init| lines(text, &init.span()));
    let init = raw.init.map(Spanned::into_inner).unwrap_or_default();
    let body = raw.asm.map(Spanned::into_inner).unwrap_or_default();
    let unnamed = || tasks.as_ref().map_or_else(|| name_of(&body), name_of_tasks);
    let name = raw.name.unwrap_or_else(unnamed);
    let none = Lines::default();
    let criteria = CriteriaFile::new(raw.expect, raw.allow_uncounted, raw.limits);
    Ok(SampleFile {
        texts,
        whole: of_whole,
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
            vectors,
            counters: raw.counters.iter().map(|text| Cow::Owned(text.to_string())).collect(),
            only: raw.only.as_ref().map(RawOnly::decide).unwrap_or_default(),
            energy: Vec::new(),
            uncore: Vec::new(),
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
                whole: place,
                asm,
                one_time_init: none,
                init: init_lines,
                late_init: none,
            }),
        },
    })
}

/// The rate of what no sample is taken by; the machine does not look at it.
pub(super) const BESIDE: Rate = Rate::Period(u64::MAX);

/// Whether an event is a field of PERF_METRICS.
fn is_field(event: &EventText) -> bool {
    shares::field(event.to_string().trim()).is_some()
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
