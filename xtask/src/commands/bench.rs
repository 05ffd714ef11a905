//! `bench`: the project's own figures.

use super::run::prepare;
use crate::bench::{measure, render};
use crate::cli::{self, Boot};
use crate::setup::{self, Need};
use crate::{Result, interrupt, output};

/// Runs the command.
///
/// # Errors
/// What could not be measured.
pub fn run(arguments: &cli::Bench) -> Result<u8> {
    if let Some(path) = &arguments.json {
        output::check(path)?;
    }
    // Machines and their folders are gone before a signal ends this.
    let _deferred = interrupt::defer();
    let tree = prepare(&[Boot::Direct, Boot::Bios, Boot::Uefi])?;
    setup::ensure(&[Need::QemuForPmu], tree.toolchain())?;
    let figures = measure(&tree, arguments.boots, &arguments.only, arguments.brief)?;
    output::print(&render(&figures))?;
    if arguments.brief {
        output::say("note: each counting job ran small and once; the ratios are meaningless");
    }
    let json = serde_json::to_string_pretty(&figures).expect("figures serialise") + "\n";
    match &arguments.json {
        Some(path) => output::write(path, json)?,
        None => output::print(&json)?,
    }
    Ok(0)
}
