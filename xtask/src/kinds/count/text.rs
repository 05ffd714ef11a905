//! What was counted over tasks: a table of events by task, and the series.

mod bindings;
pub(crate) mod console;
mod csv;
mod family;
mod gates;
mod point;
pub(crate) mod series;
mod table;

pub(crate) use bindings::{BINDINGS, rows_of_bindings, stale, waiting};
pub(crate) use csv::rows;
pub(crate) use family::{READINGS, inherited_from_afar, rows_of_readings};
pub(crate) use gates::{gates, taken_out};
pub(crate) use point::point;
pub(crate) use table::sections;

use comfy_table::{CellAlignment, Table};
use protocol::record::{CountResult, CountValue, CountedEvent, CountedSet, Eviction, Uncounted};

/// Why a set has no counts, in a sentence.
pub(crate) fn lost(set: &CountedSet) -> Option<String> {
    let evicted = set.evicted.as_ref().map(|Eviction { by, processor, acquired, generation }| {
        let acquired = format!("acquired in generation {acquired}");
        format!("evicted by {by} on processor {processor} in generation {generation}, {acquired}")
    });
    evicted.or_else(|| set.refused.as_ref().map(|why| format!("refused: {why}")))
}

/// What could not be counted, of all sets.
pub(crate) fn all_uncounted(count: &CountResult) -> impl Iterator<Item = &Uncounted> {
    count.uncounted.iter().chain(count.sets.iter().flat_map(|set| &set.uncounted))
}

/// Numbers of the processors whose counts stand next to the sum: one processor's counts are the sum.
pub(crate) fn cpus(count: &CountResult) -> Vec<u32> {
    let numbers = count.cpus.iter().map(|cpu| cpu.processor);
    if count.cpus.len() > 1 { numbers.collect() } else { Vec::new() }
}

pub(crate) fn right_but(table: &mut Table, head: &[String], left: usize) {
    table.set_header(head);
    for index in left..head.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// A count as it is; one that stands for more than its own time scaled, after a `~`.
pub(crate) fn value(value: &CountValue) -> String {
    match value.scaled {
        _ if value.enabled == 0 => "-".to_string(),
        None => "?".to_string(),
        Some(scaled) if value.counted == value.enabled => scaled.to_string(),
        Some(scaled) => format!("~{scaled}"),
    }
}

/// The share of the time during which it was counted.
pub(crate) fn share(value: &CountValue) -> String {
    match value.enabled {
        0 => String::new(),
        enabled => format!("{:.1} %", 100.0 * value.counted as f64 / enabled as f64),
    }
}

/// All events, each with what stands before its name: nothing, or its set's.
pub(crate) fn figures(count: &CountResult) -> impl Iterator<Item = (String, &CountedEvent)> {
    let own = count.events.iter().map(|event| (String::new(), event));
    let sets = count
        .sets
        .iter()
        .flat_map(|set| set.events.iter().map(move |event| (format!("{}: ", set.name), event)));
    own.chain(sets)
}

fn plural(number: u64, what: &str) -> String {
    match (number, what) {
        (1, _) => format!("1 {what}"),
        (_, "switch" | "pass") => format!("{number} {what}es"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests;
