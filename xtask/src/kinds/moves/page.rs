//! Tasks that moved between processors.

use crate::kinds::moves::{MOVES, PROCESSORS, rows, rows_of_counts, rows_of_processors};
use crate::kinds::page::table;
use html_report::model::{Cell, Part};
use protocol::record::{CountResult, TaskResult, Together};

/// Where tasks ran, if some may move.
pub(crate) fn of_tasks(tasks: &[TaskResult], together: Option<&Together>) -> Vec<Part> {
    if tasks.iter().all(|task| task.moves.is_none()) {
        return Vec::new();
    }
    vec![
        table("Where tasks ran", &MOVES, 1, cells(rows(tasks))),
        table("What processors did", &PROCESSORS, 1, cells(rows_of_processors(together))),
    ]
}

/// What was counted of them by processor.
pub(crate) fn of_counts(count: &CountResult) -> Option<Part> {
    let (head, rows) = rows_of_counts(count);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let title = "Counts by processor of tasks that move";
    (!rows.is_empty()).then(|| table(title, &head, 1, cells(rows)))
}

fn cells<R: IntoIterator<Item = String>>(rows: Vec<R>) -> Vec<Vec<Cell>> {
    rows.into_iter().map(|row| row.into_iter().map(Cell::text).collect()).collect()
}
