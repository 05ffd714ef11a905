//! A user's own events, in the form of Intel's perfmon files, merged over a table.
//!
//! Taken: a file with `Header` and `Events`, or a bare array. Numbers may be strings, as perfmon
//! has them, or numbers. What is not about programming the counter (descriptions, sampling periods)
//! is skipped. An event that is not understood costs itself and nothing else.

mod entry;
mod fixed;
mod merge;

use super::{PackError, RowError, SourceTable, Sources, table_name};
use crate::cpu::Vendor;
use entry::Entry;
use fixed::Numbering;
use merge::Merge;
use serde_json::Value;

/// What a merge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Events that the table did not have.
    pub added: Vec<String>,
    /// Events of the table that were replaced, because their names mean the same.
    pub replaced: Vec<String>,
    /// Events that are not the core's (they have a `Unit`), which this crate does not count.
    pub skipped: Vec<String>,
    /// Names that no list of events can spell, and what they were taken as.
    pub renamed: Vec<(String, String)>,
    /// Events that are not understood, or contradict themselves. They are left out.
    pub refused: Vec<RowError>,
}

impl Merged {
    /// Whether there is anything in the table now that the file has put there.
    #[must_use]
    pub fn took_something(&self) -> bool {
        !(self.added.is_empty() && self.replaced.is_empty())
    }
}

impl Sources {
    /// Merges events over the table with this name, which is made if it is not there (then
    /// `processors` must be told first who uses it: that decides the vendor). An event whose name
    /// means the same as one of the table's, spelling forgiven, replaces it.
    ///
    /// # Errors
    /// [`PackError::Json`] and [`PackError::NoList`] if it is not a perfmon file. A single event that
    /// is not understood is not an error: it is left out, see [`Merged::refused`].
    pub fn merge_perfmon(&mut self, table: &str, json: &str) -> Result<Merged, PackError> {
        let file: Value = serde_json::from_str(json.trim_start_matches('\u{feff}'))?;
        let list = match file {
            Value::Array(list) => Some(list),
            Value::Object(mut object) => match object.remove("Events") {
                Some(Value::Array(list)) => Some(list),
                _ => None,
            },
            _ => None,
        };
        let list = list.ok_or(PackError::NoList)?;
        let mut merged = Merged::default();
        let at = self.table_at(table);
        let vendor = self.tables[at].vendor.unwrap_or(Vendor::Intel);
        let mut entries = Vec::new();
        for (index, value) in list.into_iter().enumerate() {
            match Entry::read(index, value) {
                Ok(entry) if entry.is_core() => entries.push(entry),
                Ok(entry) => merged.skipped.push(entry.name),
                Err(error) => merged.refused.push(error),
            }
        }
        let numbering = Numbering::of(&entries);
        let mut rows = Vec::new();
        for entry in &entries {
            match entry.row(vendor, numbering) {
                Ok(row) => rows.push((entry, row)),
                Err(error) => merged.refused.push(error),
            }
        }
        let mut merge = Merge::new(&mut self.tables[at]);
        for (entry, row) in rows {
            merge.put(entry, row, &mut merged);
        }
        merge.finish();
        merged.refused.sort_by_key(|error| error.index);
        Ok(merged)
    }

    /// The number of the table with this name. One that is not there is made.
    fn table_at(&mut self, table: &str) -> usize {
        let name = table_name(table);
        self.tables.iter().position(|table| table.name == name).unwrap_or_else(|| {
            let user = self.processors.iter().find(|range| range.table == name);
            self.tables.push(SourceTable {
                name: name.to_string(),
                vendor: Some(user.map_or(Vendor::Intel, |range| range.vendor)),
                source: "user".to_string(),
                ..SourceTable::default()
            });
            self.tables.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
