//! The report as KTAP, the kernel's test protocol (Linux, Documentation/dev-tools/ktap.rst), version 1.
//!
//! The records stay what they are, each as a diagnostic: a line that begins with `# `. Behind the record that ends an item
//! come what the item missed, a sentence a line, and its test point, with its first figures. A conformance suite's checks are
//! a nested test. The last point is that of the run as a whole: it fails if the report cannot be trusted or stops before its
//! end.
//!
//! These lines follow from the records alone. So a reader makes them again and knows them from any other text.

use crate::record::{CheckVerdict, ErrorCode, Outcome, Record, Verdict};
use crate::verdict::{self, Figure};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What stands before a record.
pub const DIAGNOSTIC: &str = "# ";
/// The first line.
pub const VERSION: &str = "KTAP version 1";
/// Before a plan's number of test points.
pub const PLAN: &str = "1..";
/// What the last point is called.
const RUN: &str = "the run";
/// What stands before each line of a nested test.
const INDENT: &str = "    ";
/// Most figures on a point: the record has all.
const MAX_FIGURES: usize = 4;

/// What becomes of the lines from one record to the next.
#[derive(Clone, Debug, Default)]
pub struct Ktap {
    /// Points of the plan, the run's own included.
    planned: u32,
    /// Points of the nested test that is not complete.
    checks: Vec<String>,
    /// The report says that its figures are not to be trusted.
    distrusted: bool,
}

impl Ktap {
    /// For a job of so many items.
    #[must_use]
    pub fn new(items: u32) -> Self {
        Self { planned: items.saturating_add(1), ..Self::default() }
    }

    /// For a plan that was read.
    #[must_use]
    pub fn of_plan(line: &str) -> Option<Self> {
        let planned = line.strip_prefix(PLAN)?.parse().ok()?;
        Some(Self { planned, ..Self::default() })
    }

    /// The lines before the first record, without line ends.
    #[must_use]
    pub fn head(&self) -> [String; 2] {
        [VERSION.to_string(), PLAN.to_string() + &self.planned.to_string()]
    }

    /// The lines behind a record, without line ends.
    pub fn behind(&mut self, record: &Record) -> Vec<String> {
        let mut lines = Vec::new();
        let figures;
        let (is_ok, item, name, said) = match record {
            Record::Check(check) => {
                let said = match check.verdict {
                    CheckVerdict::Pass | CheckVerdict::Fail => ["", ""],
                    CheckVerdict::Skip => ["SKIP ", &check.expected],
                    CheckVerdict::KnownErratum => ["XFAIL ", &check.source],
                };
                let is_ok = check.verdict != CheckVerdict::Fail;
                let number = self.checks.len() as u32 + 1;
                self.checks.push(point(is_ok, number, &check.name, said));
                return lines;
            }
            Record::Suite(suite) => {
                let checks = core::mem::take(&mut self.checks);
                if !checks.is_empty() {
                    let plan = PLAN.to_string() + &checks.len().to_string();
                    let name = "# Subtest: ".to_string() + &text(&suite.name);
                    let nested = [VERSION.to_string(), name, plan].into_iter().chain(checks);
                    lines.extend(nested.map(|line| INDENT.to_string() + &line));
                }
                let reason = suite.reason.as_deref();
                let said = reason.map_or(["", ""], |reason| ["SKIP ", reason]);
                (suite.failed == 0, suite.item, &*suite.name, said)
            }
            Record::Error(error) => {
                let said = match error.code {
                    ErrorCode::Skipped => ["SKIP ", &error.text],
                    ErrorCode::TimeLimit | ErrorCode::StepLimit => ["TIMEOUT", ""],
                    _ => ["ERROR", ""],
                };
                let is_ok = error.code == ErrorCode::Skipped;
                if !is_ok {
                    lines.push(DIAGNOSTIC.to_string() + &text(&error.text));
                }
                let Some((item, name)) = error.item.zip(error.name.as_deref()) else {
                    self.distrusted |= error.code == ErrorCode::FirmwareChanged;
                    return lines;
                };
                (is_ok, item, name, said)
            }
            Record::Crash(crash) => {
                lines.push("Bail out! ".to_string() + &text(&crash.text));
                return lines;
            }
            Record::End(end) => {
                let is_whole = matches!(end.outcome, Outcome::Pass | Outcome::Fail | Outcome::Skip);
                lines.push(point(is_whole && !self.distrusted, self.planned, RUN, ["", ""]));
                return lines;
            }
            _ => {
                let Some((item, name, _)) = record.restored() else { return lines };
                let (verdict, misses) = verdict::said(record).unwrap_or_default();
                let sentences = misses.iter().map(verdict::sentence);
                lines.extend(sentences.map(|one| DIAGNOSTIC.to_string() + &text(&one)));
                figures = self::figures(record);
                (verdict != Verdict::Fail, item, name, ["", &figures])
            }
        };
        lines.push(point(is_ok, item + 1, name, said));
        lines
    }
}

/// A test point. What is `said` behind it, a directive and more, may be nothing.
fn point(is_ok: bool, number: u32, name: &str, said: [&str; 2]) -> String {
    let mut line = String::from(if is_ok { "ok " } else { "not ok " });
    line += &number.to_string();
    line += " - ";
    line += &text(name);
    if said != ["", ""] {
        line += " # ";
        line += said[0];
        line += &text(said[1]);
    }
    line
}

/// The first figures: number, then name.
fn figures(record: &Record) -> String {
    let mut said = String::new();
    let all = verdict::figures(record);
    let have = all.iter().filter_map(|Figure { label, value, .. }| Some((label, (*value)?)));
    for (label, value) in have.take(MAX_FIGURES) {
        said += if said.is_empty() { "" } else { ", " };
        said += &value.to_string();
        said += " ";
        said += label;
    }
    said
}

/// A text in one line, without what begins a directive (`#`) or, in TAP 14, an escape. The letters that look like these stand
/// in their places.
fn text(text: &str) -> String {
    let letter = |letter| match letter {
        '#' => '\u{ff03}',
        '\\' => '\u{ff3c}',
        letter if char::is_control(letter) => ' ',
        letter => letter,
    };
    text.trim().chars().map(letter).collect()
}

#[cfg(test)]
mod tests;
