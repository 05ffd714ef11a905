//! The commands, one file each.

pub mod bench;
pub mod check;
pub mod collect;
pub mod doctor;
pub mod events;
pub mod image;
pub mod run;
pub mod test;

use crate::cli::{Arguments, Command, Output};
use crate::collect::Report;
use crate::plots;
use crate::render::{Context, render};
use crate::samples::{Profile, folded, pprof};
use crate::{Failure, Result};
use std::fs;

/// Runs the command; returns the exit code.
///
/// # Errors
/// Why it ended without a result.
pub fn run(arguments: &Arguments) -> Result<u8> {
    match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Image(arguments) => image::run(arguments),
        Command::Collect(arguments) => collect::run(arguments),
        Command::Events(arguments) => events::run(arguments),
        Command::Test(arguments) => test::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Check => check::run(),
        Command::Doctor(arguments) => doctor::run(arguments),
    }
}

/// Makes sure that the report can be written, before anything is booted for it.
fn check_output(output: &Output) -> Result<()> {
    let paths = [&output.out, &output.samples_folded, &output.samples_pprof];
    for path in paths.into_iter().flatten() {
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        file.map_err(Failure::file("write", path))?;
    }
    if let Some(folder) = &output.plots {
        fs::create_dir_all(folder).map_err(Failure::file("create", folder))?;
    }
    Ok(())
}

/// Writes the report where the arguments want it; returns the exit code.
fn deliver(report: &Report, context: &Context, output: &Output) -> Result<u8> {
    let text = render(report, context, output.format);
    if output.samples_folded.is_some() || output.samples_pprof.is_some() {
        let profiles = Profile::of(report, &context.resolver(report));
        if let Some(path) = &output.samples_folded {
            fs::write(path, folded::write(&profiles)).map_err(Failure::file("write", path))?;
        }
        if let Some(path) = &output.samples_pprof {
            let written = pprof::write(&profiles).and_then(|bytes| fs::write(path, bytes));
            written.map_err(Failure::file("write", path))?;
        }
    }
    if let Some(folder) = &output.plots {
        for history in report.histories() {
            let path = folder.join(format!("history-{}.svg", history.item));
            let written = plots::history(history).svg().map_err(std::io::Error::other);
            let written = written.and_then(|text| fs::write(&path, text));
            written.map_err(Failure::file("write", &path))?;
        }
    }
    match &output.out {
        Some(path) => {
            let plain = anstream::adapter::strip_str(&text).to_string();
            fs::write(path, plain).map_err(Failure::file("write", path))?;
        }
        None => anstream::print!("{text}"),
    }
    Ok(if context.complaint.is_some() { 3 } else { report.exit_code() })
}
