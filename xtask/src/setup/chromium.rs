//! The browser in which the tests look at HTML reports.

use super::Status;
use crate::process::find;
use std::path::PathBuf;

/// What it is called, by distribution.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The program, if it is there.
#[must_use]
pub fn program() -> Option<PathBuf> {
    NAMES.into_iter().find_map(find)
}

pub(super) fn status() -> Status {
    match program() {
        Some(path) => Status::Present(path.display().to_string()),
        None => Status::Missing { why: format!("no {} in the search path", NAMES.join(", ")) },
    }
}
