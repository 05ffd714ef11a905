//! What is wrong with the source data, and where.

use thiserror::Error;

/// Data that cannot be packed.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in each message")]
pub enum PackError {
    /// No CSV.
    #[error("{file}: {error}")]
    Csv { file: String, error: csv::Error },
    /// A column is missing.
    #[error("{file}: there is no column {column:?}")]
    NoColumn { file: String, column: String },
    /// A field that is not understood.
    #[error("{file} line {line}: {column} is {value:?}: {why}")]
    Field { file: String, line: u64, column: String, value: String, why: &'static str },
    /// The same name twice in one table.
    #[error("{file}: the event {name:?} is given twice")]
    Twice { file: String, name: String },
    /// A table that is referred to but not there.
    #[error("{file} line {line}: there is no table {table:?}")]
    NoTable { file: String, line: u64, table: String },
    /// An event that is referred to but not there.
    #[error("{file} line {line}: table {table:?} has no event {name:?}")]
    NoEvent { file: String, line: u64, table: String, name: String },
    /// A correction whose reason has gone.
    #[error(transparent)]
    StaleOverride(Box<StaleOverride>),
    /// More than the layout can number.
    #[error("{count} {what}: the file's layout allows {most}")]
    TooMany { what: &'static str, count: usize, most: usize },
    /// A user's events that are not JSON. The reason names line and column.
    #[error("the events are not in perfmon's form: {0}")]
    Json(#[from] serde_json::Error),
    /// A user's events that are JSON of another form.
    #[error("it is not a list of events, and has no list under \"Events\"")]
    NoList,
}

/// An event of a user's file that cannot be taken. The others are.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("event {index}{}: {field} is {value:?}: {why}", in_brackets(.name))]
pub struct RowError {
    /// Its place in the file's list, from 0.
    pub index: usize,
    /// Its name, with nothing in it that could steer a terminal; empty if it has none.
    pub name: String,
    /// The field.
    pub field: &'static str,
    /// What is there.
    pub value: String,
    /// What is wrong with that.
    pub why: String,
}

impl RowError {
    pub(super) fn new(
        index: usize,
        name: &str,
        field: &'static str,
        value: &str,
        why: &str,
    ) -> Self {
        let name = name.escape_debug().to_string();
        Self { index, name, field, value: value.to_string(), why: why.to_string() }
    }
}

fn in_brackets(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

/// A correction finds another value than the one it was written for.
#[derive(Debug, Error)]
#[error(
    "{file} line {line}: {table} {name}: {field} is {found:?}, not {expected:?}, for which the \
     correction was written: look whether it is still needed"
)]
#[allow(missing_docs, reason = "the fields are named in the message")]
pub struct StaleOverride {
    pub file: String,
    pub line: u64,
    pub table: String,
    pub name: String,
    pub field: String,
    pub found: String,
    pub expected: String,
}
