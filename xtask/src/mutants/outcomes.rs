//! What cargo-mutants writes: `mutants.json`, the mutants of a run, and `outcomes.json`, what became of each.

use super::MutantsError;
use serde::Deserialize;

/// A planted mistake.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
pub struct Mutant {
    /// `FILE:LINE:COLUMN: WHAT`.
    pub name: String,
    /// The file, from the checkout's root.
    pub file: String,
    /// What is replaced.
    pub span: Span,
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub struct Span {
    /// Where it begins.
    pub start: Position,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub struct Position {
    /// From 1.
    pub line: usize,
}

impl Mutant {
    /// The name without its place, which every change of the file moves.
    #[must_use]
    pub fn change(&self) -> &str {
        self.name.split_once(": ").map_or(&self.name, |(_, change)| change)
    }

    /// The line in which it begins, out of the file's text.
    #[must_use]
    pub fn line<'t>(&self, text: &'t str) -> &'t str {
        text.lines().nth(self.span.start.line.saturating_sub(1)).unwrap_or_default().trim()
    }
}

/// What became of the mutants of a run.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Outcomes {
    /// Mutants that a test noticed.
    pub caught: usize,
    /// Mutants under which a test did not end, which is noticed too.
    pub timed_out: usize,
    /// Mutants that do not build, which says nothing of the tests.
    pub unviable: usize,
    /// Mutants that no test noticed.
    pub missed: Vec<Mutant>,
}

#[derive(Deserialize)]
struct Written {
    outcomes: Vec<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    scenario: Scenario,
    summary: Summary,
}

#[derive(Deserialize)]
enum Scenario {
    /// The source as it is.
    Baseline,
    Mutant(Mutant),
}

#[derive(Clone, Copy, Deserialize)]
enum Summary {
    CaughtMutant,
    MissedMutant,
    Timeout,
    Unviable,
    Success,
    Failure,
}

fn malformed(file: &'static str) -> impl Fn(serde_json::Error) -> MutantsError {
    move |error| MutantsError::Malformed { file, reason: error.to_string() }
}

/// Reads `mutants.json`, or the answer to `--list --json`.
///
/// # Errors
/// It is not what cargo-mutants writes.
pub fn planned(text: &str) -> Result<Vec<Mutant>, MutantsError> {
    serde_json::from_str(text).map_err(malformed("mutants.json"))
}

impl Outcomes {
    /// Reads `outcomes.json` of a run of `planned` mutants.
    ///
    /// # Errors
    /// It is not what cargo-mutants writes, or not of all mutants.
    pub fn read(text: &str, planned: usize) -> Result<Self, MutantsError> {
        let written: Written = serde_json::from_str(text).map_err(malformed("outcomes.json"))?;
        let mut outcomes = Self::default();
        for Outcome { scenario, summary } in written.outcomes {
            let Scenario::Mutant(mutant) = scenario else { continue };
            match summary {
                Summary::CaughtMutant => outcomes.caught += 1,
                Summary::Timeout => outcomes.timed_out += 1,
                Summary::Unviable => outcomes.unviable += 1,
                Summary::MissedMutant => outcomes.missed.push(mutant),
                // It was not tried: counted below as one that is left.
                Summary::Success | Summary::Failure => {}
            }
        }
        let done = outcomes.tried();
        if done != planned {
            return Err(MutantsError::Unfinished { done, planned });
        }
        Ok(outcomes)
    }

    /// All of them.
    #[must_use]
    pub fn tried(&self) -> usize {
        self.caught + self.timed_out + self.unviable + self.missed.len()
    }
}

#[cfg(test)]
mod tests;
