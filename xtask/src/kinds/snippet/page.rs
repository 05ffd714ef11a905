//! A snippet: how each figure came about.

use crate::document::Document;
use crate::forms;
use crate::kinds::figures::JOULES;
use crate::kinds::page::{controls, note, table};
use crate::kinds::snippet::text::of_records;
use crate::primitives::{joules, number};
use html_report::model::{Badge, Cell, Part, Spread, Tone, Value};
use protocol::job::criteria::TSC;
use protocol::record::{Metric, Series, SnippetResult};

pub(crate) fn kind(result: &SnippetResult) -> &'static str {
    if forms::is_form(result) { "form" } else { "snippet" }
}

/// The figures: of each event the median, with least, mean and greatest of the runs. Energy is in joules.
pub(crate) fn figures(document: &Document, result: &SnippetResult) -> Vec<(String, String, Value)> {
    let figure = |metric: &Metric| {
        let unit = match &metric.energy {
            Some(_) => JOULES.to_string(),
            None if metric.event == TSC => document.tsc(),
            None if metric.retired.is_some() => "cycles".to_string(),
            None => String::new(),
        };
        let value = &metric.value;
        let spread = Badge::new(
            Tone::Plain,
            match &metric.energy {
                Some(energy) => format!("± {}", joules(energy.resolution)),
                None if metric.retired.is_some() => of_records(metric),
                None if metric.deterministic => "all equal".to_string(),
                None => format!("{} distinct", distinct(metric)),
            },
        );
        let doubtful =
            metric.counting.as_ref().is_some_and(|counting| !counting.remarks.is_empty());
        let verdict = if doubtful { Badge::new(Tone::Warn, "doubtful") } else { Badge::default() };
        let value = Value {
            value: Some(value.median),
            range: Some([value.min, value.mean, value.max]),
            runs: result.runs.into(),
            spread,
            verdict,
            scaled: false,
            other_unit: None,
        };
        (metric.event.clone(), unit, value)
    };
    result.metrics.iter().map(figure).collect()
}

fn distinct(metric: &Metric) -> u32 {
    metric.series.iter().map(|series| series.distinct).max().unwrap_or(0)
}

pub(crate) fn parts(result: &SnippetResult) -> Vec<Part> {
    let mut parts = Vec::new();
    let spreads: Vec<Spread> =
        result.metrics.iter().flat_map(|metric| spreads(metric, "")).collect();
    match &result.metrics[..] {
        // Of most items there is no more to say than this.
        [only] if only.counting.is_none() => {
            let [small, large] = only.series.each_ref().map(ends);
            let text = format!(
                "Undivided: {small} and {large} in {} runs each of the smaller and of the larger code; their difference is divided by {}.",
                result.runs, result.per
            );
            parts.push(Part::Text(text));
        }
        metrics => parts.push(counts(metrics, result)),
    }
    if !spreads.is_empty() {
        parts.push(Part::Heading("Distribution over the runs, undivided".to_string()));
        parts.push(Part::Spreads(spreads));
    }
    for metric in &result.metrics {
        for remark in metric.counting.iter().flat_map(|counting| &counting.remarks) {
            parts.push(note(Tone::Warn, "doubtful", format!("{}: {remark}", metric.event)));
        }
    }
    parts.extend(controls(&result.controls));
    if result.unwatched > 0 {
        let text = "its events use every counter, so no watchdog can end it";
        parts.push(note(Tone::Warn, "note", text));
    }
    if result.smis > 0 {
        let text =
            format!("{} system management interrupts occurred while it was measured", result.smis);
        parts.push(note(Tone::Warn, "doubtful", text));
    }
    parts
}

/// The least and the greatest count of a code size.
fn ends(series: &Series) -> String {
    match series.min == series.max {
        true => series.min.to_string(),
        false => format!("{} … {}", series.min, series.max),
    }
}

fn counts(metrics: &[Metric], result: &SnippetResult) -> Part {
    let row = |metric: &Metric| {
        let (name, counter, pass) = match &metric.counting {
            Some(one) => (one.name.clone(), one.counter.clone(), (one.pass + 1).to_string()),
            None => ("time stamp counter".to_string(), String::new(), String::new()),
        };
        let [small, large] = &metric.series;
        let texts = [
            metric.event.clone(),
            name,
            counter,
            pass,
            ends(small),
            ends(large),
            match metric.energy {
                Some(_) => joules(metric.value.median),
                None => number(metric.value.median),
            },
        ];
        texts.map(Cell::text).into()
    };
    let caption =
        format!("Counts, undivided; figures are the differences divided by {}", result.per);
    let head = ["event", "counted as", "counter", "pass", "smaller code", "larger code", "figure"];
    table(&caption, &head, 3, metrics.iter().map(row).collect())
}

/// The runs of both code sizes, where they differ; of a figure that was the same in all of them there is nothing to see.
pub(crate) fn spreads(metric: &Metric, behind: &str) -> Vec<Spread> {
    if metric.deterministic || metric.energy.is_some() || metric.retired.is_some() {
        return Vec::new();
    }
    let one = |(series, which): (&Series, &str)| Spread {
        name: format!("{}{behind}, {which} code", metric.event),
        values: series.values.iter().flatten().map(|value| *value as f64).collect(),
        bounds: [series.min as f64, series.max as f64],
        distinct: series.distinct.into(),
    };
    metric.series.iter().zip(["smaller", "larger"]).map(one).collect()
}
