//! Two reports, item by item and figure by figure: what got better, what got worse, and what cannot be told.
//!
//! - [`mod@saved`] reads reports, [`baseline`] finds them by name; their figures, which are compared, are each kind's own.
//! - [`mod@setting`]: machine, job and tools, as far as figures depend on them.
//! - [`mod@limits`]: how far a figure may get worse; [`mod@judge`] and [`statistics`]: whether it did.
//! - [`Comparison`]: what comes of it; [`render`]: the forms that people and CI services read.
//!
//! Items belong together by kind and name, those of one name in their order. A figure that gave the same in every run is
//! compared as it is; one that varies is by the test of [`statistics`].

pub mod baseline;
mod error;
pub mod judge;
pub mod limits;
mod near;
mod pairs;
pub mod render;
mod result;
pub mod saved;
pub mod setting;
pub mod statistics;

pub use error::{CompareError, ReportError};
pub use limits::Limits;
pub use result::{Comparison, FigureCompared, ItemCompared, ItemState, TestUsed};

use crate::limits::fits;
use judge::Outcome;
use pairs::pairs;
use saved::Saved;
use statistics::Test;
use std::collections::BTreeSet;

/// What the test is called.
const TEST: &str = "Mann-Whitney U";

/// Compares two reports. `confidence`: that all intervals of figures that vary hold.
///
/// # Errors
/// There is nothing to compare, or a limit that matches no figure.
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

/// A gate that has nothing to look at is not a gate.
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
    for name in limits.job.names().filter(|name| !all.iter().any(|one| fits(name, one))) {
        notes.push(format!("the job's limit of `{name}` has no effect in these reports"));
    }
    notes
}

#[cfg(test)]
mod tests;
