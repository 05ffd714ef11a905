//! Planted mistakes that no test notices: what cargo-mutants says of them, held against a list.
//!
//! - [`config`]: the part of `.cargo/mutants.toml` that a run examines.
//! - [`outcomes`]: what cargo-mutants wrote.
//! - [`accepted`]: the survivors that are known, each with its reason (`docs/mutants.toml`).
//! - [`judgement`]: what the run comes to.
//!
//! All of it is pure; `commands/mutants.rs` starts the program.

pub mod accepted;
pub mod config;
pub mod judgement;
pub mod outcomes;

pub use accepted::Accepted;
pub use judgement::Judgement;
pub use outcomes::{Mutant, Outcomes};

use std::path::PathBuf;
use thiserror::Error;

/// cargo-mutants' settings, from the checkout's root.
pub const CONFIG: &str = ".cargo/mutants.toml";
/// The accepted survivors.
pub const ACCEPTED: &str = "docs/mutants.toml";

/// A file of this command that cannot be made use of.
#[derive(Debug, Error)]
pub enum MutantsError {
    /// It is not what it should be.
    #[error("{file}: {reason}")]
    Malformed {
        /// The file.
        file: &'static str,
        /// The parser's message.
        reason: String,
    },
    /// An entry of the list says nothing.
    #[error("{ACCEPTED}: `{mutant}` in {file} has no {field}")]
    Empty {
        /// The entry's file.
        file: String,
        /// The entry's mutant.
        mutant: String,
        /// What is empty.
        field: &'static str,
    },
    /// An entry is there twice.
    #[error("{ACCEPTED}: `{mutant}` in {file}, `{line}`, is listed twice")]
    Twice {
        /// The entry's file.
        file: String,
        /// The entry's mutant.
        mutant: String,
        /// The entry's line.
        line: String,
    },
    /// A path that was requested is not looked at.
    #[error("{} has nothing that {CONFIG} examines: {}", path.display(), globs.join(", "))]
    Outside {
        /// The path.
        path: PathBuf,
        /// What is examined.
        globs: Vec<String>,
    },
    /// The run ended before its end.
    #[error("cargo-mutants tested {done} of {planned} mutants; the others are unknown")]
    Unfinished {
        /// Mutants with an outcome.
        done: usize,
        /// Mutants of the run.
        planned: usize,
    },
}
