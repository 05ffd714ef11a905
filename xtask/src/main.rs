//! `cargo xtask`: see the library.

use clap::Parser;
use std::process::ExitCode;
use xtask::{cli, commands};

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    arguments.color.apply();
    match commands::run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.exit_code())
        }
    }
}
