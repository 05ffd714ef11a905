//! Where several processors were sampled: the account of each, and what lies in which task.

use super::{MAX_ROWS, share, table};
use crate::samples::Profile;
use comfy_table::{Cell, Table};
use protocol::record::SampleResult;

/// The account of each processor and event.
pub(super) fn accounts(result: &SampleResult) -> Option<Table> {
    let header = [
        "by processor",
        "event",
        "overflows",
        "sampled",
        "dropped",
        "throttled",
        "rest",
        "counted",
    ];
    let mut table = table(&header, &[0, 2, 3, 4, 5, 6, 7]);
    for part in &result.processors {
        for one in &part.events {
            let witness = one.witness.map(|count| count.to_string()).unwrap_or_default();
            let numbers = [one.overflows, one.samples, one.dropped, one.throttled, one.rest];
            let cells = [Cell::new(part.cpu), Cell::new(&one.event)].into_iter();
            table.add_row(cells.chain(numbers.map(Cell::new)).chain([Cell::new(witness)]));
        }
    }
    (!result.processors.is_empty()).then_some(table)
}

/// Samples of an event by task, with its processor.
pub(super) fn tasks(profile: &Profile, event: usize, name: &str) -> Option<Table> {
    let header = [&*format!("{name} by task"), "processor", "samples", "share"];
    let mut table = table(&header, &[1, 2, 3]);
    let total = profile.total(event);
    for one in profile.by_task(event).iter().take(MAX_ROWS) {
        let cells = [one.task.clone(), one.cpu.to_string(), one.count.to_string()];
        table.add_row(cells.into_iter().chain([share(one.count, total)]).map(Cell::new));
    }
    (!profile.result.processors.is_empty()).then_some(table)
}
