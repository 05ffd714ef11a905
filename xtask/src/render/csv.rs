//! One row per figure.

use crate::collect::Report;
use crate::honest::{Certificate, render as honest};
use crate::samples::data;
use crate::verdict as judged;
use protocol::record::{CheckVerdict, ErrorCode, Metric, Record, Verdict};
use protocol::verdict;

/// Columns.
const HEADER: [&str; 13] = [
    "item",
    "name",
    "event",
    "median",
    "min",
    "mean",
    "max",
    "runs",
    "per",
    "deterministic",
    "distinct_small",
    "distinct_large",
    "verdict",
];

/// Further columns of a report that has checks of the conformance suite.
const OF_CHECKS: [&str; 3] = ["expected", "seen", "source"];

/// Renders it. What a bring-up measured has a row with its unit in the place of the event. A check has a row with the verdict `pass`, `fail`, `skip` or `erratum` and no figures; a suite that could
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
    let mut row = |mut fields: Vec<String>| {
        fields.resize(columns, String::new());
        writer.write_record(&fields).expect("rows of one length");
    };
    row(HEADER.iter().chain(further).map(ToString::to_string).collect());
    for numbered in &report.records {
        let verdict = match verdict::said(&numbered.record) {
            Some((Verdict::Pass, _)) => "pass",
            Some((Verdict::Fail, _)) => "fail",
            _ => "",
        };
        match &numbered.record {
            Record::Result(result) => {
                for metric in &result.metrics {
                    let event = metric.event.clone();
                    let measured = (result.runs, result.per, verdict);
                    row(figures(result.item, &result.name, event, metric, measured));
                }
                for one in &result.uncounted {
                    row(without_figures(result.item, &result.name, &one.event, "uncounted"));
                }
            }
            Record::Processors(result) => {
                for one in &result.processors {
                    for metric in &one.metrics {
                        let event = format!("{} on cpu {}", metric.event, one.processor);
                        let measured = (result.runs, result.per, verdict);
                        row(figures(result.item, &result.name, event, metric, measured));
                    }
                }
                for one in &result.uncounted {
                    row(without_figures(result.item, &result.name, &one.event, "uncounted"));
                }
            }
            Record::Exact(exact) => {
                for count in &exact.counts {
                    let value = count.value.to_string();
                    let mut fields = vec![exact.item.to_string(), exact.name.clone()];
                    fields.push(format!("exact {}", count.event));
                    fields.extend(std::iter::repeat_n(value, 4));
                    // One run, whose counts are exact.
                    fields.extend(["1".into(), exact.per.to_string(), "true".into()]);
                    fields.extend(["1".into(), "1".into(), verdict.into()]);
                    row(fields);
                }
                for one in &exact.uncounted {
                    row(without_figures(exact.item, &exact.name, &one.event, "uncounted"));
                }
            }
            Record::History(history) => {
                for (event, [median, min, max], agree) in super::history::figures(history) {
                    let mut fields = vec![history.item.to_string(), history.name.clone(), event];
                    fields.extend([median.to_string(), min.to_string()]);
                    // A mean of medians would be of little use.
                    fields.extend([String::new(), max.to_string()]);
                    fields.extend([history.runs.to_string(), history.per.to_string()]);
                    fields.push(agree.to_string());
                    fields.resize(HEADER.len() - 1, String::new());
                    fields.push(verdict.to_string());
                    row(fields);
                }
                for one in &history.uncounted {
                    row(without_figures(history.item, &history.name, &one.event, "uncounted"));
                }
            }
            Record::Tasks(tasks) => {
                for (event, value, passed) in super::tasks::figures(tasks) {
                    let mut fields = vec![tasks.item.to_string(), tasks.name.clone(), event];
                    fields.extend(std::iter::repeat_n(value.to_string(), 4));
                    fields.extend(["1".into(), "1".into()]);
                    fields.resize(HEADER.len() - 1, String::new());
                    // A task that exited did not fail the others.
                    let own = if verdict == "fail" { "" } else { verdict };
                    fields.push(if passed { own.to_string() } else { "fail".into() });
                    row(fields);
                }
            }
            Record::Count(count) => {
                for (event, value) in super::count::rows(count) {
                    let figure = value.scaled.map_or(String::new(), |scaled| scaled.to_string());
                    let mut fields = vec![count.item.to_string(), count.name.clone(), event];
                    fields.extend(std::iter::repeat_n(figure, 4));
                    // One run, exact if it was counted all the time.
                    let whole = (value.counted == value.enabled).to_string();
                    fields.extend(["1".into(), "1".into(), whole]);
                    fields.extend(["1".into(), "1".into(), verdict.into()]);
                    row(fields);
                }
                for one in super::count::all_uncounted(count) {
                    row(without_figures(count.item, &count.name, &one.event, "uncounted"));
                }
                for set in &count.sets {
                    let what = match (&set.evicted, &set.refused) {
                        (Some(_), _) => "evicted",
                        (None, Some(_)) => "refused",
                        (None, None) => continue,
                    };
                    row(without_figures(count.item, &count.name, &set.name, what));
                }
            }
            Record::Sample(sampled) => {
                for one in &sampled.events {
                    let mut fields = vec![sampled.item.to_string(), sampled.name.clone()];
                    fields.push(format!("sampled {}", one.event));
                    // One run, whose overflows are counted; the report itself has the rest.
                    fields.extend(std::iter::repeat_n(one.overflows.to_string(), 4));
                    fields.extend(["1".into(), "1".into()]);
                    fields.resize(HEADER.len() - 1, String::new());
                    fields.push(verdict.to_string());
                    row(fields);
                }
                for one in data::addresses(report, sampled) {
                    let event = sampled.events.get(one.event as usize);
                    let event = event.map_or("", |event| event.event.as_str());
                    let mut fields = vec![sampled.item.to_string(), sampled.name.clone()];
                    fields.push(format!("sampled {event} of data at {:#x}", one.address.0));
                    fields.extend(std::iter::repeat_n(one.count.to_string(), 4));
                    fields.extend(["1".into(), "1".into()]);
                    fields.resize(HEADER.len(), String::new());
                    row(fields);
                }
                for one in sampled.branches.iter().flat_map(|branches| &branches.edges) {
                    let mut fields = vec![sampled.item.to_string(), sampled.name.clone()];
                    fields.push(format!("branch from {:#x} to {:#x}", one.from.0, one.to.0));
                    fields.extend(std::iter::repeat_n(one.count.to_string(), 4));
                    fields.extend(["1".into(), "1".into()]);
                    fields.resize(HEADER.len(), String::new());
                    row(fields);
                }
                for one in &sampled.uncounted {
                    row(without_figures(sampled.item, &sampled.name, &one.event, "uncounted"));
                }
            }
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
            _ => {}
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

/// The row of a figure; `measured`: runs, executions a run, verdict.
fn figures(
    item: u32,
    name: &str,
    event: String,
    metric: &Metric,
    (runs, per, verdict): (u32, u64, &str),
) -> Vec<String> {
    let (value, [small, large]) = (&metric.value, &metric.series);
    vec![
        item.to_string(),
        name.to_string(),
        event,
        value.median.to_string(),
        value.min.to_string(),
        value.mean.to_string(),
        value.max.to_string(),
        runs.to_string(),
        per.to_string(),
        metric.deterministic.to_string(),
        small.distinct.to_string(),
        large.distinct.to_string(),
        verdict.to_string(),
    ]
}

/// The row of what has none.
fn without_figures(item: u32, name: &str, event: &str, verdict: &str) -> Vec<String> {
    let mut fields = vec![String::new(); HEADER.len()];
    fields[0] = item.to_string();
    fields[1] = name.to_string();
    fields[2] = event.to_string();
    fields[HEADER.len() - 1] = verdict.to_string();
    fields
}
