//! An item of a job in a line or two: what it came to, how far its runs lay apart, and what it missed.

use crate::record::digest::{Figure, cut, single};
use crate::record::{ErrorCode, Miss, Record, Verdict};
use crate::verdict;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What an item came to.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Item {
    /// Its index in the job.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// How it stands.
    pub standing: Standing,
    /// Its figures; of a kind of item that has very many, those of the whole.
    pub figures: Vec<Figure>,
    /// What it missed, or the error that it ended in.
    pub note: Option<String>,
}

/// How an item stands.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nothing was expected.
    Measured,
    /// It met what was expected.
    Passed,
    /// It did not.
    Missed,
    /// It could not be measured.
    Error,
    /// It was not run: the processor lacks something.
    Skipped,
}

/// Most figures of an item that are kept.
const MAX_FIGURES: usize = 8;
/// What a record says of its item; `None`: it ends none.
#[must_use]
pub fn item(record: &Record) -> Option<Item> {
    let (index, name, figures) = match record {
        Record::Suite(one) => {
            let number =
                |what: &str, count: u32| single(&format!("checks {what}"), Some(count.into()));
            let figures = Vec::from([number("passed", one.passed), number("failed", one.failed)]);
            (one.item, &*one.name, figures)
        }
        Record::Error(error) => {
            let standing = match error.code {
                ErrorCode::Skipped => Standing::Skipped,
                _ => Standing::Error,
            };
            let (name, note) = (error.name.as_deref().unwrap_or_default(), Some(cut(&error.text)));
            return Some(Item {
                index: error.item?,
                name: cut(name),
                standing,
                figures: Vec::new(),
                note,
            });
        }
        _ => {
            let result = record.result()?;
            (result.head().item, result.head().name, result.digest())
        }
    };
    let mut figures: Vec<Figure> = figures;
    figures.truncate(MAX_FIGURES);
    let (standing, note) = standing(record);
    Some(Item { index, name: cut(name), standing, figures, note })
}

fn standing(record: &Record) -> (Standing, Option<String>) {
    if let Record::Suite(suite) = record {
        let note = suite.reason.as_deref().map(cut);
        return match (suite.failed, suite.passed) {
            (0, 0) => (Standing::Skipped, note),
            (0, _) => (Standing::Passed, note),
            _ => (Standing::Missed, note),
        };
    }
    match verdict::said(record) {
        Some((Verdict::Pass, _)) => (Standing::Passed, None),
        Some((Verdict::Fail, misses)) => {
            (Standing::Missed, misses.first().map(|miss| cut(&verdict::sentence(miss))))
        }
        _ => (Standing::Measured, None),
    }
}

/// How far an item missed, as a part of the bound: for putting the largest first. A miss without a figure comes before everything
/// else: an error, or a suite with a check that failed. What did not miss, or was not run, is zero.
#[must_use]
pub fn excess(record: &Record) -> f64 {
    let missed = |missed| if missed { f64::INFINITY } else { 0.0 };
    match record {
        Record::Error(error) => return missed(error.code != ErrorCode::Skipped),
        Record::Suite(suite) => return missed(suite.failed > 0),
        _ => {}
    }
    let Some((Verdict::Fail, misses)) = verdict::said(record) else { return 0.0 };
    // A miss without a figure: an event that was not counted, a task that did not exit.
    misses.iter().map(beyond).fold(missed(misses.is_empty()), f64::max)
}

fn beyond(miss: &Miss) -> f64 {
    let Some(value) = miss.value else { return f64::INFINITY };
    // Nothing was allowed: any one is as far as it is.
    let part = |by: f64, bound: f64| by / bound.abs().max(1.0);
    let over = miss.max.map_or(0.0, |max| part(value - max, max));
    let under = miss.min.map_or(0.0, |min| part(min - value, min));
    over.max(under).max(0.0)
}
