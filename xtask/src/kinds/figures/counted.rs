//! Figures of what runs once: tasks, counts over tasks, samples. Names and values are those of
//! [`protocol::record::figures`].

use super::{EVENTS, Figure, JOULES, SCALED, Spread, once};
use crate::limits::Worse;
use protocol::record::{
    CountResult, CountValue, CountedEnergy, CountedEvent, ItemRecord, SampleResult, TasksResult,
};

/// What of a run of tasks is neither better nor worse with more of it: the scheduler's own doings.
const NEVER: [&str; 4] = ["ticks", "groups", "passes", "moves"];
/// What is counted of every run of tasks.
const INSTRUCTIONS: &str = "instructions:u";
/// What samples by time are called; the PMU counts nothing for them.
const TIMER: &str = "timer";
/// What samples have behind an event's name.
const OF_SAMPLES: [&str; 5] = ["", ", overflows", ", samples", ", dropped", ", estimate"];
/// What has to stay as it is: what a task computed, and how often counting began and ended.
const EITHER: [&str; 3] = ["value", "starts", "stops"];

/// What is worse, of a figure that is not a count of an event.
fn worse(name: &str) -> Worse {
    let what = name.split_once(", task ").map_or(name, |(what, _)| what);
    // A set's name is in front of its own figures.
    let what = what.rsplit_once(": ").map_or(what, |(_, figure)| figure);
    match what {
        _ if NEVER.contains(&what) => Worse::Never,
        _ if EITHER.contains(&what) => Worse::Either,
        "turns" => Worse::Less,
        _ => Worse::More,
    }
}

/// Everything that `result` has, as of one run.
pub(crate) fn plain(result: &dyn ItemRecord, steady: bool) -> impl Iterator<Item = Figure> {
    result.figures().into_iter().filter_map(move |figure| {
        let whole = result.whole(&figure.name);
        let one = Figure::new(figure.label, EVENTS, figure.value?, once(steady));
        Some(Figure { worse: worse(&figure.name), whole, ..one })
    })
}

/// What a run of tasks came to: only its instructions are counted by the PMU.
pub(crate) fn of_tasks(ran: &TasksResult, steady: bool) -> Vec<Figure> {
    let with = |mut figure: Figure| {
        let what = figure.name.split_once(", task ").map_or(&*figure.name, |(what, _)| what);
        figure.event = (what == INSTRUCTIONS).then(|| INSTRUCTIONS.to_string());
        figure
    };
    in_joules(plain(ran, steady).map(with).collect(), &ran.energy)
}

/// Energy is no number of events.
fn in_joules(mut figures: Vec<Figure>, energy: &[CountedEnergy]) -> Vec<Figure> {
    let sums = CountedEnergy::sums(energy);
    let is_energy = |figure: &Figure| sums.iter().any(|(name, _)| *name == figure.name);
    figures.iter_mut().filter(|one| is_energy(one)).for_each(|one| one.unit = JOULES);
    figures
}

/// Counts know what they counted, and whether they had a counter all the time.
pub(crate) fn of_count(count: &CountResult, steady: bool) -> Vec<Figure> {
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
        for (whose, value) in count.shares_of(event) {
            known.push((name(&whose), event, Some(value)));
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
    in_joules(plain(count, steady).map(with).collect(), &count.energy)
}

/// What is counted by overflows depends on the period.
pub(crate) fn of_samples(sampled: &SampleResult, steady: bool) -> Vec<Figure> {
    let with = |mut figure: Figure| {
        for one in &sampled.events {
            let Some(behind) = figure.name.strip_prefix(&*one.event) else { continue };
            if OF_SAMPLES.contains(&behind) && one.event != TIMER {
                figure.event = Some(one.event.clone());
            }
            if [", overflows", ", samples", ", dropped"].contains(&behind) {
                figure.period = Some(one.period);
                figure.worse = if behind == ", dropped" { Worse::More } else { Worse::Never };
            }
        }
        figure
    };
    in_joules(plain(sampled, steady).map(with).collect(), &sampled.energy)
}
