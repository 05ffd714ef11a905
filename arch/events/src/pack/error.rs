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
    #[error("{file}: the event {name:?} is there twice")]
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
    #[error("{count} {what}: the layout has room for {most}")]
    TooMany { what: &'static str, count: usize, most: usize },
    /// A user's events that are no JSON, or not perfmon's.
    #[error("the events are not in perfmon's form: {0}")]
    Json(#[from] serde_json::Error),
    /// A field of a user's event that is not understood.
    #[error("event {index} ({name}): {field} is {value:?}: {why}")]
    JsonField { index: usize, name: String, field: &'static str, value: String, why: &'static str },
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
