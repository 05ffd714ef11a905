//! `events --metrics`: the metrics of a processor, each with its events and whether it can be had.

use crate::events::CpuName;
use crate::metrics::names::not_yet;
use crate::metrics::request::{Target, ask};
use crate::metrics::table::{Definition, Table, table, uncore};
use events::tables::Core;
use serde::Serialize;

/// A metric.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MetricRow {
    /// Its name.
    name: String,
    /// Its depth in the tree, from 1.
    level: u8,
    /// The metric above it.
    parent: String,
    /// What its value is in.
    unit: String,
    /// The events of its formula as tables of metrics have them, joined by commas.
    events: String,
    /// Why it is not available; empty if it can.
    refused: String,
    /// What it is.
    brief: String,
}

impl MetricRow {
    pub(super) fn cells(row: Option<&Self>) -> Vec<String> {
        let Some(row) = row else {
            return ["metric", "unit", "what it is"].map(String::from).into();
        };
        let indent = "  ".repeat(row.level.saturating_sub(1).into());
        let brief = match row.refused.is_empty() {
            true => row.brief.clone(),
            false => format!("not here: {}", row.refused),
        };
        vec![format!("{indent}{}", row.name), row.unit.clone(), brief]
    }
}

/// The metrics whose name has `part`.
pub(super) fn rows(core: &Core<'_>, part: Option<&str>) -> Vec<MetricRow> {
    let table = table(core.name());
    let part = part.unwrap_or_default().to_lowercase();
    let fitting = table.metrics.iter().filter(|one| one.name.to_lowercase().contains(&part));
    fitting.map(|metric| row(core, &table, metric)).collect()
}

fn row(core: &Core<'_>, table: &Table, metric: &Definition) -> MetricRow {
    let target =
        Target { cpu: CpuName::Name(core.name().to_string()), counters: None, model: None };
    let refused = not_yet(metric)
        .map(|what| format!("needs {what}"))
        .or_else(|| ask(&target, core, table, metric).err().map(|error| error.to_string()));
    let events: Vec<&str> = metric.events.values().map(|event| uncore::name(event)).collect();
    MetricRow {
        name: metric.name.clone(),
        level: metric.level,
        parent: metric.parent.clone().unwrap_or_default(),
        unit: metric.unit.clone().unwrap_or_default(),
        events: events.join(", "),
        refused: refused.unwrap_or_default(),
        brief: metric.brief.clone(),
    }
}
