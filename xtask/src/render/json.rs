//! The whole report as one JSON document.

use super::forms::{self, FormRow};
use super::{Context, notes};
use crate::collect::{Foreign, Numbered, Report};
use crate::honest::Certificate;
use crate::metrics::ItemMetrics;
use crate::samples::Profile;
use crate::samples::saved::SavedProfile;
use crate::text::ascii_controls;
use serde::Serialize;

/// Version of the document, which `compare` reads. A change that an old reader would misread raises it.
pub const VERSION: u64 = 1;

#[derive(Serialize)]
struct Document<'a> {
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
    let document = Document {
        report: VERSION,
        run: context,
        exit_code: context.exit_code(report),
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
