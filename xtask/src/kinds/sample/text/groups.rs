//! Values of counters, and vector registers, of single samples.

use super::table;
use crate::samples::Profile;
use crate::samples::groups::{VALUE_COLUMNS, VECTOR_COLUMNS};
use comfy_table::{Cell, Table};

/// One table of each, where there is any.
pub(super) fn tables(profile: &Profile) -> Vec<Table> {
    let mut tables = Vec::new();
    if !profile.values.is_empty() {
        let mut values = table(&VALUE_COLUMNS, &[1, 2, 3, 4, 5, 6]);
        for row in &profile.values {
            values.add_row([row.event.clone()].into_iter().chain(row.cells()).map(Cell::new));
        }
        tables.push(values);
    }
    if !profile.vectors.is_empty() {
        let mut vectors = table(&VECTOR_COLUMNS, &[1]);
        for row in &profile.vectors {
            vectors.add_row(row.cells().map(Cell::new));
        }
        tables.push(vectors);
    }
    tables
}
