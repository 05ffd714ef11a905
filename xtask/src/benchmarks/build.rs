//! Building benchmarks for the bare machine.
//!
//! For `x86_64-unknown-linux-gnu` without its standard library, and not for `x86_64-unknown-none`: that target computes
//! floating point in software and keeps no red zone, so its code is not what users run. The `core` and `alloc` of Linux come
//! with every toolchain, so there is nothing to build or to install, and nothing unstable. The linker is the toolchain's own.

use super::BenchmarkError;
use super::package::Package;
use crate::process::said;
use crate::progress;
use crate::setup::toolchain::cargo;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What the code is compiled for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Where the program is linked to, which nothing else uses on the bare machine.
const LINKED_AT: u64 = 0x1000_0000;

/// A line of cargo's messages: The Cargo Book, "External tools".
#[derive(Deserialize)]
struct Line {
    reason: String,
    #[serde(default)]
    executable: Option<PathBuf>,
}

/// Builds a bench target of the package; returns the linked program.
///
/// # Errors
/// cargo's messages.
pub fn build(package: &Package, target: &str) -> Result<PathBuf, BenchmarkError> {
    let failed = |said: String| BenchmarkError::Build {
        path: package.path.clone(),
        target: target.to_string(),
        hint: hint(&said),
        said,
    };
    let mut command = command(package, target);
    let message = format!("building the bench target {target}");
    let output =
        progress::output(&mut command, &message).map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(without_command_line(&String::from_utf8_lossy(&output.stderr))));
    }
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let artifacts = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    let programs = artifacts.filter(|line| line.reason == "compiler-artifact");
    programs.filter_map(|line| line.executable).next_back().ok_or_else(|| failed(said(&output)))
}

fn command(package: &Package, target: &str) -> Command {
    let mut command = Command::new(cargo());
    command.args(["rustc", "--profile", "bench", "--bench", target, "--target", TARGET]);
    command.args(["--message-format", "json-render-diagnostics", "--manifest-path"]);
    // A folder of its own, because the crate `barecount` is another one here than in the user's tests.
    command.arg(&package.manifest).arg("--target-dir").arg(package.target_folder.join("barecount"));
    if let Some(folder) = package.manifest.parent() {
        command.current_dir(folder);
    }
    command.arg("--");
    // Nothing unwinds where there is no operating system.
    command.args(["-Cpanic=abort", "-Clinker=rust-lld", "-Clinker-flavor=ld.lld"]);
    // At a fixed address; what nothing but its own section's borders refers to is registered, so it stays.
    for option in ["-no-pie", "-static", "-znostart-stop-gc"] {
        command.arg(format!("-Clink-arg={option}"));
    }
    command.arg(format!("-Clink-arg=--image-base={LINKED_AT:#x}"));
    command.env("BARECOUNT_BARE", "1");
    // The code is that of the user's own profile; these two do not change it. Names of functions are needed, and lines.
    command.env("CARGO_PROFILE_BENCH_STRIP", "none");
    command.env("CARGO_PROFILE_BENCH_DEBUG", "line-tables-only");
    // It would split the code into other units, and so change what is inlined.
    command.env("CARGO_INCREMENTAL", "0");
    command.stdin(Stdio::null());
    command
}

/// A linker's complaint stands after its whole command line, which says nothing to the user.
fn without_command_line(said: &str) -> String {
    let is_call = |line: &&str| line.trim_start().starts_with("= note:  \"rust-lld\"");
    let lines: Vec<&str> = said.lines().filter(|line| !is_call(line)).collect();
    lines.join("\n").trim().to_string()
}

/// What cargo's messages mean here.
fn hint(said: &str) -> String {
    let undefined: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once("error: undefined symbol: "))
        .map(|(_, symbol)| symbol.trim())
        .collect();
    let text = if said.contains("lang item") && said.contains("panic_impl") {
        "a dependency uses the standard library, and the bare machine has none: take its `no_std` form, \
         often by default-features = false"
            .to_string()
    } else if undefined.contains(&"__start_barecount") {
        // The linker makes that name where there is such a section.
        "it registers no benchmark; `barecount::bench!` does".to_string()
    } else if !undefined.is_empty() {
        format!(
            "nothing on the bare machine provides {}: there is no C library and no operating system",
            undefined.join(", ")
        )
    } else if said.contains("no global memory allocator") {
        "declare a heap with `#[global_allocator] static HEAP: barecount::Arena<{ 1 << 20 }> = barecount::Arena::new();`, \
         or take barecount with default-features = false"
            .to_string()
    } else if said.contains("can't find crate for `core`") {
        format!("type: rustup target add {TARGET}")
    } else {
        return String::new();
    };
    format!("\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_says_is_explained_where_it_is_about_the_bare_machine() {
        for (said, expected) in [
            ("error[E0152]: duplicate lang item in crate `std`: `panic_impl`", "default-features"),
            (
                "rust-lld: error: undefined symbol: getpid\nrust-lld: error: undefined symbol: malloc",
                "provides getpid, malloc",
            ),
            ("rust-lld: error: undefined symbol: __start_barecount", "registers no benchmark"),
            ("error: no global memory allocator found", "global_allocator"),
            ("error[E0463]: can't find crate for `core`", "rustup target add"),
        ] {
            assert!(hint(said).contains(expected), "{}", hint(said));
        }
        assert_eq!(hint("error: expected `;`"), "");
    }

    #[test]
    fn the_linkers_command_line_is_left_out() {
        let said =
            "error: linking failed\n  = note:  \"rust-lld\" \"-flavor\"\n  = note: undefined";
        assert_eq!(without_command_line(said), "error: linking failed\n  = note: undefined");
    }
}
