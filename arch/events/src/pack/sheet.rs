//! A CSV file with named columns, and fields that know their place.

use super::PackError;
use std::collections::HashMap;

/// A whole file.
pub(super) struct Sheet {
    pub(super) file: String,
    columns: HashMap<String, usize>,
    pub(super) lines: Vec<Vec<String>>,
}

impl Sheet {
    /// Reads a file and makes sure that it has these columns.
    pub(super) fn read(file: &str, text: &str, columns: &[&str]) -> Result<Self, PackError> {
        let failed = |error| PackError::Csv { file: file.to_string(), error };
        let mut reader = csv::ReaderBuilder::new().quoting(false).from_reader(text.as_bytes());
        let headers = reader.headers().map_err(failed)?.clone();
        let found: HashMap<String, usize> =
            headers.iter().enumerate().map(|(i, name)| (name.to_string(), i)).collect();
        if let Some(missing) = columns.iter().find(|column| !found.contains_key(**column)) {
            return Err(PackError::NoColumn {
                file: file.to_string(),
                column: (*missing).to_string(),
            });
        }
        let mut lines = Vec::new();
        for record in reader.records() {
            lines.push(record.map_err(failed)?.iter().map(ToString::to_string).collect());
        }
        Ok(Self { file: file.to_string(), columns: found, lines })
    }

    /// The names of the columns, in no order.
    pub(super) fn has_column(&self, name: &str) -> bool {
        self.columns.contains_key(name)
    }

    /// A field of a line, counted from 0. Empty if the column is not there.
    pub(super) fn field(&self, line: usize, column: &str) -> &str {
        self.columns.get(column).map_or("", |&at| &self.lines[line][at])
    }

    /// Replaces a field.
    pub(super) fn set(&mut self, line: usize, column: &str, value: &str) {
        if let Some(&at) = self.columns.get(column) {
            self.lines[line][at] = value.to_string();
        }
    }

    /// An error about a field.
    pub(super) fn wrong(&self, line: usize, column: &str, why: &'static str) -> PackError {
        PackError::Field {
            file: self.file.clone(),
            line: line_number(line),
            column: column.to_string(),
            value: self.field(line, column).to_string(),
            why,
        }
    }

    /// A field that is one number of at most `most`.
    pub(super) fn number(&self, line: usize, column: &str, most: u64) -> Result<u64, PackError> {
        match parse(self.field(line, column)) {
            Some(value) if value <= most => Ok(value),
            Some(_) => Err(self.wrong(line, column, "the number is too large")),
            None => Err(self.wrong(line, column, "this is not a number")),
        }
    }

    /// A field that may be empty.
    pub(super) fn optional(
        &self,
        line: usize,
        column: &str,
        most: u64,
    ) -> Result<Option<u64>, PackError> {
        if self.field(line, column).is_empty() {
            return Ok(None);
        }
        self.number(line, column, most).map(Some)
    }

    /// A field with numbers joined by bars.
    pub(super) fn list(&self, line: usize, column: &str, most: u64) -> Result<Vec<u64>, PackError> {
        let field = self.field(line, column);
        if field.is_empty() {
            return Ok(Vec::new());
        }
        field
            .split('|')
            .map(|part| parse(part).filter(|value| *value <= most))
            .collect::<Option<_>>()
            .ok_or_else(|| {
                self.wrong(line, column, "this is not a list of numbers, or one is too large")
            })
    }

    /// A field that is 0 or 1.
    pub(super) fn flag(&self, line: usize, column: &str) -> Result<bool, PackError> {
        self.number(line, column, 1).map(|value| value == 1)
    }
}

/// The line in the file: the header is line 1.
pub(super) fn line_number(line: usize) -> u64 {
    line as u64 + 2
}

/// A decimal number, or a hexadecimal one with `0x`.
pub(super) fn parse(text: &str) -> Option<u64> {
    crate::parse::number::number(text)
}
