//! What may be missing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The distribution's files are not available: another distribution, no package lists, no connection.
#[derive(Debug, Error)]
pub enum StockError {
    /// A package is not known here.
    #[error("no package source here has {0}")]
    NoPackage(String),
    /// A program that is needed failed.
    #[error("{program}: {reason}")]
    Program {
        /// The program.
        program: String,
        /// What it said, or why it did not start.
        reason: String,
    },
    /// Fewer packages came than were requested.
    #[error("apt-get left {files} files for {packages}")]
    Few {
        /// Files that came.
        files: usize,
        /// Packages that were requested.
        packages: String,
    },
    /// A package does not have what it should.
    #[error("no file {path} in {packages}")]
    NoFile {
        /// The file.
        path: String,
        /// Where it was looked for.
        packages: String,
    },
    /// Shared libraries that no package has, each with a file that needs it.
    #[error("no package of those that {package} depends on has {missing:?}")]
    NoLibrary {
        /// The program's package.
        package: &'static str,
        /// The libraries.
        missing: BTreeMap<String, PathBuf>,
    },
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        error: io::Error,
    },
    /// A program's file is none.
    #[error("{}: {error}", path.display())]
    NoProgram {
        /// The file.
        path: PathBuf,
        /// Why.
        error: elf::ParseError,
    },
}

impl StockError {
    /// For a file of which the system says why it does not go.
    pub(super) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::File { path: path.to_path_buf(), error }
    }
}
