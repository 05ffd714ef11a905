//! `bench`: the project's own figures.

use super::run::prepare;
use crate::bench::{measure, render};
use crate::cli::{self, Boot};
use crate::setup::{self, Need};
use crate::{Failure, Result};
use std::fs;

/// Runs the command.
///
/// # Errors
/// What could not be measured.
pub fn run(arguments: &cli::Bench) -> Result<u8> {
    if let Some(path) = &arguments.json {
        fs::write(path, "").map_err(Failure::file("write", path))?;
    }
    let tree = prepare(&[Boot::Direct, Boot::Bios, Boot::Uefi])?;
    setup::ensure(&[Need::QemuForPmu], tree.toolchain())?;
    let figures = measure(&tree, arguments.boots)?;
    anstream::print!("{}", render(&figures));
    let json = serde_json::to_string_pretty(&figures).expect("figures serialise") + "\n";
    match &arguments.json {
        Some(path) => fs::write(path, json).map_err(Failure::file("write", path))?,
        None => anstream::print!("{json}"),
    }
    Ok(0)
}
