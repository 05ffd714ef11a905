//! What can be wrong with a request about events.

use events::encode::EncodeError;
use events::hybrid::MixedCores;
use events::pack::PackError;
use events::parse::ParseError;
use events::register::ReservedBits;
use events::tables::NoCore;
use std::path::PathBuf;
use thiserror::Error;

/// What is wrong.
#[derive(Debug, Error)]
pub enum EventsError {
    /// No table and no model has this name.
    #[error("there is no event table {name:?}{}; `events --cpus` lists them all", meant(.nearest))]
    UnknownName {
        /// As typed.
        name: String,
        /// What it may have meant.
        nearest: Vec<String>,
    },
    /// No table is for this family and model.
    #[error("there is no event table for {asked}{}; `events --cpus` lists them all", near(.nearest))]
    UnknownNumber {
        /// As typed.
        asked: String,
        /// Models of that family nearby.
        nearest: Vec<String>,
    },
    /// Several tables are for this family and model.
    #[error("{asked} is ambiguous; name one of its tables: {}", .tables.join(", "))]
    Ambiguous {
        /// As typed.
        asked: String,
        /// The tables, and what tells them apart.
        tables: Vec<String>,
    },
    /// The processor is known, but has no table.
    #[error("{0}")]
    NoCore(#[from] NoCore),
    /// This machine's own processor cannot be identified.
    #[error(
        "name a processor with --cpu: this machine's is of a maker whose PMUs are not described ({0})"
    )]
    ForeignHost(String),
    /// A user's file does not say for which processor it is, and nothing else does.
    #[error(
        "--event-file {}: name the processor of its events: --event-file CPU={}",
        .0.display(),
        .0.display()
    )]
    NeedsCpu(PathBuf),
    /// A user's file cannot be read.
    #[error("cannot read the events in {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// A user's file is not a JSON, or JSON of another form; the reason names line and column.
    #[error("{}: {error}", path.display())]
    Pack {
        /// The file.
        path: PathBuf,
        /// What and where.
        error: PackError,
    },
    /// A user's file has not one event that can be taken.
    #[error("{}: no event of it can be taken{}", path.display(), lines(.refused))]
    NothingTaken {
        /// The file.
        path: PathBuf,
        /// Why not: the first ones.
        refused: Vec<String>,
    },
    /// The merged tables do not pack.
    #[error("the event tables cannot be put together: {0}")]
    Merge(PackError),
    /// A text that is neither part of a name nor an event.
    #[error("no event's name contains {pattern:?}, and it is not an event: {error}")]
    Syntax {
        /// As typed.
        pattern: String,
        /// The reason.
        error: ParseError,
    },
    /// A text that is not a list of events.
    #[error("{text:?} is not a list of events: {error}")]
    List {
        /// As typed, wild cards replaced.
        text: String,
        /// The reason.
        error: ParseError,
    },
    /// A list for different cores.
    #[error("{0}")]
    Mixed(#[from] MixedCores),
    /// An event that the processor cannot count.
    #[error("{0}")]
    Refused(#[from] EncodeError),
    /// A value that no event select register holds.
    #[error("--decode: {0}")]
    Reserved(#[from] ReservedBits),
    /// Nothing fits.
    #[error("no {what} of {cpu} fits {pattern:?}")]
    Nothing {
        /// What is looked for.
        what: &'static str,
        /// The table.
        cpu: String,
        /// As typed.
        pattern: String,
    },
}

fn lines(reasons: &[String]) -> String {
    reasons.iter().map(|reason| format!("\n  {reason}")).collect()
}

fn meant(nearest: &[String]) -> String {
    if nearest.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", nearest.join(", "))
    }
}

fn near(nearest: &[String]) -> String {
    if nearest.is_empty() {
        String::new()
    } else {
        format!("; the nearest are {}", nearest.join(", "))
    }
}
