//! What can be wrong with the file.

use alloc::string::String;
use thiserror::Error;

/// What is wrong with the file.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum EntryError {
    /// A key that means nothing here.
    #[error("line {line}: `{key}` is none of pmu, hypervisor, efi, linux, device, initrd, options")]
    UnknownKey {
        /// Counted from 1.
        line: usize,
        /// The line's first word.
        key: String,
    },
    /// A key alone.
    #[error("line {line}: `{key}` has no value")]
    NoValue {
        /// Counted from 1.
        line: usize,
        /// The key.
        key: String,
    },
    /// A key that was there before, or its other name.
    #[error("line {line}: `{key}` is given twice")]
    Twice {
        /// Counted from 1.
        line: usize,
        /// The key.
        key: String,
    },
    /// A device that is neither this nor another one.
    #[error("line {line}: `device` is `own` or `other`, not `{value}`")]
    Device {
        /// Counted from 1.
        line: usize,
        /// What it said.
        value: String,
    },
    /// A name that is not a file's.
    #[error("line {line}: `{key}` names `{value}`, which is not a file's path from the root")]
    Path {
        /// Counted from 1.
        line: usize,
        /// The key.
        key: String,
        /// The name.
        value: String,
    },
}
