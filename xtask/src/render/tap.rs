//! Test Anything Protocol, version 14.

use super::{Context, number};
use crate::collect::Report;
use crate::verdict as judged;
use protocol::record::{ErrorCode, Outcome, Record, Verdict};
use protocol::verdict;
use std::fmt::Write;

/// Renders it. Each item is a test point; a report that is not whole bails out.
#[must_use]
pub fn render(report: &Report, context: &Context) -> String {
    let mut out = String::from("TAP version 14\n");
    let mut points = 0;
    for numbered in &report.records {
        let is_ok = verdict::said(&numbered.record).is_none_or(|(said, _)| said != Verdict::Fail);
        let verdict = if is_ok { "ok" } else { "not ok" };
        // Writing to a String does not fail.
        match &numbered.record {
            Record::Result(result) => {
                points += 1;
                let _ = writeln!(out, "{verdict} {points} - {}", escape(&result.name));
                for metric in &result.metrics {
                    let value = &metric.value;
                    let _ = writeln!(
                        out,
                        "  ---\n  event: {}\n  median: {}\n  min: {}\n  max: {}\n  deterministic: {}\n  ...",
                        metric.event,
                        number(value.median),
                        number(value.min),
                        number(value.max),
                        metric.deterministic
                    );
                }
            }
            Record::Processors(result) => {
                points += 1;
                let _ = writeln!(out, "{verdict} {points} - {}", escape(&result.name));
                for sum in &result.sums {
                    let value = number(sum.value);
                    let _ = writeln!(out, "  ---\n  event: {}\n  sum: {value}\n  ...", sum.event);
                }
            }
            Record::Exact(exact) => {
                points += 1;
                let _ = writeln!(out, "{verdict} {points} - {}", escape(&exact.name));
                for count in &exact.counts {
                    let (event, value) = (&count.event, number(count.value));
                    let _ = writeln!(out, "  ---\n  exact: {event}\n  value: {value}\n  ...");
                }
            }
            Record::History(history) => {
                points += 1;
                super::history::point(&mut out, points, verdict, history);
            }
            Record::Tasks(tasks) => {
                points += 1;
                super::tasks::point(&mut out, points, verdict, &tasks.name, &tasks.tasks);
            }
            Record::Count(count) => {
                points += 1;
                super::tasks::point(&mut out, points, verdict, &count.name, &count.tasks);
                for (set, event) in super::count::figures(count) {
                    let value = event.sum.scaled.unwrap_or(event.sum.raw);
                    let event = quoted(&format!("{set}{}", event.event));
                    let _ = writeln!(out, "  ---\n  count: {event}\n  value: {value}\n  ...");
                }
                for set in &count.sets {
                    let Some(lost) = super::count::lost(set) else { continue };
                    let (name, bind, lost) = (quoted(&set.name), quoted(&set.bind), quoted(&lost));
                    let _ = writeln!(
                        out,
                        "  ---\n  set: {name}\n  bind: {bind}\n  lost: {lost}\n  ..."
                    );
                }
            }
            Record::Sample(sampled) => {
                points += 1;
                let _ = writeln!(out, "{verdict} {points} - {}", escape(&sampled.name));
                for one in &sampled.events {
                    let (event, overflows, dropped) = (&one.event, one.overflows, one.dropped);
                    let _ = writeln!(
                        out,
                        "  ---\n  sampled: {event}\n  overflows: {overflows}\n  dropped: {dropped}\n  ..."
                    );
                }
            }
            Record::Check(check) => {
                points += 1;
                super::checks::point(&mut out, points, check);
            }
            Record::Suite(suite) => {
                if let Some(reason) = &suite.reason {
                    points += 1;
                    let (name, reason) = (escape(&suite.name), one_line(reason));
                    let _ = writeln!(out, "ok {points} - {name} # SKIP {reason}");
                }
            }
            Record::Error(error) if error.code == ErrorCode::Skipped => {
                points += 1;
                let name = escape(error.name.as_deref().unwrap_or_default());
                let _ = writeln!(out, "ok {points} - {name} # SKIP {}", one_line(&error.text));
            }
            Record::Error(error) => {
                points += 1;
                let name = error.name.as_deref().unwrap_or("the job");
                let _ = writeln!(out, "not ok {points} - {}", escape(name));
                let instruction = error.fault.as_ref().map(super::tasks::instruction);
                let text = format!("{}{}", error.text, instruction.unwrap_or_default());
                let text = quoted(&text);
                let _ = writeln!(out, "  ---\n  message: {text}\n  ...");
            }
            // It cost an item, which has its point.
            Record::Crash(crash) if report.is_cost_of_item(crash) => {
                let _ = writeln!(out, "# the firmware failed: {}", one_line(&crash.text));
            }
            Record::Crash(crash) => {
                let _ = writeln!(out, "Bail out! the firmware failed: {}", one_line(&crash.text));
            }
            _ => {}
        }
        for missed in judged::sentences(&numbered.record) {
            let _ = writeln!(out, "  ---\n  missed: {}\n  ...", quoted(&missed));
        }
    }
    let skipped = report.end().is_some_and(|end| end.outcome == Outcome::Skip);
    let skip = if skipped && points == 0 { " # SKIP nothing could run" } else { "" };
    let _ = writeln!(out, "1..{points}{skip}");
    for problem in &report.problems {
        let _ = writeln!(out, "Bail out! {}", one_line(&problem.to_string()));
    }
    for dispute in &report.disputes {
        let _ = writeln!(out, "Bail out! {}", one_line(dispute));
    }
    if let Some(complaint) = &context.complaint {
        let _ = writeln!(out, "Bail out! {}", one_line(complaint));
    }
    out
}

/// As YAML takes it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text serialises")
}

/// `#` begins a directive, and a backslash escapes it.
pub(super) fn escape(name: &str) -> String {
    one_line(name).replace('\\', "\\\\").replace('#', "\\#")
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
