//! `bench`: the project's own figures.

use crate::Result;
use crate::cli::Bench;

/// Runs the command.
///
/// # Errors
/// What could not be measured.
pub fn run(_: &Bench) -> Result<u8> {
    Ok(0)
}
