//! The report as KTAP, the kernel's test protocol (Linux, Documentation/dev-tools/ktap.rst), version 1.
//!
//! The records stay what they are, each as a diagnostic: a line that begins with `# `. Behind the record that ends an item
//! come what the item missed, a sentence a line, and its test point, with its first figures. A conformance suite's checks are
//! a nested test. The last point is that of the run as a whole: it fails if the report cannot be trusted or stops before its
//! end.
//!
//! These lines follow from the records alone. So a reader makes them again and knows them from any other text.

use crate::line::push_number;
use crate::record::{CheckVerdict, ErrorCode, Figure, Outcome, Record, Verdict};
use crate::{record, verdict};
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
/// What is said after a point of which nothing is.
const NOTHING: [&str; 2] = ["", ""];
const LINE_END: &str = "\r\n";
/// Most figures on a point: the record has all.
const MAX_FIGURES: usize = 4;

/// What becomes of the lines from one record to the next.
#[derive(Clone, Debug, Default)]
pub struct Ktap {
    /// Points of the plan, the run's own included.
    planned: u32,
    /// Points of the nested test that is not complete, and how many they are.
    checks: Vec<u8>,
    checked: u32,
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

    /// The lines before the first record, in UTF-8.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, &[VERSION, LINE_END, PLAN]);
        push_number(&mut out, self.planned);
        push(&mut out, &[LINE_END]);
        out
    }

    /// The lines after a record, in UTF-8.
    pub fn behind(&mut self, record: &Record) -> Vec<u8> {
        let mut out = Vec::new();
        match record {
            Record::Check(check) => {
                let said = match check.verdict {
                    CheckVerdict::Pass | CheckVerdict::Fail => NOTHING,
                    CheckVerdict::Skip => ["SKIP ", &check.expected],
                    CheckVerdict::KnownErratum => ["XFAIL ", &check.source],
                    CheckVerdict::KnownBehaviour => ["XFAIL ", &check.seen],
                };
                self.checked += 1;
                push(&mut self.checks, &[INDENT]);
                let is_ok = check.verdict != CheckVerdict::Fail;
                point(&mut self.checks, is_ok, self.checked, &check.name, said);
            }
            Record::Suite(suite) => {
                let checks = core::mem::take(&mut self.checks);
                let checked = core::mem::take(&mut self.checked);
                let reason = suite.reason.as_deref();
                let said = reason.map_or(NOTHING, |reason| ["SKIP ", reason]);
                if checked > 0 {
                    push(&mut out, &[INDENT, VERSION, LINE_END, INDENT, "# Subtest: "]);
                    push_text(&mut out, &suite.name);
                    push(&mut out, &[LINE_END, INDENT, PLAN]);
                    push_number(&mut out, checked);
                    push(&mut out, &[LINE_END]);
                    out.extend_from_slice(&checks);
                }
                point(&mut out, suite.failed == 0, suite.item + 1, &suite.name, said);
            }
            Record::Error(error) => {
                let said = match error.code {
                    ErrorCode::Skipped => ["SKIP ", &error.text],
                    ErrorCode::TimeLimit | ErrorCode::StepLimit => ["TIMEOUT", ""],
                    _ => ["ERROR", ""],
                };
                let is_ok = error.code == ErrorCode::Skipped;
                if !is_ok {
                    line(&mut out, DIAGNOSTIC, &error.text);
                }
                match (error.item, &error.name) {
                    (Some(item), Some(name)) => point(&mut out, is_ok, item + 1, name, said),
                    _ => self.distrusted |= error.code == ErrorCode::FirmwareChanged,
                }
            }
            Record::Crash(crash) => line(&mut out, "Bail out! ", &crash.text),
            Record::End(end) => {
                let is_whole = matches!(end.outcome, Outcome::Pass | Outcome::Fail | Outcome::Skip);
                point(&mut out, is_whole && !self.distrusted, self.planned, RUN, NOTHING);
            }
            _ => {
                if let Some((item, name, _)) = record.restored() {
                    let (verdict, misses) = verdict::said(record).unwrap_or_default();
                    for miss in misses {
                        line(&mut out, DIAGNOSTIC, &verdict::sentence(miss));
                    }
                    let said = ["", &figures(record)];
                    point(&mut out, verdict != Verdict::Fail, item + 1, name, said);
                }
            }
        }
        out
    }
}

fn push(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Adds a text in one line, without what begins a directive (`#`) or, in TAP 14, an escape. The letters that look like these
/// stand in their places.
fn push_text(out: &mut Vec<u8>, text: &str) {
    // Each of these bytes is a character of its own in UTF-8.
    for byte in text.trim_ascii().bytes() {
        match byte {
            b'#' => out.extend_from_slice("\u{ff03}".as_bytes()),
            b'\\' => out.extend_from_slice("\u{ff3c}".as_bytes()),
            0..b' ' | 0x7f => out.push(b' '),
            _ => out.push(byte),
        }
    }
}

/// A line with a text.
fn line(out: &mut Vec<u8>, before: &str, text: &str) {
    push(out, &[before]);
    push_text(out, text);
    push(out, &[LINE_END]);
}

/// A test point. What is `said` behind it, a directive and more, may be nothing.
fn point(out: &mut Vec<u8>, is_ok: bool, number: u32, name: &str, said: [&str; 2]) {
    push(out, &[if is_ok { "ok " } else { "not ok " }]);
    push_number(out, number);
    push(out, &[" - "]);
    push_text(out, name);
    if said != NOTHING {
        push(out, &[" # ", said[0]]);
        push_text(out, said[1]);
    }
    push(out, &[LINE_END]);
}

/// The first figures: number, then name.
fn figures(record: &Record) -> String {
    let mut said = String::new();
    for Figure { label, value, .. } in record::figures(record).iter().take(MAX_FIGURES) {
        if let Some(value) = value {
            let between = if said.is_empty() { "" } else { ", " };
            for part in [between, &value.to_string(), " ", label] {
                said += part;
            }
        }
    }
    said
}

#[cfg(test)]
mod tests;
