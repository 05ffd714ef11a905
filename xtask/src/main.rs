//! `cargo xtask`: see the library.

use clap::Parser;
use std::process::ExitCode;
use xtask::{cli, tool};

fn main() -> ExitCode {
    match cli::Arguments::try_parse() {
        Ok(arguments) => tool::run(&arguments.options, &arguments.command),
        Err(told) => tool::tell(&told),
    }
}
