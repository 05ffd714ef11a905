//! A program from its arguments to its exit code, and the name that it is called by.

use crate::cli::{Command, Options};
use crate::{Failure, commands, interrupt, output, parts, setup};
use std::borrow::Cow;
use std::io::ErrorKind;
use std::process::ExitCode;

/// What is typed in a checkout.
pub const IN_CHECKOUT: &str = "cargo xtask";
/// What is typed elsewhere.
pub const INSTALLED: &str = "cargo barecount";

/// What the user types to call this program.
#[must_use]
pub fn called() -> &'static str {
    if parts::installed().is_some() { INSTALLED } else { IN_CHECKOUT }
}

/// A text that names command lines, in the words of this program.
#[must_use]
pub fn worded(text: &str) -> Cow<'_, str> {
    match called() {
        IN_CHECKOUT => Cow::Borrowed(text),
        called => Cow::Owned(text.replace(IN_CHECKOUT, called)),
    }
}

/// Runs the command.
pub fn run(options: &Options, command: &Command) -> ExitCode {
    options.color.apply();
    if let Err(error) = interrupt::watch() {
        output::say(&format!("signals end this at once and leave temporary files: {error}"));
    }
    if let Some(program) = &options.qemu {
        setup::qemu::choose(program.clone());
    }
    match commands::run(command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => fail(&failure),
    }
}

/// Prints the help that was requested, or what is wrong with the arguments.
pub fn tell(told: &clap::Error) -> ExitCode {
    match told.print() {
        Err(error) if !told.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
            fail(&Failure::Output(error))
        }
        _ => ExitCode::from(told.exit_code() as u8),
    }
}

/// Prints why there is no result.
pub fn fail(failure: &Failure) -> ExitCode {
    failure.print();
    ExitCode::from(failure.exit_code())
}
