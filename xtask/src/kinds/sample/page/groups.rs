//! Values of counters, and vector registers, of single samples.

use crate::kinds::page::table;
use crate::samples::Profile;
use crate::samples::groups::{VALUE_COLUMNS, VECTOR_COLUMNS};
use html_report::model::{Cell, Part};

/// One table of each, where there is any.
pub(super) fn parts(profile: &Profile) -> Vec<Part> {
    let mut parts = Vec::new();
    let row = |first: Cell, rest: &[String]| -> Vec<Cell> {
        [first].into_iter().chain(rest.iter().map(|text| Cell::text(&**text))).collect()
    };
    if !profile.values.is_empty() {
        let values = profile.values.iter();
        let rows = values.map(|one| row(Cell::text(&*one.event), &one.cells())).collect();
        parts.push(table("Values of counters at the samples", &VALUE_COLUMNS, 1, rows));
    }
    if !profile.vectors.is_empty() {
        let rows = profile.vectors.iter().map(|one| {
            let [name, rest @ ..] = one.cells();
            row(Cell::code(name), &rest)
        });
        let rows = rows.collect();
        parts.push(table("Vector registers at the samples", &VECTOR_COLUMNS, 1, rows));
    }
    parts
}
