//! Putting events into a table. A name is looked up by its folded spelling in an index, so that a
//! file of any length costs a few operations for each of its events.

use super::entry::Entry;
use super::{Merged, SourceTable};
use crate::pack::Row;
use crate::tables::fold;
use std::collections::HashMap;

/// A table that takes events in.
pub(super) struct Merge<'t> {
    table: &'t mut SourceTable,
    /// Rows by the folded spelling of their names. Several differ in nothing but spelling.
    index: HashMap<Vec<u8>, Vec<usize>>,
    /// Generic numbers by the name of the event that they stand for.
    generics: HashMap<String, Vec<usize>>,
    /// How many rows the table had before.
    before: usize,
    /// Rows that another one has replaced.
    gone: Vec<bool>,
}

fn folded(name: &str) -> Vec<u8> {
    fold::folded(name).collect()
}

impl<'t> Merge<'t> {
    pub(super) fn new(table: &'t mut SourceTable) -> Self {
        let mut index: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (at, row) in table.rows.iter().enumerate() {
            index.entry(folded(&row.name)).or_default().push(at);
        }
        let mut generics: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, name) in table.generics.iter().enumerate() {
            if let Some(name) = name {
                generics.entry(name.clone()).or_default().push(number);
            }
        }
        let before = table.rows.len();
        Self { gone: vec![false; before], table, index, generics, before }
    }

    /// Adds an event, or puts it in the place of the table's own with the same name. What the file
    /// itself has brought is not replaced: its second event of a name is refused.
    pub(super) fn put(&mut self, entry: &Entry, row: Row, merged: &mut Merged) {
        let same = self.index.entry(folded(&row.name)).or_default();
        let twice = |at: &usize| {
            *at >= self.before && self.table.rows[*at].name.eq_ignore_ascii_case(&row.name)
        };
        if same.iter().any(twice) {
            let why = "the file has this name already; only the first is taken";
            merged.refused.push(entry.wrong("EventName", &entry.name, why));
            return;
        }
        if row.name != entry.name {
            merged.renamed.push((entry.name.clone(), row.name.clone()));
        }
        let old: Vec<usize> = same.iter().copied().filter(|at| *at < self.before).collect();
        match old.first() {
            None => merged.added.push(row.name.clone()),
            Some(first) => {
                merged.replaced.push(self.table.rows[*first].name.clone());
                for at in &old {
                    self.gone[*at] = true;
                    for number in
                        self.generics.remove(&self.table.rows[*at].name).into_iter().flatten()
                    {
                        self.table.generics[number] = Some(row.name.clone());
                    }
                }
            }
        }
        same.retain(|at| *at >= self.before);
        same.push(self.table.rows.len());
        self.table.rows.push(row);
        self.gone.push(false);
    }

    /// Drops what was replaced.
    pub(super) fn finish(self) {
        let mut gone = self.gone.into_iter();
        self.table.rows.retain(|_| !gone.next().unwrap_or(false));
    }
}
