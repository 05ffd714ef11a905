//! Two reports, item by item and figure by figure: what got better, what got worse, and what cannot be told.
//!
//! - [`mod@saved`] reads reports, [`baseline`] finds them by name, [`figures`] are what is compared.
//! - [`mod@setting`]: machine, job and tools, as far as figures depend on them.
//! - [`mod@limits`]: how far a figure may get worse; [`mod@judge`] and [`statistics`]: whether it did.
//! - [`render`]: the forms that people and CI services read.
//!
//! Items belong together by kind and name, those of one name in their order. A figure that gave the same in every run is
//! compared as it is; one that varies is by the test of [`statistics`].

pub mod baseline;
mod error;
pub mod figures;
pub mod judge;
pub mod limits;
mod near;
mod pairs;
pub mod render;
pub mod saved;
pub mod setting;
pub mod statistics;

pub use error::{CompareError, ReportError};
pub use limits::{LimitTable, Limits, has_wildcards};

use judge::{Compared, Outcome};
use pairs::pairs;
use saved::Saved;
use serde::Serialize;
use setting::Difference;
use statistics::Test;
use std::collections::BTreeSet;

/// Two reports, compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Where the old report came from.
    pub old: String,
    /// Where the new one came from.
    pub new: String,
    /// The new job's file, if the report says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What else differs.
    pub differences: Vec<Difference>,
    /// What else is to be known.
    pub notes: Vec<String>,
    /// How the figures that vary were judged.
    pub test: TestUsed,
    /// The items, in the new report's order; behind them those that only the old one has.
    pub items: Vec<ItemCompared>,
}

/// How figures that vary were judged.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TestUsed {
    /// What it is.
    pub name: &'static str,
    /// With this probability all its intervals hold.
    pub confidence: f64,
    /// How many figures it was made for.
    pub figures: usize,
}

/// An item of one or both reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemCompared {
    /// Its name.
    pub name: String,
    /// Its kind, as the records' type has it.
    pub kind: &'static str,
    /// In which of the reports it is.
    pub state: ItemState,
    /// The line of the job's file that it begins in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What else is to be known of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Its figures.
    pub figures: Vec<FigureCompared>,
}

/// In which of the reports an item is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// In both.
    Both,
    /// In the new one alone.
    Added,
    /// In the old one alone.
    Removed,
    /// It had figures, and ended in an error.
    Failed,
    /// It ended in an error, and has figures.
    Recovered,
    /// It has figures in neither, or the processor lacks what it needs.
    NoFigures,
}

/// A figure of an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureCompared {
    /// Its name.
    pub name: String,
    /// What it is a number of.
    pub unit: &'static str,
    /// What it was; absent if the old report has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<f64>,
    /// What it is; absent if the new report has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<f64>,
    /// Least and greatest of the new runs, if they vary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_range: Option<[f64; 2]>,
    /// What that comes to.
    #[serde(flatten)]
    pub compared: Compared,
}

/// What the test is called.
const TEST: &str = "Mann-Whitney U";

/// Compares two reports. `confidence`: that all intervals of figures that vary hold.
///
/// # Errors
/// There is nothing to compare, or a limit that is for nothing.
pub fn compare(
    old: &Saved,
    new: &Saved,
    limits: &Limits,
    confidence: f64,
) -> Result<Comparison, CompareError> {
    let pairs = pairs(old, new)?;
    let known = known(old, new);
    limits.file.check(&known)?;
    let ticks = setting::ticks_differ(old, new);
    let noisy = pairs.iter().flat_map(|pair| pair.figures(ticks.as_deref()));
    let noisy = noisy.filter(|one| one.both().is_some_and(|(old, new)| judge::is_noisy(old, new)));
    let figures = noisy.count();
    let mut test = Test::new(confidence, figures);
    let items: Vec<ItemCompared> = pairs
        .iter()
        .map(|pair| pair.compare(old, new, limits, ticks.as_deref(), &mut test))
        .collect();
    comparable(old, new, &items)?;
    let file = new.run.job.as_ref().map(|job| job.file.clone());
    Ok(Comparison {
        old: old.source.clone(),
        new: new.source.clone(),
        file,
        differences: setting::differences(old, new),
        notes: notes(old, new, limits, &known),
        test: TestUsed { name: TEST, confidence, figures },
        items,
    })
}

/// A gate that has nothing to look at is no gate.
fn comparable(old: &Saved, new: &Saved, items: &[ItemCompared]) -> Result<(), CompareError> {
    let mut figures = items.iter().filter(|item| item.state == ItemState::Both);
    let any = |item: &ItemCompared| {
        item.figures.iter().any(|one| one.compared.outcome != Outcome::NotCompared)
    };
    if figures.any(any) || items.iter().any(|item| item.state == ItemState::Failed) {
        return Ok(());
    }
    let all = items.iter().flat_map(|item| &item.figures);
    let reason = all.filter_map(|one| one.compared.reason.clone()).next();
    Err(CompareError::NothingComparable {
        old: old.source.clone(),
        new: new.source.clone(),
        reason: reason.unwrap_or_else(|| "they have no figures".to_string()),
    })
}

/// Items and what they have or were to have of figures.
fn known<'a>(old: &'a Saved, new: &'a Saved) -> Vec<(&'a str, BTreeSet<&'a str>)> {
    let all = old.items.iter().chain(&new.items).map(|item| {
        let figures = item.figures.iter().map(|figure| &*figure.name);
        let uncounted = item.uncounted.iter().map(|(event, _)| &**event);
        (&*item.name, figures.chain(uncounted).collect())
    });
    all.collect()
}

fn notes(
    old: &Saved,
    new: &Saved,
    limits: &Limits,
    known: &[(&str, BTreeSet<&str>)],
) -> Vec<String> {
    let mut notes = Vec::new();
    for (which, report) in [("old", old), ("new", new)] {
        if !report.missed.is_empty() {
            let items = report.missed.join(", ");
            notes.push(format!("of the {which} report, what was expected was missed by: {items}"));
        }
    }
    // A job goes to machines that have no such figure; a file is for these two reports.
    let all: BTreeSet<&str> = known.iter().flat_map(|(_, figures)| figures).copied().collect();
    for name in limits.job.names().filter(|name| !all.iter().any(|one| limits::fits(name, one))) {
        notes.push(format!("the job's limit of `{name}` is for nothing in these reports"));
    }
    notes
}

impl Comparison {
    /// How many figures came to `outcome`.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        let all = self.items.iter().flat_map(|item| &item.figures);
        all.filter(|one| one.compared.outcome == outcome).count()
    }

    /// How many items are in that state.
    #[must_use]
    pub fn items_in(&self, state: ItemState) -> usize {
        self.items.iter().filter(|item| item.state == state).count()
    }

    /// Whether something got worse beyond its limit: a figure, or an item that has none any more.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        self.count(Outcome::Worse) + self.items_in(ItemState::Failed) > 0
    }

    /// 1 if something got worse beyond its limit, else 0.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        u8::from(self.is_worse())
    }
}

impl FigureCompared {
    /// The change in percent of the old value, if there is one.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        let old = self.old.filter(|old| *old != 0.0)?;
        self.new.map(|new| 100.0 * (new - old) / old.abs())
    }
}

#[cfg(test)]
mod tests;
