//! Reading what `--format json` and `--save-baseline` wrote.

use super::error::{CompareError, ReportError};
use crate::context::Tools;
use crate::document::VERSION;
use crate::job::About;
use crate::kinds::figures::{self, Item};
use crate::verdict;
use protocol::PROTOCOL_VERSION;
use protocol::record::{ErrorCode, Machine, Record, Verdict};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// A report that was saved.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The file, or the baseline's name.
    pub source: String,
    /// How the run came about.
    pub run: Run,
    /// What it ran on.
    pub machine: Option<Machine>,
    /// Version of the firmware.
    pub firmware: Option<String>,
    /// The items that have figures, in the order of their records.
    pub items: Vec<Item>,
    /// The items that have none, their names and why.
    pub failed: Vec<Failed>,
    /// Items that did not come to what their job expects.
    pub missed: Vec<String>,
}

/// An item that ended in an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Failed {
    /// Index in its job.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Why it has no figures.
    pub why: String,
    /// Whether the processor lacks what its code needs: nobody's fault.
    pub skipped: bool,
}

/// How a run came about, as its report says it. Reports of other origin have less of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Run {
    /// `kvm` or `tcg`; absent for a real machine.
    pub accelerator: Option<String>,
    /// How it was booted.
    pub boot: Option<String>,
    /// TSC ticks per instruction, if QEMU's icount makes them.
    pub ticks_per_instruction: Option<u64>,
    /// What made the report.
    pub tools: Option<Tools>,
    /// The job.
    pub job: Option<About>,
    interrupted: Option<String>,
    complaint: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    report: u64,
    run: Run,
    exit_code: u8,
    records: Vec<Value>,
    #[serde(default)]
    problems: Vec<String>,
}

/// Reads a report from a file.
///
/// # Errors
/// The file, or why it is not a report that can be compared.
pub fn read(path: &Path, source: &str) -> Result<Saved, CompareError> {
    let bytes = std::fs::read(path)
        .map_err(|error| CompareError::Read { path: path.to_path_buf(), error })?;
    parse(&bytes, source)
}

/// Reads a report; `source` is its name in messages.
///
/// # Errors
/// Why it is not a report that can be compared.
pub fn parse(bytes: &[u8], source: &str) -> Result<Saved, CompareError> {
    of(bytes, source).map_err(|reason| CompareError::Report { file: source.to_string(), reason })
}

fn of(bytes: &[u8], source: &str) -> Result<Saved, ReportError> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| match is_log(bytes) {
        true => ReportError::Log,
        false => ReportError::Json(error),
    })?;
    if value.get("seq").is_some() {
        return Err(ReportError::Log);
    }
    // A later version may have changed everything else.
    let version = value.get("report").and_then(Value::as_u64).unwrap_or_default();
    newer("report", version, VERSION)?;
    let document =
        Document::deserialize(value).map_err(|error| ReportError::Document(error.to_string()))?;
    debug_assert_eq!(document.report, version);
    for record in &document.records {
        if let Some(version) = record.get("protocol").and_then(Value::as_u64) {
            newer("firmware's protocol", version, PROTOCOL_VERSION.into())?;
        }
    }
    // The run's own code is 1 if an item missed what is expected of it; then all items ran.
    if document.exit_code > 1 {
        let Document { run, problems, exit_code: code, .. } = document;
        return Err(ReportError::NotWhole { code, why: why(run, problems, &document.records) });
    }
    let records = document.records.into_iter().enumerate().map(|(index, value)| {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("no type").to_string();
        Record::deserialize(value).map_err(|error| ReportError::Record { index, kind, error })
    });
    let records: Vec<Record> = records.collect::<Result<_, _>>()?;
    Ok(saved(&records, document.run, source))
}

/// Whether it is lines of records.
fn is_log(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    lines.any(|line| line.starts_with(br#"{"seq":"#))
}

fn newer(what: &'static str, found: u64, known: u64) -> Result<(), ReportError> {
    if found > known { Err(ReportError::Newer { what, found, known }) } else { Ok(()) }
}

/// Why a run did not end, as far as its report tells.
fn why(run: Run, problems: Vec<String>, records: &[Value]) -> String {
    let signal = run.interrupted.map(|signal| format!("interrupted by {signal}"));
    let crash = records.iter().find(|one| one.get("type").is_some_and(|kind| kind == "crash"));
    let crash = crash.and_then(|crash| crash.get("text")).and_then(Value::as_str);
    let crash = crash.map(|text| format!("the firmware failed: {text}"));
    let problem = problems.into_iter().next();
    let end = || "nothing could run, or the report has no end record".to_string();
    signal.or(run.complaint).or(crash).or(problem).unwrap_or_else(end)
}

fn saved(records: &[Record], run: Run, source: &str) -> Saved {
    let (mut machine, mut firmware) = (None, None);
    let (mut items, mut failed, mut missed) = (Vec::new(), Vec::new(), Vec::new());
    let steady = run.ticks_per_instruction.is_some();
    for record in records {
        match record {
            Record::Start(start) => firmware = Some(start.version.clone()),
            Record::Machine(one) => machine = Some(one.clone()),
            Record::Error(error) => {
                let (Some(index), name) = (error.item, error.name.clone()) else { continue };
                let skipped = error.code == ErrorCode::Skipped;
                let (name, why) = (name.unwrap_or_default(), error.text.clone());
                failed.push(Failed { index, name, why, skipped });
            }
            record => items.extend(figures::of(record, steady)),
        }
        if let (Some((_, name)), Some((Verdict::Fail, _))) =
            (verdict::item_of(record), protocol::verdict::said(record))
        {
            missed.push(name);
        }
    }
    Saved { source: source.to_string(), run, machine, firmware, items, failed, missed }
}

impl Saved {
    /// What the report says of the item of that index.
    #[must_use]
    pub fn about(&self, index: u32) -> Option<&crate::job::AboutItem> {
        self.run.job.as_ref().and_then(|job| job.items.get(index as usize))
    }
}

#[cfg(test)]
pub(super) mod tests;
