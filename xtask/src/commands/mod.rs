//! The commands, one file each.

pub mod bench;
pub mod check;
pub mod collect;
pub mod compare;
pub mod completions;
pub mod doctor;
pub mod events;
pub mod image;
pub mod instructions;
pub mod lab;
pub mod licences;
pub mod man;
pub mod mutants;
pub mod new;
pub mod package;
pub mod replay;
pub mod report;
pub mod run;
pub mod schema;
pub mod test;
pub mod vm;

use crate::cli::{Command, Output, Project, User};
use crate::collect::Report;
use crate::context::Context;
use crate::render::render;
use crate::samples::{Profile, folded, pprof};
use crate::{Failure, Result, exit_code, output, plots};
use std::fs;
use std::path::Path;

/// Runs the command; returns the exit code.
///
/// # Errors
/// Why it ended without a result.
pub fn run(command: &Command) -> Result<u8> {
    match command {
        Command::User(command) => for_user(command),
        Command::Project(command) => for_project(command),
    }
}

fn for_user(command: &User) -> Result<u8> {
    match command {
        User::Run(arguments) => run::run(arguments),
        User::New(arguments) => new::run(arguments),
        User::Vm(arguments) => vm::run(arguments),
        User::Image(arguments) => image::run(arguments),
        User::Collect(arguments) => collect::run(arguments),
        User::Lab(arguments) => lab::run(arguments),
        User::Compare(arguments) => compare::run(arguments),
        User::Replay(arguments) => replay::run(arguments),
        User::Report(arguments) => report::run(arguments),
        User::Instructions(arguments) => instructions::run(arguments),
        User::Events(arguments) => events::run(arguments),
        User::Schema(arguments) => schema::run(arguments),
        User::Completions(arguments) => completions::run(arguments),
        User::Man(arguments) => man::run(arguments),
        User::Licences => licences::run(),
        User::Doctor(arguments) => doctor::run(arguments),
    }
}

fn for_project(command: &Project) -> Result<u8> {
    match command {
        Project::Test(arguments) => test::run(arguments),
        Project::Bench(arguments) => bench::run(arguments),
        Project::Mutants(arguments) => mutants::run(arguments),
        Project::Package(arguments) => package::run(arguments),
        Project::Check => check::run(),
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

/// Writes `text` to the file, or prints it.
fn write_text(out: Option<&Path>, text: &str) -> Result<u8> {
    match out {
        Some(path) => output::write(path, text)?,
        None => output::print(text)?,
    }
    Ok(0)
}

/// Writes the report where the arguments want it; returns the exit code.
fn deliver(report: &Report, context: &Context, wanted: &Output) -> Result<u8> {
    deliver_text(report, context, wanted, &render(report, context, wanted.format))
}

/// As [`deliver`], with `text` for the report itself.
fn deliver_text(report: &Report, context: &Context, wanted: &Output, text: &str) -> Result<u8> {
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
            let plain = anstream::adapter::strip_str(text).to_string();
            output::write(path, plain)?;
        }
        None => output::print(text)?,
    }
    Ok(exit_code::of(context, report))
}
