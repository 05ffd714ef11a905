//! The whole report as one JSON document.

use super::Context;
use crate::collect::{Foreign, Numbered, Report};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    run: &'a Context,
    exit_code: u8,
    records: &'a [Numbered],
    problems: Vec<String>,
    foreign: &'a [Foreign],
}

/// Renders it.
#[must_use]
pub fn render(report: &Report, context: &Context) -> String {
    let document = Document {
        run: context,
        exit_code: if context.complaint.is_some() { 3 } else { report.exit_code() },
        records: &report.records,
        problems: report.problems.iter().map(ToString::to_string).collect(),
        foreign: &report.foreign,
    };
    let mut text = serde_json::to_string_pretty(&document).expect("reports serialise");
    text.push('\n');
    text
}
