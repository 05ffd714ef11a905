//! Metrics, below the counts that they are made of.

use crate::metrics::{ItemMetrics, MetricRow, RetiredRow};
use crate::primitives::number;
use crate::primitives::plot::PlotLine;
use crate::primitives::style::{FAINT, STRONG, paint};
use crate::primitives::table::{Width, empty, fit};
use comfy_table::{Cell, CellAlignment, Color, Table};
use html_report::decimals;
use std::fmt::Write;

/// One section for each item that has some.
pub(crate) fn sections(all: &[ItemMetrics], width: Width) -> String {
    all.iter().map(|item| section(item, width)).collect()
}

fn section(item: &ItemMetrics, width: Width) -> String {
    let mut out = String::new();
    // Writing to a String does not fail, here and below.
    let _ = writeln!(out, "{} {}: metrics", item.item, paint(STRONG, &item.name));
    let _ = writeln!(out, "{}", fit(table(item), width));
    plots(&mut out, item);
    for row in &item.rows {
        for line in said(row) {
            let _ = writeln!(out, "  {line}");
        }
    }
    if let Some(line) = shares(item) {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(way) = &item.way {
        let _ = writeln!(out, "{}", paint(FAINT, way));
    }
    out
}

/// What the metrics of a history are in each row; percentages as parts of 100.
fn plots(out: &mut String, item: &ItemMetrics) {
    let Some(step) = item.step else { return };
    let width = item.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    for row in item.rows.iter().filter(|row| row.each.iter().any(Option::is_some)) {
        let (name, values) = (&*row.name, &row.each[..]);
        let least_full = if row.unit.as_deref() == Some("percent") { 100.0 } else { 0.0 };
        PlotLine { name, values, least_full, step, end: item.end }.write(out, width);
    }
}

fn table(item: &ItemMetrics) -> Table {
    let mut table = empty();
    table.set_header(["metric", "value", "unit", "spread", "passes", ""]);
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for row in &item.rows {
        let mark = match mark(row) {
            "over its threshold" => Cell::new("over its threshold").fg(Color::Yellow),
            mark => Cell::new(mark),
        };
        let indent = "  ".repeat(row.level.saturating_sub(1).into());
        let mut cells = vec![Cell::new(format!("{indent}{}", row.name)), Cell::new(value(row))];
        cells.push(Cell::new(row.unit.as_deref().unwrap_or_default()));
        cells.extend([spread(row), passes(row)].map(Cell::new));
        cells.push(mark);
        table.add_row(cells);
    }
    table
}

/// Decimals of a value, if it takes no more: energy of an execution is a few nanojoules.
const DECIMALS: usize = 3;

/// The value, or that there is none.
pub(crate) fn value(row: &MetricRow) -> String {
    row.value.map_or("-".to_string(), |value| decimals::number(value, DECIMALS))
}

/// Its least and its greatest value in a run.
pub(crate) fn spread(row: &MetricRow) -> String {
    match row.spread {
        Some([least, most]) if least == most => "all equal".to_string(),
        Some(ends) => decimals::apart(&ends, DECIMALS).join(" to "),
        None => String::new(),
    }
}

/// The passes that it is of.
pub(crate) fn passes(row: &MetricRow) -> String {
    let passes: Vec<String> = row.passes.iter().map(ToString::to_string).collect();
    passes.join(", ")
}

/// How finely PERF_METRICS states its shares, if it was read.
pub(crate) fn shares(item: &ItemMetrics) -> Option<String> {
    let known = item.shares_known_to?;
    let percent = number((100.0 * known).ceil() / 100.0);
    let rows = item.row_slots.map_or(String::new(), |slots| {
        format!(", those of the last row to {} slots", number(slots))
    });
    Some(format!("shares of PERF_METRICS are known to {percent} percent of the slots{rows}"))
}

/// What is to be known at once.
pub(crate) fn mark(row: &MetricRow) -> &'static str {
    match (row.untrusted.is_empty(), row.exceeded, row.value) {
        (_, _, None) => "no value",
        (false, ..) => "not to be trusted",
        (true, Some(true), _) => "over its threshold",
        _ => "",
    }
}

/// What is to be said about a metric, in sentences.
pub(crate) fn said(row: &MetricRow) -> impl Iterator<Item = String> + '_ {
    let missing = row.missing.iter().map(|why| format!("{}: no value: {why}", row.name));
    let retired = row.retired.iter().map(|one| {
        let RetiredRow { event, mean, records, period } = one;
        format!(
            "{}: {event} is {} cycles, the mean of {records} records, one of each {period} events",
            row.name,
            number(*mean)
        )
    });
    let doubts = row.untrusted.iter().map(|why| format!("{}: not to be trusted: {why}", row.name));
    missing.chain(retired).chain(doubts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Format;
    use crate::collect::Report;
    use crate::context::Context;
    use crate::render::render;

    fn context(reason: &str) -> Context {
        let row = |name: &str, value: Option<f64>| MetricRow {
            name: name.to_string(),
            level: 1,
            value,
            passes: vec![1, 2],
            ..MetricRow::default()
        };
        let rows = vec![
            MetricRow {
                spread: Some([24.5, 26.0]),
                unit: Some("percent".to_string()),
                exceeded: Some(true),
                ..row("Frontend_Bound", Some(25.0))
            },
            MetricRow { level: 2, untrusted: vec![reason.to_string()], ..row("Below", Some(1.5)) },
            MetricRow { missing: Some(reason.to_string()), ..row("ipc", None) },
        ];
        let way = Some("most of it: Frontend_Bound".to_string());
        let name = "x\u{1b}[31m".to_string();
        Context {
            metrics: vec![ItemMetrics {
                item: 3,
                name,
                rows,
                way,
                shares_known_to: Some(0.7843),
                ..ItemMetrics::default()
            }],
            ..Context::default()
        }
    }

    #[test]
    fn s3_metrics_stand_in_the_table_with_what_is_to_be_known() {
        let table = render(&Report::default(), &context("a reason"), Format::Table);
        for part in [
            "24.5 to 26",
            "1, 2",
            "over its threshold",
            "  Below",
            "  Below: not to be trusted: a reason\n",
            "  ipc: no value: a reason\n",
            "most of it: Frontend_Bound",
        ] {
            assert!(table.contains(part), "{part}: {table}");
        }
        assert!(!table.contains("Frontend_Bound: "), "{table}");
    }

    #[test]
    fn s3_each_cell_of_a_metric_says_what_it_is() {
        let context = context("a reason");
        let [over, below, none] = &context.metrics[0].rows[..] else { panic!("three rows") };
        assert_eq!([over, below, none].map(value), ["25", "1.5", "-"]);
        assert_eq!(
            [over, below, none].map(mark),
            ["over its threshold", "not to be trusted", "no value"]
        );
        let trusted = MetricRow { untrusted: Vec::new(), ..below.clone() };
        assert_eq!((mark(&trusted), spread(&trusted)), ("", String::new()));
        let equal = MetricRow { spread: Some([2.0, 2.0]), ..trusted };
        assert_eq!([over, &equal].map(spread), ["24.5 to 26", "all equal"]);
        // To the next hundredth of a percent, so that it is not better than it is.
        let known = |to| ItemMetrics { shares_known_to: to, ..context.metrics[0].clone() };
        let text = "shares of PERF_METRICS are known to 0.79 percent of the slots";
        assert_eq!(shares(&known(Some(0.7843))).as_deref(), Some(text));
        assert_eq!(shares(&known(None)), None);
    }

    #[test]
    fn s3_s4_small_metrics_are_not_zero_and_those_that_vary_a_little_are_not_all_equal() {
        let row = |value, spread| MetricRow { value, spread, ..MetricRow::default() };
        for (one, texts) in [
            (row(Some(1.5e-8), Some([1.25e-8, 2e-8])), ["1.50e-8", "1.25e-8 to 2.00e-8"]),
            (row(Some(0.00015), Some([1.0, 1.0001])), ["0.00015", "1 to 1.0001"]),
            (row(Some(0.0), Some([1e-9, 1e-9])), ["0", "all equal"]),
            (row(Some(1.0 / 3.0), Some([0.25, 0.5])), ["0.333", "0.25 to 0.5"]),
        ] {
            assert_eq!([value(&one), spread(&one)], texts, "{one:?}");
        }
    }

    #[test]
    fn s3_m16_rows_of_a_history_are_plotted_percentages_as_parts_of_100() {
        let row = |name: &str, unit: Option<&str>, each: &[Option<f64>]| MetricRow {
            name: name.to_string(),
            unit: unit.map(str::to_string),
            each: each.to_vec(),
            ..MetricRow::default()
        };
        let values = [Some(25.0), None, Some(0.0), Some(12.5)];
        let rows = vec![
            row("share", Some("percent"), &values),
            row("ratio", None, &values),
            row("none", None, &[None; 4]),
        ];
        let mut item = ItemMetrics { rows, step: Some(3), end: Some(2), ..ItemMetrics::default() };
        let plotted = |item: &ItemMetrics| {
            let mut out = String::new();
            plots(&mut out, item);
            out
        };
        assert_eq!(plotted(&item), "  share      3 ▂ |·▁\n  ratio      3 █ |·▄\n");
        item.row_slots = Some(2.0);
        item.shares_known_to = Some(0.5);
        let text = "shares of PERF_METRICS are known to 0.5 percent of the slots, those of the last row to 2 slots";
        assert_eq!(shares(&item).as_deref(), Some(text));
        item.step = None;
        assert_eq!(plotted(&item), "");
    }

    #[test]
    fn s3_texts_of_a_machine_are_no_orders_for_a_terminal() {
        let context = context("bad \u{1b}]0;title\u{7} \u{202e}reason");
        let report = Report::default();
        let table = render(&report, &context, Format::Table);
        assert!(
            table.contains("\\u{1b}]0;title\\u{7}") && table.contains("x\\u{1b}[31m"),
            "{table}"
        );
        assert!(!table.contains("\u{1b}]") && !table.contains('\u{202e}'), "{table}");
        let json = render(&report, &context, Format::Json);
        assert!(!json.contains('\u{1b}') && !json.contains('\u{202e}'), "{json}");
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["metrics"][0]["rows"][0]["spread"][1], 26.0);
        assert!(value["metrics"][0]["name"].as_str().unwrap().contains('\u{1b}'));
    }
}
