//! cargo-mutants, of one version: another plants other mistakes, and `docs/mutants.toml` is of this one's.

use super::toolchain::cargo;
use super::{SetupError, Status};
use crate::build::{root, target};
use crate::process::{find, said, stdout_of};
use std::path::PathBuf;
use std::process::Command;

/// The version.
pub const VERSION: &str = "27.1.0";

/// Where it is put: below the build folder, so that a user's own of another version stays.
fn tools() -> Result<PathBuf, SetupError> {
    Ok(target(root()?).join("tools"))
}

/// What to type to have it.
pub(super) fn hint() -> String {
    format!(
        "`mutants` installs it. Else type: cargo install cargo-mutants --version {VERSION} --locked"
    )
}

/// The program: ours, or one of the search path.
///
/// # Errors
/// Neither is of the version, and which were found.
pub fn program() -> Result<PathBuf, String> {
    let own = tools().map(|tools| tools.join("bin/cargo-mutants")).ok().and_then(find);
    let mut others = Vec::new();
    for program in own.into_iter().chain(find("cargo-mutants")) {
        let answer = stdout_of(Command::new(&program).args(["mutants", "--version"]));
        match answer.as_deref().and_then(version) {
            Some(VERSION) => return Ok(program),
            Some(other) => others.push(format!("{} is {other}", program.display())),
            None => others.push(format!("{} does not state its version", program.display())),
        }
    }
    if others.is_empty() {
        others.push("no cargo-mutants in the search path".to_string());
    }
    Err(others.join("; "))
}

/// The version in `cargo-mutants 27.1.0`.
fn version(answer: &str) -> Option<&str> {
    answer.strip_prefix("cargo-mutants ")?.split_whitespace().next()
}

pub(super) fn status() -> Status {
    match program() {
        Ok(program) => Status::Present(format!("{VERSION}, {}", program.display())),
        Err(why) => Status::Missing { why },
    }
}

/// Builds it, which takes some minutes.
pub(super) fn install() -> Result<(), String> {
    let tools = tools().map_err(|error| error.to_string())?;
    let mut command = Command::new(cargo());
    command.args(["install", "cargo-mutants", "--version", VERSION, "--locked", "--root"]);
    command.arg(&tools).arg("--target-dir").arg(tools.join("build"));
    // This program was started by cargo for a toolchain and a profile of its own.
    command.env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS");
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(format!("cargo cannot be run: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_programs_answer_is_read() {
        assert_eq!(version("cargo-mutants 27.1.0"), Some("27.1.0"));
        assert_eq!(version("cargo-mutants 26.0.0-pre (abc)"), Some("26.0.0-pre"));
        assert_eq!(version("mutants"), None);
    }
}
