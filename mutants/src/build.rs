//! Builds a package's tests, and reads what the compiler has against it.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Programs of tests, each with its package's folder, or what is wrong.
pub enum Built {
    Programs(Vec<(PathBuf, PathBuf)>),
    Errors(Vec<Error>),
}

/// One message of the compiler.
#[derive(Debug)]
pub struct Error {
    pub code: String,
    pub text: String,
    /// Files and bytes that it names: the first ones are where it is.
    pub places: Vec<Place>,
}

/// A place that a message names.
#[derive(Clone, Debug)]
pub struct Place {
    pub file: String,
    pub bytes: Range<usize>,
    /// Where the error is; else only what led to it.
    pub primary: bool,
}

#[derive(Deserialize)]
struct Line {
    reason: String,
    message: Option<Message>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Message {
    level: String,
    message: String,
    code: Option<Code>,
    spans: Vec<MessageSpan>,
}

#[derive(Deserialize)]
struct Code {
    code: String,
}

#[derive(Deserialize)]
struct MessageSpan {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: MessageSpan,
}

impl MessageSpan {
    /// It, and the macro calls that it came out of.
    fn places(&self) -> Vec<Place> {
        let place = Place {
            file: self.file_name.clone(),
            bytes: self.byte_start..self.byte_end,
            primary: self.is_primary,
        };
        let outer = self.expansion.iter().flat_map(|expansion| expansion.span.places());
        let primary = self.is_primary;
        std::iter::once(place).chain(outer.map(|place| Place { primary, ..place })).collect()
    }
}

/// Builds the unit tests of `packages` in `copy`.
pub fn build(copy: &Path, packages: &[&str]) -> Result<Built> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--no-run", "--lib", "--no-fail-fast", "--profile", "mutants"]);
    command.args(packages.iter().flat_map(|package| ["--package", package]));
    command.arg("--message-format=json").current_dir(copy);
    // What a mutant leaves unused is not an error.
    command.env("RUSTFLAGS", "--cap-lints=allow").env("CARGO_TARGET_DIR", copy.join("target"));
    command.env_remove("CARGO_MANIFEST_DIR").stderr(Stdio::piped());
    let output = command.output().context("cargo cannot be run")?;
    let mut errors = Vec::new();
    let mut programs = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        match (line.reason.as_str(), line.message, line.executable) {
            ("compiler-artifact", _, Some(executable)) => {
                let manifest = line.manifest_path.context("an artifact without a manifest")?;
                programs.push((executable, manifest.parent().unwrap_or(copy).to_path_buf()));
            }
            ("compiler-message", Some(message), _) if message.level == "error" => {
                let places = message.spans.iter().flat_map(MessageSpan::places).collect();
                let code = message.code.map_or_else(String::new, |code| code.code);
                errors.push(Error { code, text: message.message, places });
            }
            _ => {}
        }
    }
    if output.status.success() {
        return Ok(Built::Programs(programs));
    }
    if errors.is_empty() {
        bail!("cargo: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(Built::Errors(errors))
}
