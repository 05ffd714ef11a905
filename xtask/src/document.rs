//! The documents that `--format json` writes, and baselines are, as they are read.

use crate::clean;
use crate::collect::{Foreign, Numbered, Report};
use crate::context::{Context, Tools};
use crate::job::About;
use crate::metrics::ItemMetrics;
use crate::samples::Profile;
use crate::samples::saved::SavedProfile;
use crate::text::printable;
use protocol::record::Record;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// Version of the document, which `compare` reads. A change that an old reader would misread raises it.
pub const VERSION: u64 = 1;

/// A report, ready to be shown.
#[derive(Debug)]
pub struct Document {
    /// What it is called among others.
    pub name: String,
    pub(crate) run: Run,
    pub(crate) exit_code: u8,
    pub(crate) report: Report,
    pub(crate) context: Context,
    profiles: Vec<SavedProfile>,
    pub(crate) metrics: Vec<ItemMetrics>,
}

/// Why something is not a report.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// Neither a document nor a log.
    #[error(
        "{name} is not a report: it is neither output of --format json ({error}) nor a log with records"
    )]
    NoReport {
        /// The file.
        name: String,
        /// What the reader of JSON said.
        error: serde_json::Error,
    },
    /// Another version.
    #[error("{name}: the report is of version {found}; this program knows {}", VERSION)]
    Newer {
        /// The file.
        name: String,
        /// Its version.
        found: u64,
    },
    /// A record that does not read.
    #[error("{name}: record {index} cannot be read: {error}")]
    Record {
        /// The file.
        name: String,
        /// Its place among the items.
        index: usize,
        /// Why.
        error: serde_json::Error,
    },
}

/// How the run came about, as the document has it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Run {
    pub(crate) source: String,
    pub(crate) accelerator: Option<String>,
    pub(crate) pmu: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) boot: Option<String>,
    pub(crate) ticks_per_instruction: Option<u64>,
    pub(crate) tools: Option<Tools>,
    pub(crate) job: Option<About>,
    pub(crate) authentication: Option<String>,
    backtrace: Vec<String>,
    complaint: Option<String>,
}

#[derive(Deserialize)]
struct Whole {
    run: Run,
    exit_code: u8,
    records: Vec<Value>,
    #[serde(default)]
    profiles: Vec<SavedProfile>,
    #[serde(default)]
    metrics: Vec<ItemMetrics>,
    #[serde(default)]
    problems: Vec<String>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    foreign: Vec<ForeignLine>,
}

#[derive(Deserialize)]
struct ForeignLine {
    line: u64,
    text: String,
}

impl Document {
    /// The records.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// Reads a document; `name` is what it is called.
///
/// # Errors
/// Why it is none.
pub(crate) fn of(mut value: Value, name: &str) -> Result<Document, DocumentError> {
    // Control characters are not text of a page, and what turns the direction of writing could show a name backwards.
    clean::change(&mut value);
    let name = printable(name).into_owned();
    let found = value.get("report").and_then(Value::as_u64).unwrap_or_default();
    if found > VERSION {
        return Err(DocumentError::Newer { name, found });
    }
    let whole = match Whole::deserialize(value) {
        Ok(whole) => whole,
        Err(error) => return Err(DocumentError::NoReport { name, error }),
    };
    let mut records = Vec::new();
    for (index, value) in whole.records.into_iter().enumerate() {
        let seq = value.get("seq").and_then(Value::as_u64).unwrap_or_default() as u32;
        match Record::deserialize(value) {
            Ok(record) => records.push(Numbered { seq, record }),
            Err(error) => return Err(DocumentError::Record { name, index, error }),
        }
    }
    let foreign = whole.foreign.into_iter().map(|one| Foreign { line: one.line, text: one.text });
    let report = Report {
        records,
        foreign: foreign.collect(),
        disputes: whole.problems,
        ..Report::default()
    };
    let items = whole.run.job.iter().flat_map(|job| &job.items).map(|item| item.name.clone());
    let context = Context {
        source: whole.run.source.clone(),
        ticks_per_instruction: whole.run.ticks_per_instruction,
        backtrace: whole.run.backtrace.clone(),
        complaint: whole.run.complaint.clone(),
        items: items.collect(),
        notes: whole.notes,
        ..Context::default()
    };
    let (run, exit_code, profiles) = (whole.run, whole.exit_code, whole.profiles);
    let metrics = whole.metrics;
    Ok(Document { name, run, exit_code, report, context, profiles, metrics })
}

impl Document {
    /// Its records, in their order.
    #[must_use]
    pub fn records(&self) -> &[Numbered] {
        &self.report.records
    }

    /// What stands above a page of it: the job's name, or the file's.
    pub(crate) fn title(&self) -> &str {
        let job =
            self.run.job.as_ref().map(|job| job.name.as_str()).filter(|name| !name.is_empty());
        job.unwrap_or(&self.name)
    }

    /// Whether the machine does the same in every run.
    pub(crate) fn steady(&self) -> bool {
        self.run.ticks_per_instruction.is_some()
    }

    /// What of the job's item of that index is known.
    pub(crate) fn about(&self, item: u32) -> Option<&crate::job::AboutItem> {
        self.run.job.as_ref()?.items.get(item as usize)
    }

    /// The samples of an item, resolved.
    pub(crate) fn profile(&self, item: u32) -> Option<Profile<'_>> {
        self.profiles.iter().find(|one| one.item == item)?.profile(&self.report)
    }

    /// What a tick of the TSC is called here.
    pub(crate) fn ticks(&self) -> &'static str {
        match self.run.ticks_per_instruction {
            Some(1) => "TSC ticks = instructions",
            _ => "TSC ticks",
        }
    }

    /// The same in a sentence.
    pub(crate) fn tsc(&self) -> String {
        let ticks = "ticks of the time stamp counter";
        match self.run.ticks_per_instruction {
            Some(1) => format!("{ticks}; a tick is an instruction here"),
            Some(many) => format!("{ticks}; {many} ticks are an instruction here"),
            None => ticks.to_string(),
        }
    }
}
