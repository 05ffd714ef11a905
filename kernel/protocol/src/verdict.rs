//! Whether an item came to what its job expects, from its record alone.
//!
//! The firmware judges so when it writes a record, and the host again with its own job when it reads one. Nothing else
//! decides whether a run passes.

mod figures;
#[cfg(test)]
mod tests;

pub use figures::{Figure, figures};

use crate::criteria::{Bounds, Criteria, Expect};
use crate::record::{Miss, Record, TaskEnd, TaskResult, Uncounted, Verdict};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What a record comes to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Whether the item passed.
    pub verdict: Verdict,
    /// What of it did not.
    pub misses: Vec<Miss>,
}

/// Judges a record. `None`: it is no item's result, so there is nothing to judge.
#[must_use]
pub fn judge(criteria: &Criteria, record: &Record) -> Option<Judgement> {
    // Agreement of exact mode with the PMU is an expectation too, and so is that each task exits.
    let (expects, holds) = match record {
        Record::Result(_) | Record::Processors(_) | Record::History(_) => (false, true),
        Record::Exact(exact) => {
            let all = &exact.comparisons;
            (!all.is_empty(), all.iter().all(|comparison| comparison.agrees))
        }
        Record::Tasks(ran) => (false, whole(&ran.tasks)),
        Record::Count(count) => (false, whole(&count.tasks)),
        Record::Sample(sampled) => {
            (false, sampled.schedule.as_ref().is_none_or(|schedule| whole(&schedule.tasks)))
        }
        _ => return None,
    };
    let uncounted = uncounted(record);
    let mut misses: Vec<Miss> = Vec::new();
    if !criteria.allow_uncounted {
        misses.extend(uncounted.iter().map(not_counted));
    }
    if !criteria.expect.is_empty() {
        let figures = figures(record);
        let excused = criteria.allow_uncounted && !uncounted.is_empty();
        criteria.expect.iter().for_each(|expect| missed(expect, &figures, excused, &mut misses));
    }
    let verdict = match (misses.is_empty() && holds, expects || !criteria.expect.is_empty()) {
        (false, _) => Verdict::Fail,
        (true, true) => Verdict::Pass,
        (true, false) => Verdict::None,
    };
    Some(Judgement { verdict, misses })
}

/// Judges a record, and writes the judgement into it. Returns the verdict, if there is something to judge.
pub fn judge_record(criteria: &Criteria, record: &mut Record) -> Option<Verdict> {
    let Judgement { verdict, misses } = judge(criteria, record)?;
    let (place, list) = place(record)?;
    (*place, *list) = (verdict, misses);
    Some(verdict)
}

/// What the record itself says of it.
#[must_use]
pub fn said(record: &Record) -> Option<(Verdict, &[Miss])> {
    Some(match record {
        Record::Result(result) => (result.verdict, &result.misses),
        Record::Exact(exact) => (exact.verdict, &exact.misses),
        Record::Tasks(ran) => (ran.verdict, &ran.misses),
        Record::Count(count) => (count.verdict, &count.misses),
        Record::Processors(result) => (result.verdict, &result.misses),
        Record::Sample(sampled) => (sampled.verdict, &sampled.misses),
        Record::History(history) => (history.verdict, &history.misses),
        _ => return None,
    })
}

fn place(record: &mut Record) -> Option<(&mut Verdict, &mut Vec<Miss>)> {
    Some(match record {
        Record::Result(result) => (&mut result.verdict, &mut result.misses),
        Record::Exact(exact) => (&mut exact.verdict, &mut exact.misses),
        Record::Tasks(ran) => (&mut ran.verdict, &mut ran.misses),
        Record::Count(count) => (&mut count.verdict, &mut count.misses),
        Record::Processors(result) => (&mut result.verdict, &mut result.misses),
        Record::Sample(sampled) => (&mut sampled.verdict, &mut sampled.misses),
        Record::History(history) => (&mut history.verdict, &mut history.misses),
        _ => return None,
    })
}

fn whole(tasks: &[TaskResult]) -> bool {
    tasks.iter().all(|task| task.end == TaskEnd::Exit)
}

/// What was asked for and not counted: events, and sets that lost the counters or never had them.
#[must_use]
pub fn uncounted(record: &Record) -> Vec<Uncounted> {
    match record {
        Record::Result(result) => result.uncounted.clone(),
        Record::Exact(exact) => exact.uncounted.clone(),
        Record::Sample(sampled) => sampled.uncounted.clone(),
        Record::History(history) => history.uncounted.clone(),
        Record::Processors(result) => {
            let absent = result.processors.iter().filter_map(|one| {
                let reason = one.pmu_absent.clone().filter(|_| !result.sums.is_empty())?;
                Some(Uncounted { event: format!("processor {}", one.processor), reason })
            });
            result.uncounted.iter().cloned().chain(absent).collect()
        }
        Record::Count(count) => {
            let mut all = count.uncounted.clone();
            for set in &count.sets {
                all.extend(set.uncounted.iter().cloned());
                let lost = match (&set.evicted, &set.refused) {
                    (Some(eviction), _) => Some(format!("evicted by {}", eviction.by)),
                    (None, refused) => refused.as_ref().map(|why| format!("refused: {why}")),
                };
                let event = format!("set {}", set.name);
                all.extend(lost.map(|reason| Uncounted { event, reason }));
            }
            all
        }
        _ => Vec::new(),
    }
}

fn not_counted(one: &Uncounted) -> Miss {
    let Uncounted { event, reason } = one.clone();
    Miss { figure: event, min: None, max: None, value: None, reason: Some(reason) }
}

/// Adds what misses one expectation: each figure of that name, or that there is none.
fn missed(expect: &Expect, figures: &[Figure], excused: bool, misses: &mut Vec<Miss>) {
    let Expect { figure: wanted, bounds: Bounds { min, max } } = expect;
    let mut found = false;
    for one in figures.iter().filter(|one| one.name == *wanted || one.label == *wanted) {
        found = true;
        match one.value {
            Some(value) if expect.bounds.holds(value) => {}
            value => {
                let reason = value.is_none().then(|| "it never had a counter".to_string());
                let (min, max) = (*min, *max);
                misses.push(Miss { figure: one.label.clone(), min, max, value, reason });
            }
        }
    }
    if !found && !excused {
        let reason = Some("there is no such figure".to_string());
        let (figure, min, max) = (wanted.to_string(), *min, *max);
        misses.push(Miss { figure, min, max, value: None, reason });
    }
}

/// A miss in a sentence: the figure, what it came to, and its bounds.
#[must_use]
pub fn sentence(miss: &Miss) -> String {
    let Miss { figure, min, max, value, reason } = miss;
    let bounds = Bounds { min: *min, max: *max };
    let expects = min.is_some() || max.is_some();
    match (value, reason) {
        (Some(value), _) => format!("{figure} came to {value}; expected {bounds}"),
        (None, Some(reason)) if expects => format!("{figure}: {reason}; expected {bounds}"),
        (None, Some(reason)) => format!("{figure} was not counted: {reason}"),
        (None, None) => format!("{figure} was not counted; expected {bounds}"),
    }
}
