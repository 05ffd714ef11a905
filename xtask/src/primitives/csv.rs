//! Rows of CSV, one for each figure.

use protocol::record::{Metric, Uncounted};

/// The fields of a row, from the first column.
pub(crate) type Row = Vec<String>;

/// Columns.
pub(crate) const HEADER: [&str; 13] = [
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

/// The row of a metric; `measured`: runs, executions a run, verdict.
pub(crate) fn of_metric(
    item: u32,
    name: &str,
    event: String,
    metric: &Metric,
    (runs, per, verdict): (u32, u64, &str),
) -> Row {
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
pub(crate) fn without_figures(item: u32, name: &str, event: &str, verdict: &str) -> Row {
    let fields = vec![item.to_string(), name.to_string(), event.to_string()];
    with_verdict(fields, verdict)
}

/// The rows of what was not counted.
pub(crate) fn uncounted<'a>(
    item: u32,
    name: &str,
    all: impl IntoIterator<Item = &'a Uncounted>,
) -> Vec<Row> {
    let row = |one: &Uncounted| without_figures(item, name, &one.event, "uncounted");
    all.into_iter().map(row).collect()
}

/// A row with its last column, the verdict; what lies between stays empty.
pub(crate) fn with_verdict(mut fields: Row, verdict: &str) -> Row {
    fields.resize(HEADER.len() - 1, String::new());
    fields.push(verdict.to_string());
    fields
}
