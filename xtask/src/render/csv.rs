//! One row per figure.

use crate::collect::Report;
use crate::honest::{Certificate, render as honest};
use crate::primitives::csv::{HEADER, Row, without_figures};
use crate::{kinds, verdict as judged};
use protocol::record::{CheckVerdict, ErrorCode, Miss, Record, Verdict};
use protocol::verdict;

/// Further columns of a report that has checks of the conformance suite.
const OF_CHECKS: [&str; 3] = ["expected", "seen", "source"];

/// Renders it. A figure has the verdict `fail` if it missed its expectation, `pass` if its item passed, and else none; if an item
/// failed as a whole, all its figures have `fail`. What a bring-up measured has a row with its unit in the place of the event. A check has a row with the verdict `pass`, `fail`, `skip` or `erratum` and no figures; a suite that could
/// not run has one with the reason. An item that ended in an error has a row with the verdict `error` and no figures, an
/// event that was not counted one with the verdict `uncounted`, and what an item missed one with the verdict `missed` that
/// says so in the place of the event. A certificate's findings and verdicts stand at the end.
#[must_use]
pub fn render(report: &Report) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let certificate = Certificate::of(report);
    let has_checks = report.suites().next().is_some() || report.checks().next().is_some();
    let further = if has_checks || certificate.is_some() { &OF_CHECKS[..] } else { &[] };
    let columns = HEADER.len() + further.len();
    // Writing to memory does not fail.
    let mut row = |mut fields: Row| {
        fields.resize(columns, String::new());
        writer.write_record(&fields).expect("rows of one length");
    };
    row(HEADER.iter().chain(further).map(ToString::to_string).collect());
    for numbered in &report.records {
        // What missed is marked by itself; if nothing did, the item failed as a whole.
        let (verdict, misses) = match verdict::said(&numbered.record) {
            Some((Verdict::Pass, _)) => ("pass", &[][..]),
            Some((Verdict::Fail, [])) => ("fail", &[][..]),
            Some((Verdict::Fail, misses)) => ("", misses),
            _ => ("", &[][..]),
        };
        match &numbered.record {
            Record::Check(check) => {
                let verdict = match check.verdict {
                    CheckVerdict::Pass => "pass",
                    CheckVerdict::Fail => "fail",
                    CheckVerdict::Skip => "skip",
                    CheckVerdict::KnownErratum => "erratum",
                    CheckVerdict::KnownBehaviour => "known",
                };
                // The suite's own record, which has its name, comes last.
                let suite = report.suites().find(|suite| suite.item == check.item);
                let suite = suite.map_or("conformance", |suite| &suite.name);
                let mut fields = without_figures(check.item, suite, &check.name, verdict);
                fields.extend([&check.expected, &check.seen, &check.source].map(String::clone));
                row(fields);
            }
            Record::Measure(one) => {
                let mut fields = vec![one.item.to_string(), "bring-up".to_string()];
                let cpu = one.cpu.map_or_else(String::new, |cpu| format!(", processor {cpu}"));
                fields.push(format!("{} ({}){cpu}", one.name, one.unit));
                let [median, min, max] = [one.median, one.min, one.max].map(|it| it.to_string());
                fields.extend([median, min, String::new(), max, one.runs.to_string(), "1".into()]);
                row(fields);
            }
            Record::Suite(suite) => {
                let Some(reason) = &suite.reason else { continue };
                let mut fields = without_figures(suite.item, &suite.name, "", "skip");
                fields.extend([String::new(), reason.clone()]);
                row(fields);
            }
            Record::Error(error) if error.item.is_some() => {
                let (item, name) = (error.item.unwrap_or_default(), error.name.as_deref());
                let what = if error.code == ErrorCode::Skipped { "skipped" } else { "error" };
                row(without_figures(item, name.unwrap_or_default(), "", what));
            }
            record => {
                let Some(result) = kinds::shown(record) else { continue };
                for mut fields in result.csv(report, verdict) {
                    let event = fields.get(2).map_or("", String::as_str);
                    // A figure that has no verdict yet.
                    let is_open = fields.last().is_some_and(String::is_empty);
                    let is_missed = |miss: &Miss| result.is_csv_row(event, &miss.figure);
                    if is_open && misses.iter().any(is_missed) {
                        fields.pop();
                        fields.push("fail".to_string());
                    }
                    row(fields);
                }
            }
        }
        if let Some((item, name)) = judged::item_of(&numbered.record) {
            for sentence in judged::sentences(&numbered.record) {
                row(without_figures(item, &name, &sentence, "missed"));
            }
        }
    }
    for one in certificate.iter().flat_map(|certificate| &certificate.findings) {
        let shown = &one.shown;
        let mut fields = without_figures(0, "certificate", &one.what, &one.class.words());
        fields[0] = shown.item.map_or_else(String::new, |item| item.to_string());
        fields.extend([&shown.expected, &shown.came, &shown.ran].map(Clone::clone));
        row(fields);
    }
    for (subject, text) in certificate.iter().flat_map(honest::verdicts) {
        let mut fields = without_figures(0, "certificate", subject, text);
        fields[0] = String::new();
        row(fields);
    }
    let bytes = writer.into_inner().expect("memory takes everything");
    String::from_utf8(bytes).expect("the fields are UTF-8")
}
