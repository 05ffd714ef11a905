//! Metrics of a snippet, or of a count and its tasks.

use super::{note, table};
use crate::metrics::ItemMetrics;
use crate::page::Document;
use crate::render::metrics::{mark, passes, said, shares, spread, value};
use html_report::model::{Cell, Part, Tone};

/// The item's metrics, if it has some.
pub(super) fn parts(document: &Document, item: u32) -> Vec<Part> {
    let own: Vec<&ItemMetrics> = document.metrics.iter().filter(|one| one.item == item).collect();
    let several = own.len() > 1;
    own.into_iter().flat_map(|metrics| parts_of(metrics, several)).collect()
}

fn parts_of(metrics: &ItemMetrics, several: bool) -> Vec<Part> {
    let row = |row: &crate::metrics::MetricRow| {
        let indent = "\u{2003}".repeat(row.level.saturating_sub(1).into());
        let texts = [
            format!("{indent}{}", row.name),
            row.brief.clone(),
            mark(row).to_string(),
            row.unit.clone().unwrap_or_default(),
            spread(row),
            passes(row),
            value(row),
        ];
        texts.map(Cell::text).into()
    };
    let head = ["metric", "what it is", "", "unit", "spread", "passes", "value"];
    let title = if several { format!("Metrics: {}", metrics.name) } else { "Metrics".to_string() };
    let mut parts = vec![table(&title, &head, 6, metrics.rows.iter().map(row).collect())];
    parts.extend(metrics.way.iter().map(|way| note(Tone::Plain, "what to look at", way.clone())));
    parts.extend(shares(metrics).map(|text| note(Tone::Plain, "metric", text)));
    let doubts = metrics.rows.iter().flat_map(said);
    parts.extend(doubts.map(|text| note(Tone::Warn, "metric", text)));
    parts
}
