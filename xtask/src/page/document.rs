//! Reading reports: documents of `--format json` and baselines, and logs of a serial line.

use crate::collect::{Collector, Foreign, Numbered, Report};
use crate::job::About;
use crate::metrics::ItemMetrics;
use crate::render::{Context, Tools, clean, json};
use crate::samples::Profile;
use crate::samples::saved::SavedProfile;
use crate::text::printable;
use crate::{cli, render, verdict};
use protocol::record::Record;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

/// A report, ready to be shown.
#[derive(Debug)]
pub struct Document {
    /// What it is called among others.
    pub name: String,
    pub(super) run: Run,
    pub(super) exit_code: u8,
    pub(super) report: Report,
    pub(super) context: Context,
    profiles: Vec<SavedProfile>,
    pub(super) metrics: Vec<ItemMetrics>,
}

/// Why something is not a report.
#[derive(Debug, Error)]
pub enum PageError {
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
    #[error("{name}: the report is of version {found}; this program knows {}", json::VERSION)]
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
pub(super) struct Run {
    pub(super) source: String,
    pub(super) accelerator: Option<String>,
    pub(super) pmu: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) boot: Option<String>,
    pub(super) ticks_per_instruction: Option<u64>,
    pub(super) tools: Option<Tools>,
    pub(super) job: Option<About>,
    pub(super) authentication: Option<String>,
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

/// Reads a report; `name` is what it is called.
///
/// # Errors
/// Why it is none.
pub fn read(bytes: &[u8], name: &str) -> Result<Document, PageError> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) if value.get("records").is_some() => of(value, name),
        Ok(_) => log(bytes, name, None),
        Err(error) => log(bytes, name, Some(error)),
    }
}

/// A log of a serial line goes through the document that `collect --format json` would write.
fn log(bytes: &[u8], name: &str, error: Option<serde_json::Error>) -> Result<Document, PageError> {
    let mut collector = Collector::new();
    collector.feed(bytes);
    let signed = collector.signed();
    let mut report = collector.finish();
    if report.records.is_empty() {
        let error = error.unwrap_or_else(|| serde::de::Error::custom("it has no `records`"));
        return Err(PageError::NoReport { name: name.to_string(), error });
    }
    verdict::add_up(&mut report);
    let authentication = signed.then_some("not verified: the boot's key is not saved");
    let context = Context { source: name.to_string(), authentication, ..Context::default() };
    let text = render::render(&report, &context, cli::Format::Json);
    of(serde_json::from_str(&text).expect("our own document"), name)
}

fn of(mut value: Value, name: &str) -> Result<Document, PageError> {
    // Control characters are not text of a page, and what turns the direction of writing could show a name backwards.
    clean::change(&mut value);
    let name = printable(name).into_owned();
    let found = value.get("report").and_then(Value::as_u64).unwrap_or_default();
    if found > json::VERSION {
        return Err(PageError::Newer { name, found });
    }
    let whole = match Whole::deserialize(value) {
        Ok(whole) => whole,
        Err(error) => return Err(PageError::NoReport { name, error }),
    };
    let mut records = Vec::new();
    for (index, value) in whole.records.into_iter().enumerate() {
        let seq = value.get("seq").and_then(Value::as_u64).unwrap_or_default() as u32;
        match Record::deserialize(value) {
            Ok(record) => records.push(Numbered { seq, record }),
            Err(error) => return Err(PageError::Record { name, index, error }),
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
    pub(super) fn title(&self) -> &str {
        let job =
            self.run.job.as_ref().map(|job| job.name.as_str()).filter(|name| !name.is_empty());
        job.unwrap_or(&self.name)
    }

    /// Whether the machine does the same in every run.
    pub(crate) fn steady(&self) -> bool {
        self.run.ticks_per_instruction.is_some()
    }

    /// What of the job's item of that index is known.
    pub(super) fn about(&self, item: u32) -> Option<&crate::job::AboutItem> {
        self.run.job.as_ref()?.items.get(item as usize)
    }

    /// The samples of an item, resolved.
    pub(super) fn profile(&self, item: u32) -> Option<Profile<'_>> {
        self.profiles.iter().find(|one| one.item == item)?.profile(&self.report)
    }

    /// What a tick of the TSC is called here.
    pub(super) fn ticks(&self) -> &'static str {
        match self.run.ticks_per_instruction {
            Some(1) => "TSC ticks = instructions",
            _ => "TSC ticks",
        }
    }

    /// The same in a sentence.
    pub(super) fn tsc(&self) -> String {
        let ticks = "ticks of the time stamp counter";
        match self.run.ticks_per_instruction {
            Some(1) => format!("{ticks}; a tick is an instruction here"),
            Some(many) => format!("{ticks}; {many} ticks are an instruction here"),
            None => ticks.to_string(),
        }
    }
}
