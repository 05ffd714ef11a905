//! What bring-ups found, as tables of a page.

use crate::bring_up::tables;
use crate::document::Document;
use html_report::model::{Cell, Table};

/// The tables of each run; with the run's name where there are several.
pub(super) fn of(documents: &[Document]) -> Vec<Table> {
    let many = documents.len() > 1;
    let mut all = Vec::new();
    for document in documents {
        for one in tables(&document.report) {
            let caption =
                if many { format!("{}: {}", document.name, one.title) } else { one.title };
            let heads = one.heads.iter().map(|(head, number)| (head.to_string(), *number));
            let cells = |row: Vec<String>| row.into_iter().map(Cell::text).collect();
            all.push(Table {
                caption,
                columns: heads.collect(),
                rows: one.rows.into_iter().map(cells).collect(),
                filter: one.long,
            });
        }
    }
    all
}
