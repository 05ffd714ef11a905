//! What tasks read of themselves and their descendants, and where the counts of one that outlived its parent are.

use super::{right_but, value};
use crate::primitives::table::empty;
use comfy_table::Table;
use protocol::record::{CountReading, CountResult, TaskResult};

/// What tasks read while they ran: by row who, when, which event, its own count and that of its descendants.
pub(crate) fn rows_of_readings(count: &CountResult) -> Vec<[String; 5]> {
    let row = |reading: &CountReading| {
        let [task, event] = count.names_of(reading);
        let (own, children) = (value(&reading.own), value(&reading.children));
        [task, reading.tsc.to_string(), event, own, children]
    };
    count.readings.iter().map(row).collect()
}

/// The head of [`rows_of_readings`].
pub(crate) const READINGS: [&str; 5] =
    ["read by", "TSC ticks", "event", "its own", "its descendants'"];

/// The table of what tasks read.
pub(super) fn readings(count: &CountResult) -> Table {
    let mut table = empty();
    right_but(&mut table, &READINGS.map(String::from), 3);
    for row in rows_of_readings(count) {
        table.add_row(row);
    }
    table
}

/// Where the counts of a task are that was there longer than its parent, in a sentence.
pub(crate) fn inherited_from_afar(count: &CountResult, task: &TaskResult) -> Option<String> {
    let name = |index: u16| count.tasks.get(usize::from(index)).map_or("", |task| &*task.name);
    match (task.outlived?, task.added_to) {
        (parent, Some(heir)) => {
            let (parent, heir) = (name(parent), name(heir));
            Some(format!("{} outlived {parent}: its counts are in those of {heir}", task.name))
        }
        (parent, None) => {
            Some(format!("{} outlived {}: its counts are its own", task.name, name(parent)))
        }
    }
}
