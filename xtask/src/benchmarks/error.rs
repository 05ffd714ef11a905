//! What can be wrong with registered benchmarks and with what they are built from.

use std::path::PathBuf;
use thiserror::Error;

/// Why there are no benchmarks to measure.
#[derive(Debug, Error)]
pub enum BenchmarkError {
    /// The folder is not a package.
    #[error("--crate {}: there is no Cargo.toml", .0.display())]
    NoManifest(PathBuf),
    /// cargo does not take the package.
    #[error("--crate {}: cargo refuses it:\n{said}", path.display())]
    Refused {
        /// The package.
        path: PathBuf,
        /// cargo's messages.
        said: String,
    },
    /// It is a workspace alone.
    #[error("--crate {}: it is a workspace and no package itself; name one of {}", path.display(), members.join(", "))]
    Workspace {
        /// The folder.
        path: PathBuf,
        /// Folders of its packages.
        members: Vec<String>,
    },
    /// No program of it holds benchmarks.
    #[error("--crate {}: {why}", path.display())]
    NoTarget {
        /// The package.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A program does not build.
    #[error("--crate {}: the bench target `{target}` does not build:\n{said}{hint}", path.display())]
    Build {
        /// The package.
        path: PathBuf,
        /// The program.
        target: String,
        /// cargo's messages.
        said: String,
        /// What they may mean, beginning with a line end.
        hint: String,
    },
    /// A linked program cannot be read.
    #[error("{program}: it is not a readable program: {why}")]
    Program {
        /// The program.
        program: String,
        /// The reason.
        why: String,
    },
    /// A program registers nothing.
    #[error(
        "{0}: it registers no benchmark, as `barecount::bench!` does in Rust and BARECOUNT_BENCH of barecount.h in C; \
         --object with --function NAME measures any function"
    )]
    Nothing(String),
    /// An entry is none.
    #[error("{program}: entry {index} of the section `barecount` {why}")]
    Entry {
        /// The program.
        program: String,
        /// Its place in the section.
        index: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Two benchmarks could not be distinguished.
    #[error("{program}: two benchmarks are called `{name}`")]
    Twice {
        /// The program.
        program: String,
        /// Their name.
        name: String,
    },
    /// A filter leaves none.
    #[error("--bench {filter}: no benchmark's name contains it; there are: {}", names.join(", "))]
    NoMatch {
        /// The filter.
        filter: String,
        /// The names.
        names: Vec<String>,
    },
    /// A new package would overwrite something.
    #[error("new {}: {why}", path.display())]
    New {
        /// The folder.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}
