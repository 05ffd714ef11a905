//! Metrics of a snippet, or of a count and its tasks.

use crate::document::Document;
use crate::kinds::page::{note, table};
use crate::metrics::render::{mark, passes, said, shares, spread, value};
use crate::metrics::{ItemMetrics, MetricRow};
use html_report::model::{Cell, Part, Plot, Series, Tone};

/// The item's metrics, if it has some.
pub(super) fn parts(document: &Document, item: u32) -> Vec<Part> {
    let own: Vec<&ItemMetrics> = document.metrics.iter().filter(|one| one.item == item).collect();
    let several = own.len() > 1;
    own.into_iter().flat_map(|metrics| parts_of(metrics, several)).collect()
}

fn parts_of(metrics: &ItemMetrics, several: bool) -> Vec<Part> {
    let row = |row: &MetricRow| {
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
    parts.extend(by_rows(metrics));
    parts.extend(metrics.way.iter().map(|way| note(Tone::Plain, "what to look at", way.clone())));
    parts.extend(shares(metrics).map(|text| note(Tone::Plain, "metric", text)));
    let doubts = metrics.rows.iter().flat_map(said);
    parts.extend(doubts.map(|text| note(Tone::Warn, "metric", text)));
    parts
}

/// What the metrics of a history are in each row, those that have a value in every row.
fn by_rows(metrics: &ItemMetrics) -> Option<Part> {
    let step = metrics.step?;
    let whole = |row: &MetricRow| row.each.iter().copied().collect::<Option<Vec<f64>>>();
    let series: Vec<Series> = metrics
        .rows
        .iter()
        .filter_map(|row| Some(Series { name: row.name.clone(), y: whole(row)?, band: Vec::new() }))
        .collect();
    let rows = series.first().map_or(0, |one| one.y.len());
    (rows > 0).then(|| {
        Part::Plot(Plot {
            title: "Metrics of each row".to_string(),
            x_label: "the clock's events from where the rows begin".to_string(),
            y_label: "value in the row".to_string(),
            x: (1..=rows as u64).map(|row| (row * u64::from(step)) as f64).collect(),
            series,
            steps: true,
            ..Plot::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_s3_m16_the_page_plots_metrics_that_every_row_of_a_history_has() {
        let row = |name: &str, each: &[Option<f64>]| MetricRow {
            name: name.to_string(),
            each: each.to_vec(),
            ..MetricRow::default()
        };
        let rows = vec![row("whole", &[Some(1.0), Some(2.5)]), row("gap", &[Some(1.0), None])];
        let item = ItemMetrics { rows, step: Some(3), ..ItemMetrics::default() };
        let Some(Part::Plot(plot)) = by_rows(&item) else { panic!("a plot") };
        let [series] = &plot.series[..] else { panic!("one without a gap") };
        assert_eq!(
            (&*series.name, &series.y[..], &plot.x[..]),
            ("whole", &[1.0, 2.5][..], &[3.0, 6.0][..])
        );
        assert!(by_rows(&ItemMetrics { step: None, ..item }).is_none(), "no history");
    }
}
