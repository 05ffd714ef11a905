//! `cargo xtask`: see the library.

use clap::Parser;
use std::process::ExitCode;
use xtask::{cli, commands, setup};

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    arguments.color.apply();
    if let Some(program) = &arguments.qemu {
        setup::qemu::choose(program.clone());
    }
    match commands::run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.exit_code())
        }
    }
}
