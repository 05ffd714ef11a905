//! Whether an item came to what its job expects, from its record alone.
//!
//! The firmware judges so when it writes a record, and the host again with its own job when it reads one. Nothing else
//! decides whether a run passes.

#[cfg(test)]
mod tests;

use crate::job::criteria::{Bounds, Criteria, Expect};
use crate::record::{Figure, ItemRecord, Miss, Record, TaskEnd, TaskResult, Uncounted, Verdict};
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
    let result = record.result()?;
    // What a kind expects by itself is an expectation too; that each task exits is none, but has to hold.
    let agrees = result.agrees();
    let holds = agrees.unwrap_or(true) && whole(result.tasks());
    let uncounted = result.uncounted();
    let mut misses: Vec<Miss> = Vec::new();
    if !criteria.allow_uncounted {
        misses.extend(uncounted.iter().map(not_counted));
    }
    if !criteria.expect.is_empty() {
        let figures = result.figures();
        let excused = criteria.allow_uncounted && !uncounted.is_empty();
        for expect in criteria.expect.iter() {
            missed(expect, result, &figures, excused, &mut misses);
        }
    }
    let verdict =
        match (misses.is_empty() && holds, agrees.is_some() || !criteria.expect.is_empty()) {
            (false, _) => Verdict::Fail,
            (true, true) => Verdict::Pass,
            (true, false) => Verdict::None,
        };
    Some(Judgement { verdict, misses })
}

/// Judges a record, and writes the judgement into it. Returns the verdict, if there is something to judge.
pub fn judge_record(criteria: &Criteria, record: &mut Record) -> Option<Verdict> {
    let Judgement { verdict, misses } = judge(criteria, record)?;
    let head = record.result_mut()?.head_mut();
    (*head.verdict, *head.misses) = (verdict, misses);
    Some(verdict)
}

/// What the record itself says of it.
#[must_use]
pub fn said(record: &Record) -> Option<(Verdict, &[Miss])> {
    record.result().map(|result| {
        let head = result.head();
        (head.verdict, head.misses)
    })
}

fn whole(tasks: &[TaskResult]) -> bool {
    tasks.iter().all(|task| task.end == TaskEnd::Exit)
}

/// What was asked for and not counted: events, and sets that lost the counters or never had them.
#[must_use]
pub fn uncounted(record: &Record) -> Vec<Uncounted> {
    record.result().map(ItemRecord::uncounted).unwrap_or_default()
}

fn not_counted(one: &Uncounted) -> Miss {
    let Uncounted { event, reason } = one.clone();
    Miss { figure: event, min: None, max: None, value: None, reason: Some(reason) }
}

/// Adds what misses one expectation: each figure of that name, one that the record leaves out, or that there is none.
fn missed(
    expect: &Expect,
    result: &dyn ItemRecord,
    figures: &[Figure],
    excused: bool,
    misses: &mut Vec<Miss>,
) {
    let Expect { figure: wanted, bounds: Bounds { min, max } } = expect;
    // The reason is of a figure without a value.
    let mut miss = |figure: &str, value: Option<f64>, reason: &str| {
        let whole = result.whole(figure);
        let holds = match whole {
            Some(whole) => expect.bounds.holds_whole(whole),
            None => value.is_some_and(|value| expect.bounds.holds(value)),
        };
        if !holds {
            // All of its digits, where the value may lack some.
            let long = whole.filter(|whole| whole >> f64::MANTISSA_DIGITS != 0);
            let reason = match value {
                None => Some(reason.to_string()),
                Some(_) => long.map(|whole| whole.to_string()),
            };
            misses.push(Miss { figure: figure.to_string(), min: *min, max: *max, value, reason });
        }
    };
    let mut found = false;
    for one in figures.iter().filter(|one| one.name == *wanted || one.label == *wanted) {
        found = true;
        miss(&one.label, one.value, "it never had a counter");
    }
    if found {
        return;
    }
    let left_out = result.absent(wanted);
    if left_out.is_some() || !excused {
        miss(wanted, left_out, "there is no such figure");
    }
}

/// A miss in a sentence: the figure, what it came to, and its bounds.
#[must_use]
pub fn sentence(miss: &Miss) -> String {
    let Miss { figure, min, max, value, reason } = miss;
    let bounds = Bounds { min: *min, max: *max };
    let expects = min.is_some() || max.is_some();
    match (value, reason) {
        (Some(_), Some(whole)) => format!("{figure} came to {whole}; expected {bounds}"),
        (Some(value), None) => format!("{figure} came to {value}; expected {bounds}"),
        (None, Some(reason)) if expects => format!("{figure}: {reason}; expected {bounds}"),
        (None, Some(reason)) => format!("{figure} was not counted: {reason}"),
        (None, None) => format!("{figure} was not counted; expected {bounds}"),
    }
}
