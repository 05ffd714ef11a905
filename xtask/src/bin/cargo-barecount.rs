//! `cargo barecount`: the same tool without a checkout. What is booted is in this program.

use std::process::ExitCode;
use xtask::{Failure, cli, parts, tool};

/// Written by the build script; empty unless this is an optimised build.
static PARTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/parts.bin"));

fn main() -> ExitCode {
    if let Err(error) = parts::install(PARTS) {
        return tool::fail(&Failure::Build(error.into()));
    }
    match cli::installed(std::env::args_os()) {
        Ok((options, command)) => tool::run(&options, &cli::Command::User(command)),
        Err(told) => tool::tell(&told),
    }
}
