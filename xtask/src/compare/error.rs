//! What keeps two reports from being compared.

use crate::tool;
use std::path::PathBuf;
use thiserror::Error;

/// What keeps two reports from being compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// A file is not a report that can be compared.
    #[error("{file}: {reason}")]
    Report {
        /// The file.
        file: String,
        /// Why not.
        reason: ReportError,
    },
    /// There is no baseline of that name.
    #[error("there is no baseline or file `{name}`; {}", offer(.near.as_deref(), .known))]
    UnknownBaseline {
        /// The name.
        name: String,
        /// The one that is most like it.
        near: Option<String>,
        /// All of them.
        known: Vec<String>,
    },
    /// A limits file is wrong.
    #[error("{file}: {message}")]
    Limits {
        /// The file.
        file: String,
        /// What and where.
        message: String,
    },
    /// The reports have no item of one name and kind.
    #[error("{old} and {new} have no item in common: {} there, {} here", names(.old_items), names(.new_items))]
    NothingInCommon {
        /// The old report.
        old: String,
        /// The new one.
        new: String,
        /// Its items.
        old_items: Vec<String>,
        /// Likewise.
        new_items: Vec<String>,
    },
    /// Items are in both reports, but no figure of theirs can be compared.
    #[error("{old} and {new} have items in common, but nothing of them can be compared: {reason}")]
    NothingComparable {
        /// The old report.
        old: String,
        /// The new one.
        new: String,
        /// Why not, of the first figure.
        reason: String,
    },
}

/// Why a file is not a report that can be compared.
#[derive(Debug, Error)]
pub enum ReportError {
    /// It is not JSON, or was cut.
    #[error("it is not a complete JSON document: {0}")]
    Json(serde_json::Error),
    /// It is a serial line's log.
    #[error(
        "it is the log of a serial line; `{} collect --serial FILE --format json` makes a report of it",
        tool::called()
    )]
    Log,
    /// It is JSON, but nothing that a report is.
    #[error("it is JSON, but no report of `--format json`: {0}")]
    Document(String),
    /// A record is not what this version knows.
    #[error("record {index} ({kind}) cannot be read by this version of barecount: {error}")]
    Record {
        /// Its place.
        index: usize,
        /// Its `type`.
        kind: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// It was written by a later version.
    #[error("the {what} has version {found}; this barecount knows up to {known}")]
    Newer {
        /// `report`, or the firmware's `protocol`.
        what: &'static str,
        /// Its version.
        found: u64,
        /// The newest one known.
        known: u64,
    },
    /// Its run did not end.
    #[error("its run did not finish (exit code {code}): {why}")]
    NotWhole {
        /// The run's exit code.
        code: u8,
        /// What the report says of it.
        why: String,
    },
}

/// Names that a message lists at most.
const LISTED: usize = 8;

fn offer(near: Option<&str>, known: &[String]) -> String {
    match (near, known) {
        (_, []) => "`run --save-baseline NAME` saves one".to_string(),
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, known) => format!("there are: {}", names(known)),
    }
}

fn names(all: &[String]) -> String {
    let listed: Vec<String> = all.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    let more = all.len().saturating_sub(LISTED);
    match (&listed[..], more) {
        ([], _) => "none".to_string(),
        (_, 0) => listed.join(", "),
        _ => format!("{} and {more} more", listed.join(", ")),
    }
}
