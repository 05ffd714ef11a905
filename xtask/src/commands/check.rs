//! `check`: what can be said of the source without running it: format, lints, documentation, licences, and the
//! guide: its links, its summary, its table of rows. And what Miri says of the PMI handler's tables.

mod book;
mod licences;
mod miri;
mod rows;

use crate::build::Tree;
use crate::output::say_styled;
use crate::primitives::style::{ERROR, GOOD, WARNING, paint};
use crate::process::said;
use crate::progress::Work;
use crate::setup::toolchain::cargo;
use crate::setup::{self, Need, Toolchain};
use crate::text::printable_lines;
use crate::{Failure, Result};
use std::process::{Command, Stdio};
use std::time::Duration;

/// One check: its name, and how it is made.
struct Check {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Target of what is built without the standard library; else the host's.
    target: Option<&'static str>,
    environment: &'static [(&'static str, &'static str)],
    /// Component whose absence is not a failure.
    component: Option<&'static str>,
}

const BARE_METAL: &str = "x86_64-unknown-none";
const UEFI: &str = "x86_64-unknown-uefi";

/// libFuzzer is C++, which there may be no compiler for, and nothing is linked.
const WITHOUT_LIBFUZZER: (&str, &str) = ("CUSTOM_LIBFUZZER_PATH", "/dev/null");

const CHECKS: [Check; 15] = [
    Check {
        name: "format",
        arguments: &["fmt", "--all", "--check"],
        target: None,
        environment: &[],
        component: Some("rustfmt"),
    },
    Check {
        name: "lints, host",
        arguments: &["clippy", "--quiet", "--all-targets", "--", "-D", "warnings"],
        target: None,
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, kernel",
        arguments: &["clippy", "--quiet", "-p", "kernel", "--features", "firmware"],
        target: Some(BARE_METAL),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, BIOS loader",
        arguments: &["clippy", "--quiet", "-p", "bios", "--features", "loader"],
        target: Some(BARE_METAL),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, loader and guests",
        arguments: &[
            "clippy",
            "--quiet",
            "-p",
            "direct",
            "-p",
            "hello",
            "-p",
            "linux-init",
            "-p",
            "linux-known",
            "-p",
            "pmu-guest",
        ],
        target: Some(BARE_METAL),
        environment: &[],
        component: Some("clippy"),
    },
    // By itself: what it asks of its libraries, the others must not be given.
    Check {
        name: "lints, random programs' guest",
        arguments: &["clippy", "--quiet", "-p", "programs-guest"],
        target: Some(BARE_METAL),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, emulated PMU",
        arguments: &["clippy", "--quiet", "-p", "emulated-pmu", "--features", "payload"],
        target: Some(BARE_METAL),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, UEFI application",
        arguments: &["clippy", "--quiet", "-p", "emulated-pmu-uefi", "--features", "application"],
        target: Some(UEFI),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, the stick's UEFI application",
        arguments: &["clippy", "--quiet", "-p", "stick", "--features", "application"],
        target: Some(UEFI),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, UEFI loader",
        arguments: &["clippy", "--quiet", "-p", "uefi-loader", "--features", "application"],
        target: Some(UEFI),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, UEFI guests",
        arguments: &["clippy", "--quiet", "-p", "five-levels", "-p", "firmware-timer"],
        target: Some(UEFI),
        environment: &[],
        component: Some("clippy"),
    },
    Check {
        name: "lints, image maker",
        arguments: &["clippy", "--quiet", "--all-targets", "-p", "boot", "--", "-D", "warnings"],
        target: None,
        environment: &[("RUSTC_BOOTSTRAP", "1")],
        component: Some("clippy"),
    },
    // Workspaces of their own, which nothing else compiles. Their locks have to fit the crates of this one.
    Check {
        name: "lints, fuzz targets",
        arguments: &[
            "clippy",
            "--quiet",
            "--locked",
            "--no-deps",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--",
            "-D",
            "warnings",
        ],
        target: None,
        environment: &[WITHOUT_LIBFUZZER],
        component: Some("clippy"),
    },
    Check {
        name: "lints, fuzz targets of the event tables",
        arguments: &[
            "clippy",
            "--quiet",
            "--locked",
            "--no-deps",
            "--manifest-path",
            "arch/events/fuzz/Cargo.toml",
            "--",
            "-D",
            "warnings",
        ],
        target: None,
        environment: &[WITHOUT_LIBFUZZER],
        component: Some("clippy"),
    },
    Check {
        name: "documentation",
        arguments: &["doc", "--quiet", "--no-deps"],
        target: None,
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        component: None,
    },
];

/// What a build without the standard library takes, with warnings as errors.
const WITHOUT_STD: [&str; 6] = [
    "--profile=firmware",
    "-Zbuild-std=core,alloc,compiler_builtins",
    "-Zbuild-std-features=compiler-builtins-mem,optimize_for_size",
    "--",
    "-D",
    "warnings",
];

/// Runs the command.
///
/// # Errors
/// A check failed.
pub fn run() -> Result<u8> {
    let toolchain = Toolchain::find()?;
    setup::ensure(Need::build(), &toolchain)?;
    all(&Tree::new(toolchain)?)?;
    Ok(0)
}

/// Makes every check, and tells each result.
///
/// # Errors
/// A check failed; the others were made all the same.
pub fn all(tree: &Tree) -> Result<()> {
    // Miri builds in a folder of its own and uses one processor only, so it runs beside the others.
    let (mut failed, miri) = std::thread::scope(|scope| {
        let miri = scope.spawn(|| miri::check(tree));
        let failed = compiled(tree);
        (failed, miri.join().expect("this thread does not panic"))
    });
    if !tell("Miri", miri) {
        failed.push("Miri");
    }
    if !tell("table of rows", rows::check(tree.root()).map(|()| true)) {
        failed.push("table of rows");
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Tool(format!("checks failed: {}", failed.join(", "))))
}

/// What takes a compiler, licences and the guide. Returns the names of those that failed.
fn compiled(tree: &Tree) -> Vec<&'static str> {
    let mut failed = Vec::new();
    for check in &CHECKS {
        if !tell(check.name, one(check, tree)) {
            failed.push(check.name);
        }
    }
    if !tell("licences", licences::check(tree.root()).map(|()| true)) {
        failed.push("licences");
    }
    if !tell("guide", book::check(tree.root()).map(|()| true)) {
        failed.push("guide");
    }
    if !tell("book", book::build(tree.root(), &tree.target())) {
        failed.push("book");
    }
    failed
}

/// Prints a check's result; `Ok(false)` means that it could not be made.
fn tell(name: &str, result: std::result::Result<bool, String>) -> bool {
    match result {
        Ok(true) => say_styled(&format!("{} {name}", paint(GOOD, "ok     "))),
        Ok(false) => {
            say_styled(&format!("{} {name}: its tool is missing", paint(WARNING, "skipped")));
        }
        Err(said) => {
            let said = printable_lines(&said);
            say_styled(&format!("{} {name}:\n{said}", paint(ERROR, "failed ")));
            return false;
        }
    }
    true
}

fn one(check: &Check, tree: &Tree) -> std::result::Result<bool, String> {
    if let Some(component) = check.component {
        let tool = format!("cargo-{}", if component == "rustfmt" { "fmt" } else { component });
        if crate::process::find(&tool).is_none() {
            return Ok(false);
        }
    }
    let mut command = Command::new(cargo());
    command.current_dir(tree.root()).args(check.arguments).envs(check.environment.iter().copied());
    // The image maker's own folder: see `build/firmware.rs`.
    let is_image_maker = check.arguments.contains(&"boot");
    let target = if is_image_maker { tree.image_maker_target() } else { tree.target() };
    command.env("CARGO_TARGET_DIR", target);
    if let Some(target) = check.target {
        command.args(["--target", target]).args(WITHOUT_STD).env("RUSTC_BOOTSTRAP", "1");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| error.to_string())?;
    let waiter = std::thread::spawn(move || child.wait_with_output());
    let mut work = Work::new(format!("checking {}", check.name));
    while !waiter.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        work.tick(0);
    }
    let output = waiter.join().expect("the waiting thread does not panic");
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(true) } else { Err(said(&output)) }
}
