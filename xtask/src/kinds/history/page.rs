//! What was looked at cycle by cycle.

use crate::kinds::history::text::heading;
use crate::kinds::page::{controls, note, table};
use html_report::model::{Cell, Part, Plot, Series, Tone};
use protocol::record::{HistoryPlace, HistoryResult, HistorySeries};

pub(crate) fn parts(history: &HistoryResult) -> Vec<Part> {
    let mut text = heading(history);
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    let mut parts = vec![Part::Text(text + ".")];
    if history.series.iter().any(|one| !one.median.is_empty()) {
        parts.push(Part::Plot(each(history)));
        parts.push(Part::Plot(sums(history)));
    }
    parts.extend(places(history));
    parts.extend(history.remarks.iter().map(|text| note(Tone::Warn, "doubtful", text)));
    for one in &history.series {
        let remarks = one.counting.remarks.iter();
        parts.extend(
            remarks.map(|text| note(Tone::Warn, "doubtful", format!("{}: {text}", one.event))),
        );
    }
    parts.extend(controls(&history.controls));
    parts
}

/// Where in compiled code the rows began, if that has names here.
fn places(history: &HistoryResult) -> Option<Part> {
    let step = u64::from(history.step);
    let row = |(row, place): (u64, &HistoryPlace)| {
        let text = |text: &Option<String>| Cell::code(text.clone().unwrap_or_default());
        let at = [Cell::text((row * step).to_string()), Cell::code(place.address.to_string())];
        at.into_iter().chain([text(&place.function), text(&place.location)]).collect()
    };
    let named = history.places.iter().any(|place| place.function.is_some());
    named.then(|| {
        let rows = (0..).zip(&history.places).map(row).collect();
        table("Where the rows began", &[&history.clock, "address", "function", "line"], 4, rows)
    })
}

fn plot(history: &HistoryResult, series: impl Fn(&HistorySeries) -> Series) -> Plot {
    let rows = history.series.iter().map(|one| one.median.len()).max().unwrap_or(0);
    let step = u64::from(history.step);
    let from = if history.end_to_end { "the switch" } else { "the snippet's beginning" };
    let end = history.passes.first().and_then(|pass| pass.end);
    Plot {
        x_label: format!("{} from {from} on", history.clock),
        x: (1..=rows as u64).map(|row| (row * step) as f64).collect(),
        series: history.series.iter().map(series).collect(),
        mark: end.map(|end| (end as f64, "the snippet ends".to_string())),
        ..Plot::default()
    }
}

/// What happened in each row.
fn each(history: &HistoryResult) -> Plot {
    let clock = &history.clock;
    let (title, y_label) = match history.step {
        1 => (format!("In each of the {clock}"), "events in it".to_string()),
        step => (format!("In every {step} {clock}"), format!("events in {step} {clock}")),
    };
    let series = |one: &HistorySeries| Series {
        name: one.event.clone(),
        y: one.each.clone(),
        band: Vec::new(),
    };
    Plot { title, y_label, steps: true, ..plot(history, series) }
}

/// What had happened up to each row.
fn sums(history: &HistoryResult) -> Plot {
    let series = |one: &HistorySeries| Series {
        name: one.event.clone(),
        y: one.median.clone(),
        band: one.min.iter().zip(&one.max).map(|(min, max)| [*min, *max]).collect(),
    };
    let (title, y_label) = (
        "So far; the band is from the least to the greatest of the runs".to_string(),
        "events so far".to_string(),
    );
    Plot { title, y_label, ..plot(history, series) }
}
