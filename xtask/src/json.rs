//! The whole report as one JSON document: written, and read again.
//!
//! A log of a serial line is read as the document that it would make.

use crate::collect::{Collector, Foreign, Numbered, Report};
use crate::context::Context;
use crate::document::{self, Document, DocumentError, VERSION};
use crate::forms::{self, FormRow};
use crate::honest::Certificate;
use crate::metrics::ItemMetrics;
use crate::samples::Profile;
use crate::samples::saved::SavedProfile;
use crate::text::ascii_controls;
use crate::{exit_code, notes, verdict};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Whole<'a> {
    report: u64,
    run: &'a Context,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<Certificate>,
    records: &'a [Numbered],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forms: Vec<FormRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    profiles: Vec<SavedProfile>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    metrics: &'a [ItemMetrics],
    problems: Vec<String>,
    notes: Vec<String>,
    foreign: Vec<&'a Foreign>,
}

/// Renders it.
#[must_use]
pub fn render(report: &Report, context: &Context) -> String {
    let problems = report.problems.iter().map(ToString::to_string);
    let profiles = match report.sampled().next() {
        Some(_) => Profile::of(report, &context.resolver(report)),
        None => Vec::new(),
    };
    let document = Whole {
        report: VERSION,
        run: context,
        exit_code: exit_code::of(context, report),
        certificate: Certificate::of(report),
        records: &report.records,
        forms: forms::rows(report),
        profiles: profiles.iter().map(SavedProfile::of).collect(),
        metrics: &context.metrics,
        problems: problems.chain(report.disputes.iter().cloned()).collect(),
        notes: notes::said(report, context),
        foreign: notes::foreign(report).collect(),
    };
    let mut text = serde_json::to_string_pretty(&document).expect("reports serialise");
    text.push('\n');
    ascii_controls(&text).into_owned()
}

/// Reads a report; `name` is what it is called.
///
/// # Errors
/// Why it is none.
pub fn read(bytes: &[u8], name: &str) -> Result<Document, DocumentError> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) if value.get("records").is_some() => document::of(value, name),
        Ok(_) => log(bytes, name, None),
        Err(error) => log(bytes, name, Some(error)),
    }
}

/// A log of a serial line goes through the document that `collect --format json` would write.
fn log(
    bytes: &[u8],
    name: &str,
    error: Option<serde_json::Error>,
) -> Result<Document, DocumentError> {
    let mut collector = Collector::new();
    collector.feed(bytes);
    let signed = collector.signed();
    let mut report = collector.finish();
    if report.records.is_empty() {
        let error = error.unwrap_or_else(|| serde::de::Error::custom("it has no `records`"));
        return Err(DocumentError::NoReport { name: name.to_string(), error });
    }
    verdict::add_up(&mut report);
    let authentication = signed.then_some("not verified: the boot's key is not saved");
    let context = Context { source: name.to_string(), authentication, ..Context::default() };
    let text = render(&report, &context);
    document::of(serde_json::from_str(&text).expect("our own document"), name)
}
