//! Why a part cannot be used.

use super::extract::VARIABLE;
use std::path::PathBuf;
use thiserror::Error;

/// Why a part cannot be used.
#[derive(Debug, Error)]
pub enum PartsError {
    /// The program was built without them.
    #[error(
        "this program was built without its firmware, which only optimised builds carry. Type, in the checkout: cargo \
         install --locked --path xtask"
    )]
    Absent,
    /// The program's own file is not as it was built.
    #[error("this program's file is damaged ({what} cannot be read): install it again")]
    Damaged {
        /// What was to be read.
        what: &'static str,
    },
    /// There is no home.
    #[error(
        "there is no folder for this program's files (no HOME, and {VARIABLE} is not set). Set {VARIABLE} to a folder of \
         your own: it takes 15 MB"
    )]
    NoHome,
    /// The cache takes no files.
    #[error("cannot write {}: {error}. Set {VARIABLE} to another folder: it takes 15 MB", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        error: std::io::Error,
    },
    /// Something is only in a checkout.
    #[error("{what} needs a checkout: run it there as `cargo xtask`")]
    OnlyInCheckout {
        /// What was requested.
        what: &'static str,
    },
}
