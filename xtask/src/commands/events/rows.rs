//! The cells of each kind of row.

use crate::events::encodings::{DecodedRow, EncodedRow};
use crate::events::list::{CpuRow, EventRow, GenericRow};
use crate::events::plan::PlanRow;

/// Cells of a row, or the heads above them.
fn cells_of<T, const N: usize>(
    row: Option<&T>,
    heads: [&str; N],
    cells: impl FnOnce(&T) -> [String; N],
) -> Vec<String> {
    row.map_or_else(|| heads.map(String::from).to_vec(), |row| cells(row).to_vec())
}

/// Those that are not empty, joined by semicolons.
fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

fn labelled(label: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{label}{text}") }
}

impl EventRow {
    pub(super) fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["event", "select", "counters", ""], |row| {
            [row.name.clone(), row.select.clone(), row.counters.clone(), row.remarks()]
        })
    }
}

impl GenericRow {
    pub(super) fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["", "generic event", "here", "select"], |row| {
            let fixed = row.fixed.map(|fixed| format!("fixed counter {fixed}"));
            let select = fixed.unwrap_or_else(|| row.select.clone());
            let architectural = if row.from == "architectural" { " (architectural)" } else { "" };
            let here = format!("{}{architectural}", row.event);
            [row.number.to_string(), row.name.to_string(), here, select]
        })
    }
}

impl EncodedRow {
    pub(super) fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["event", "counters", "control", "MSR", ""], |row| {
            let fixed = row.fixed.map(|fixed| format!("fixed {fixed}"));
            let counters = fixed.unwrap_or_else(|| row.counters.clone());
            let (control, msr) = (row.control.clone(), row.msr.clone());
            let name = if row.refused.is_empty() { row.name.clone() } else { row.text.clone() };
            let group = row.group.map_or(String::new(), |group| format!("group {group}"));
            let notes = joined([group, row.notes.clone(), labelled("refused: ", &row.refused)]);
            [name, counters, control, msr, notes]
        })
    }
}

impl DecodedRow {
    pub(super) fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["event", "reading", ""], |row| {
            let notes = joined([
                row.remarks.clone(),
                labelled("differs in ", &row.differs),
                labelled("cannot be requested here: ", &row.refused),
            ]);
            [row.text.clone(), row.closeness.to_string(), notes]
        })
    }
}

impl PlanRow {
    pub(super) fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["pass", "event", "here", "counter", "control", "MSR"], |row| {
            let (control, msr) = (row.control.clone(), row.msr.clone());
            let counter = row.counter.clone();
            [row.pass.to_string(), row.text.clone(), row.name.clone(), counter, control, msr]
        })
    }
}

impl CpuRow {
    pub(super) fn cells(row: Option<&Self>) -> Vec<String> {
        cells_of(row, ["table", "maker", "events", "version", "family.model"], |row| {
            let (table, vendor) = (row.table.clone(), row.vendor.clone());
            [table, vendor, row.events.to_string(), row.version.clone(), row.processors.clone()]
        })
    }
}
