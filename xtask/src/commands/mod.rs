//! The commands, one file each.

pub mod bench;
pub mod check;
pub mod collect;
pub mod doctor;
pub mod events;
pub mod image;
pub mod run;
pub mod test;
pub mod vm;

use crate::cli::{Arguments, Command, Output};
use crate::collect::Report;
use crate::plots;
use crate::render::{Context, render};
use crate::samples::{Profile, folded, pprof};
use crate::{Failure, Result, output};
use std::fs;
use std::path::Path;

/// Runs the command; returns the exit code.
///
/// # Errors
/// Why it ended without a result.
pub fn run(arguments: &Arguments) -> Result<u8> {
    match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Vm(arguments) => vm::run(arguments),
        Command::Image(arguments) => image::run(arguments),
        Command::Collect(arguments) => collect::run(arguments),
        Command::Events(arguments) => events::run(arguments),
        Command::Test(arguments) => test::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Check => check::run(),
        Command::Doctor(arguments) => doctor::run(arguments),
    }
}

/// Makes sure that the report can be written and overwrites none of `inputs`, before anything is booted for it.
fn check_output(wanted: &Output, inputs: &[&Path]) -> Result<()> {
    let paths = wanted.files();
    output::distinct(&paths, inputs)?;
    paths.iter().try_for_each(|path| output::check(path))?;
    if let Some(folder) = &wanted.plots {
        fs::create_dir_all(folder).map_err(Failure::file("create", folder))?;
    }
    Ok(())
}

/// Writes the report where the arguments want it; returns the exit code.
fn deliver(report: &Report, context: &Context, wanted: &Output) -> Result<u8> {
    let text = render(report, context, wanted.format);
    if wanted.samples_folded.is_some() || wanted.samples_pprof.is_some() {
        let profiles = Profile::of(report, &context.resolver(report));
        if let Some(path) = &wanted.samples_folded {
            output::write(path, folded::write(&profiles))?;
        }
        if let Some(path) = &wanted.samples_pprof {
            let bytes = pprof::write(&profiles).map_err(Failure::file("write", path))?;
            output::write(path, bytes)?;
        }
    }
    if let Some(folder) = &wanted.plots {
        for history in report.histories() {
            let path = folder.join(format!("history-{}.svg", history.item));
            let text = plots::history(history).svg().map_err(std::io::Error::other);
            output::write(&path, text.map_err(Failure::file("write", &path))?)?;
        }
    }
    match &wanted.out {
        Some(path) => {
            let plain = anstream::adapter::strip_str(&text).to_string();
            output::write(path, plain)?;
        }
        None => output::print(&text)?,
    }
    Ok(context.exit_code(report))
}
