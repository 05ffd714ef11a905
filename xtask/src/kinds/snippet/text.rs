//! Rows of the first table: figures of a snippet.

use crate::context::Context;
use crate::primitives::{joules, number};
use comfy_table::{Cell, Color};
use protocol::job::criteria::TSC;
use protocol::record::{Metric, SnippetResult, Verdict};

/// What TSC ticks are called.
pub(crate) fn unit(context: &Context) -> &'static str {
    match context.ticks_per_instruction {
        Some(1) => "TSC ticks = instructions",
        _ => "TSC ticks",
    }
}

/// How many records of the body a retire latency is the mean of.
pub(crate) fn of_records(metric: &Metric) -> String {
    let [small, large] = metric.retired.map_or([0; 2], |retired| retired.records);
    format!("{} records", large.saturating_sub(small))
}

/// The row of a figure.
pub(crate) fn row(result: &SnippetResult, metric: &Metric) -> Vec<Cell> {
    let value = &metric.value;
    let distinct = metric.series.iter().map(|series| series.distinct).max().unwrap_or(0);
    let (figure, spread): (fn(f64) -> String, String) = match &metric.energy {
        None if metric.retired.is_some() => (number, of_records(metric)),
        Some(energy) => (joules, format!("± {}", joules(energy.resolution))),
        None if metric.deterministic => (number, "all equal".to_string()),
        None => (number, format!("{distinct} distinct")),
    };
    // The verdict stands next to the name, and next to each figure that missed.
    let missed = result.misses.iter().any(|miss| miss.figure == metric.event);
    let verdict = match (result.verdict, metric.event == TSC) {
        (Verdict::Pass, true) => Cell::new("pass").fg(Color::Green),
        (Verdict::Fail, true) => Cell::new("FAIL").fg(Color::Red),
        _ if missed => Cell::new("FAIL").fg(Color::Red),
        _ => Cell::new(""),
    };
    // Further events stand below the time stamp counter, which has the snippet's name.
    let (item, name) = match metric.event.as_str() {
        "tsc" => (result.item.to_string(), result.name.clone()),
        event => {
            let pass = metric.counting.as_ref().map_or(0, |counting| counting.pass);
            let pass = if pass > 0 { format!(" (pass {})", pass + 1) } else { String::new() };
            let package = metric.counting.as_ref().is_some_and(|counting| counting.units > 0);
            let package = if package { " (whole package)" } else { "" };
            let emulated = if result.emulated { " (emulated)" } else { "" };
            (String::new(), format!("  {event}{pass}{package}{emulated}"))
        }
    };
    vec![
        Cell::new(item),
        Cell::new(name),
        Cell::new(figure(value.median)),
        Cell::new(figure(value.min)),
        Cell::new(figure(value.mean)),
        Cell::new(figure(value.max)),
        Cell::new(result.runs),
        Cell::new(spread),
        verdict,
    ]
}
