//! Where several processors were sampled: the account of each, and what lies in which task.

use crate::kinds::page::{percent, share, table};
use crate::samples::Profile;
use html_report::model::{Cell, Part};
use protocol::record::SampleResult;

/// The account of each processor and event.
pub(super) fn accounts(result: &SampleResult) -> Option<Part> {
    let head = [
        "event",
        "processor",
        "overflows",
        "sampled",
        "dropped",
        "lost",
        "throttled",
        "rest",
        "counted",
    ];
    let mut rows = Vec::new();
    for part in &result.processors {
        for one in &part.events {
            let mut row = vec![Cell::text(&*one.event), Cell::text(part.cpu.to_string())];
            let numbers =
                [one.overflows, one.samples, one.dropped, one.lost, one.throttled, one.rest];
            row.extend(numbers.map(|number| Cell::text(number.to_string())));
            row.push(Cell::text(one.witness.map(|count| count.to_string()).unwrap_or_default()));
            rows.push(row);
        }
    }
    let caption = "What became of the overflows, by processor";
    (!rows.is_empty()).then(|| table(caption, &head, 1, rows))
}

/// Samples of an event by task, with its processor.
pub(super) fn tasks(profile: &Profile, event: usize, name: &str) -> Option<Part> {
    let total = profile.total(event);
    let row = |one: &crate::samples::processors::TaskCount| {
        vec![
            Cell::text(&*one.task),
            Cell::text(one.cpu.to_string()),
            Cell::text(one.count.to_string()),
            Cell::bar(percent(one.count, total), share(one.count, total)),
        ]
    };
    let rows: Vec<Vec<Cell>> = profile.by_task(event).iter().map(row).collect();
    let head = ["task", "processor", "samples", "share"];
    let several = !profile.result.processors.is_empty();
    several.then(|| table(&format!("{name} by task"), &head, 1, rows))
}
