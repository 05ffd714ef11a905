//! The figures of a saved report, and what is known of how they vary.
//!
//! They have the names that `expect` has for them: [`protocol::record::figures`].

pub(crate) mod counted;
pub(crate) mod measured;

use crate::kinds;
use crate::limits::Worse;
use protocol::record::{CheckVerdict, Record};

/// What TSC ticks are called, whatever they tick with.
pub const TICKS: &str = "TSC ticks";
/// What energy is in.
pub(crate) const JOULES: &str = "J";
/// What else is counted.
const EVENTS: &str = "events";

/// A figure of one item.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name, as `expect` has it.
    pub name: String,
    /// What it is a number of.
    pub unit: &'static str,
    /// Its value; the median, where there are several runs.
    pub value: f64,
    /// As [`protocol::record::ItemRecord::whole`].
    pub whole: Option<u64>,
    /// What is known of the runs.
    pub spread: Spread,
    /// The event's name in the processor's table.
    pub event: Option<String>,
    /// Events between two overflows, for what is counted by overflows.
    pub period: Option<u64>,
    /// Which change is one for the worse, if no limit says otherwise.
    pub worse: Worse,
}

/// What is known of the runs of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// Every one of so many gave the same, and it was counted all the time.
    Exact(u32),
    /// What each gave.
    Runs(Vec<f64>),
    /// The least and the greatest of so many.
    Range([f64; 2], u32),
    /// Nothing, and why.
    Unknown(&'static str),
}

/// Of one run nobody knows what the next would give.
const ONE_RUN: &str = "it is from one run, so its variation is unknown";
const SCALED: &str = "it was counted for a part of the time, and scaled";
const SUM: &str = "it is a sum of medians; the report has the runs by processor";

/// An item's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Index in its job.
    pub index: u32,
    /// Its kind, as the record's type has it.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Whether its events are those of barecount's emulated PMU.
    pub emulated: bool,
    /// Executions that a figure was divided by, where there are such.
    pub per: Option<u64>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// What was requested and not counted, and why.
    pub uncounted: Vec<(String, String)>,
}

/// The item that `record` is the result of, if it is one. `steady`: the machine does the same in every run, as QEMU's
/// translator does while it counts instructions; then one run tells all.
#[must_use]
pub fn of(record: &Record, steady: bool) -> Option<Item> {
    Some(match record {
        Record::Check(one) if one.verdict != CheckVerdict::Skip => {
            let fails = f64::from(u8::from(one.verdict == CheckVerdict::Fail));
            let figure = Figure::new("fails", "checks", fails, Spread::Exact(1));
            Item {
                index: one.item,
                kind: "check",
                name: one.name.clone(),
                emulated: false,
                per: None,
                figures: vec![figure],
                uncounted: Vec::new(),
            }
        }
        _ => kinds::compared(record, steady)?,
    })
}

impl Figure {
    pub(crate) fn new(
        name: impl Into<String>,
        unit: &'static str,
        value: f64,
        spread: Spread,
    ) -> Self {
        let (event, period, worse) = (None, None, Worse::More);
        Self { name: name.into(), unit, value, whole: None, spread, event, period, worse }
    }
}

/// What a single run tells.
pub(crate) fn once(steady: bool) -> Spread {
    if steady { Spread::Exact(1) } else { Spread::Unknown(ONE_RUN) }
}

#[cfg(test)]
mod tests;
