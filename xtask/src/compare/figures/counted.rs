//! Figures of what runs once: tasks, counts over tasks, samples. Names and values are those of
//! [`protocol::verdict::figures`].

use super::super::limits::Worse;
use super::{EVENTS, Figure, SCALED, Spread, once};
use protocol::record::{CountResult, CountValue, CountedEvent, Record, SampleResult};
use protocol::verdict::{self, figures};

/// What of a run of tasks is neither better nor worse with more of it: the scheduler's own doings.
const NEVER: [&str; 3] = ["ticks", "groups", "passes"];
/// What has to stay as it is: what a task computed, and how often counting began and ended.
const EITHER: [&str; 3] = ["value", "starts", "stops"];

/// What is worse, of a figure that is no count of an event.
fn worse(name: &str) -> Worse {
    let what = name.split_once(", task ").map_or(name, |(what, _)| what);
    // A set's name stands in front of its own figures.
    let what = what.rsplit_once(": ").map_or(what, |(_, figure)| figure);
    match what {
        _ if NEVER.contains(&what) => Worse::Never,
        _ if EITHER.contains(&what) => Worse::Either,
        "turns" => Worse::Less,
        _ => Worse::More,
    }
}

/// Everything that `record` has, as of one run.
fn plain(record: &Record, steady: bool) -> impl Iterator<Item = Figure> {
    figures(record).into_iter().filter_map(move |figure| {
        let one = Figure::new(figure.label, EVENTS, figure.value?, once(steady));
        Some(Figure { worse: worse(&figure.name), ..one })
    })
}

pub(super) fn of_tasks(record: &Record, steady: bool) -> Vec<Figure> {
    plain(record, steady).collect()
}

/// Counts know what they counted, and whether they had a counter all the time.
pub(super) fn of_count(count: &CountResult, record: &Record, steady: bool) -> Vec<Figure> {
    let mut known: Vec<(String, &CountedEvent, Option<CountValue>)> = Vec::new();
    let own = count.events.iter().map(|event| (String::new(), event));
    let sets = count
        .sets
        .iter()
        .flat_map(|set| set.events.iter().map(move |event| (format!("{}: ", set.name), event)));
    for (set, event) in own.chain(sets) {
        let name = |whose: &str| format!("{set}{}{whose}", event.event);
        known.push((name(""), event, Some(event.sum)));
        known.push((name(", kernel"), event, Some(event.kernel)));
        known.push((name(", overflows"), event, None));
        for (cpu, value) in count.cpus.iter().zip(&event.cpus) {
            known.push((name(&format!(", cpu {}", cpu.processor)), event, Some(*value)));
        }
        for (task, value) in count.tasks.iter().zip(&event.tasks) {
            known.push((name(&format!(", task {}", task.name)), event, Some(*value)));
        }
    }
    let with = |mut figure: Figure| {
        let Some((_, event, value)) = known.iter().find(|(name, ..)| *name == figure.name) else {
            return figure;
        };
        figure.event = Some(event.name.clone());
        figure.worse = Worse::More;
        if value.is_some_and(|value| value.counted < value.enabled) {
            figure.spread = Spread::Unknown(SCALED);
        }
        figure
    };
    plain(record, steady).map(with).collect()
}

/// What is counted by overflows depends on the period.
pub(super) fn of_samples(sampled: &SampleResult, record: &Record, steady: bool) -> Vec<Figure> {
    let with = |mut figure: Figure| {
        for one in &sampled.events {
            let Some(behind) = figure.name.strip_prefix(&*one.event) else { continue };
            if [", overflows", ", samples", ", dropped"].contains(&behind) {
                figure.period = Some(one.period);
                figure.worse = if behind == ", dropped" { Worse::More } else { Worse::Never };
            }
        }
        figure
    };
    plain(record, steady).map(with).collect()
}

/// Figures that never had a counter, of a record, and why they are none.
pub(super) fn without_value(record: &Record) -> Vec<(String, String)> {
    let all = verdict::figures(record).into_iter();
    let none = all.filter(|figure| figure.value.is_none());
    none.map(|figure| (figure.label, "it never had a counter".to_string())).collect()
}
