//! `cargo xtask`: see the library.

use clap::Parser;
use std::io::ErrorKind;
use std::process::ExitCode;
use xtask::{Failure, cli, commands, interrupt, output, setup};

fn main() -> ExitCode {
    let arguments = match cli::Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => return tell(&told),
    };
    arguments.color.apply();
    if let Err(error) = interrupt::watch() {
        output::say(&format!("signals end this at once and leave files behind: {error}"));
    }
    if let Some(program) = &arguments.qemu {
        setup::qemu::choose(program.clone());
    }
    match commands::run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => fail(&failure),
    }
}

/// Prints the help that was asked for, or what is wrong with the arguments.
fn tell(told: &clap::Error) -> ExitCode {
    match told.print() {
        Err(error) if !told.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            fail(&Failure::Output(error))
        }
        _ => ExitCode::from(told.exit_code() as u8),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    failure.print();
    ExitCode::from(failure.exit_code())
}
