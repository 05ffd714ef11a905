//! The figures of a record that an expectation can name.

use crate::record::{
    CountResult, CountValue, CountedEvent, HistoryResult, Record, SampleResult, TasksResult,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What an expectation calls it. Several figures may have one name: all are meant then.
    pub name: String,
    /// The same, and which of them it is.
    pub label: String,
    /// Its value; `None`: it never had a counter.
    pub value: Option<f64>,
}

fn figure(name: impl Into<String>, value: impl Into<Option<f64>>) -> Figure {
    let name = name.into();
    Figure { label: name.clone(), name, value: value.into() }
}

/// All figures of a record.
#[must_use]
pub fn figures(record: &Record) -> Vec<Figure> {
    match record {
        Record::Result(result) => {
            let of = result.metrics.iter();
            of.map(|metric| figure(&*metric.event, metric.value.median)).collect()
        }
        // Counts and mnemonics have no name in common: the former are plurals.
        Record::Exact(exact) => {
            let all = exact.counts.iter().chain(&exact.opcodes);
            all.map(|count| figure(&*count.event, count.value)).collect()
        }
        Record::Processors(result) => {
            let mut all = Vec::new();
            for one in &result.processors {
                all.extend(one.metrics.iter().map(|metric| Figure {
                    name: metric.event.clone(),
                    label: format!("{} on cpu {}", metric.event, one.processor),
                    value: Some(metric.value.median),
                }));
            }
            let sum = |event: &str| format!("{event}, sum");
            all.extend(result.sums.iter().map(|one| figure(sum(&one.event), one.value)));
            all
        }
        Record::History(history) => of_history(history),
        Record::Tasks(ran) => of_tasks(ran),
        Record::Count(count) => of_count(count),
        Record::Sample(sampled) => of_samples(sampled),
        _ => Vec::new(),
    }
}

/// Each event up to the last row, and up to each row.
fn of_history(history: &HistoryResult) -> Vec<Figure> {
    let mut all = Vec::new();
    for one in &history.series {
        all.push(figure(&*one.event, one.median.last().copied()));
        for (row, value) in (1..).zip(&one.median) {
            let at = row * u64::from(history.step);
            all.push(figure(format!("{}, row {at}", one.event), *value));
        }
    }
    all
}

fn of_tasks(ran: &TasksResult) -> Vec<Figure> {
    let number = |value: u64| Some(value as f64);
    let mut all = Vec::from([
        figure("ticks", number(ran.ticks.count)),
        figure("switches", number(ran.switches)),
        figure("instructions:u", ran.user_instructions.map(|count| count as f64)),
    ]);
    for task in &ran.tasks {
        let user = |count: Option<u64>| count.map(|count| count as f64);
        for (what, value) in [
            ("turns", number(task.turns)),
            ("switches", number(task.switches)),
            ("value", number(task.value.0)),
            ("instructions:u", user(task.user_instructions)),
        ] {
            all.push(figure(format!("{what}, task {}", task.name), value));
        }
    }
    all
}

fn of_count(count: &CountResult) -> Vec<Figure> {
    let number = |value: u64| Some(value as f64);
    let mut all = Vec::from([
        figure("ticks", number(count.ticks)),
        figure("switches", number(count.switches)),
    ]);
    if let Some(gate) = &count.gate {
        all.extend([figure("starts", number(gate.starts)), figure("stops", number(gate.stops))]);
    }
    let own = (!count.events.is_empty()).then_some((
        "",
        &count.events[..],
        [count.groups.into(), count.passes],
    ));
    let sets = count.sets.iter().filter(|set| !set.events.is_empty());
    let sets = sets.map(|set| (&*set.name, &set.events[..], [set.groups.into(), set.passes]));
    for (set, events, [groups, passes]) in own.into_iter().chain(sets) {
        let set = if set.is_empty() { String::new() } else { format!("{set}: ") };
        all.push(figure(format!("{set}groups"), number(groups)));
        all.push(figure(format!("{set}passes"), number(passes)));
        events.iter().for_each(|event| of_event(count, &set, event, &mut all));
    }
    all
}

/// An event of a count: all of it, and everybody's part. Names are those of the CSV.
fn of_event(count: &CountResult, set: &str, event: &CountedEvent, all: &mut Vec<Figure>) {
    let scaled = |value: &CountValue| value.scaled.map(|scaled| scaled as f64);
    let name = |whose: &str| format!("{set}{}{whose}", event.event);
    all.push(figure(name(""), scaled(&event.sum)));
    all.push(figure(name(", kernel"), scaled(&event.kernel)));
    if let Some(overflows) = event.overflows {
        all.push(figure(name(", overflows"), overflows as f64));
    }
    for (cpu, value) in count.cpus.iter().zip(&event.cpus) {
        all.push(figure(name(&format!(", cpu {}", cpu.processor)), scaled(value)));
    }
    for (task, value) in count.tasks.iter().zip(&event.tasks) {
        all.push(figure(name(&format!(", task {}", task.name)), scaled(value)));
    }
}

/// What each counter saw, and what became of its overflows.
fn of_samples(sampled: &SampleResult) -> Vec<Figure> {
    let mut all = Vec::new();
    for one in &sampled.events {
        let number = |value: u64| Some(value as f64);
        let periods = one.overflows.saturating_add(one.throttled);
        let seen = periods.saturating_mul(one.period).saturating_add(one.rest);
        all.push(figure(&*one.event, number(seen)));
        for (what, value) in
            [("overflows", one.overflows), ("samples", one.samples), ("dropped", one.dropped)]
        {
            all.push(figure(format!("{}, {what}", one.event), number(value)));
        }
    }
    if let Some(schedule) = &sampled.schedule {
        let turns = schedule.tasks.iter();
        all.extend(turns.map(|task| {
            figure(["turns, task ", &task.name].concat().to_string(), task.turns as f64)
        }));
    }
    all
}
