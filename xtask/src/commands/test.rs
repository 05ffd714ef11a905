//! `test`: checks of the source, host tests, then tests in QEMU, through cargo-nextest where it is installed, else cargo test.

use super::run::prepare;
use crate::build::Tree;
use crate::cli::{Boot, Test};
use crate::setup::toolchain::cargo;
use crate::setup::{self, Need, Status, Toolchain};
use crate::{Failure, Result};
use std::process::Command;

/// Crates whose tests run on the host alone.
const HOST: [&str; 23] = [
    "protocol",
    "arch",
    "step",
    "events",
    "recorded",
    "bios",
    "compressed-kernel",
    "disk",
    "pmu-model",
    "handover",
    "plugin-channel",
    "emulated-pmu",
    "emulated-pmu-plugin",
    "emulated-pmu-uefi",
    "stick",
    "uefi-loader",
    "uefi-start",
    "program-format",
    "barecount",
    "facts",
    "kernel",
    "xtask",
    "html-report",
];
/// The crate whose tests start QEMU.
const QEMU: &str = "qemu-tests";

/// Runs the command. The runner's own closing lines come last.
///
/// # Errors
/// Something is missing, does not build, or fails.
pub fn run(arguments: &Test) -> Result<u8> {
    let toolchain = Toolchain::find()?;
    let mut crates = HOST.to_vec();
    let tree = if arguments.host_only {
        setup::ensure(Need::build(), &toolchain)?;
        Tree::new(toolchain)?
    } else {
        crates.push(QEMU);
        let tree = prepare(&[Boot::Direct, Boot::Bios, Boot::Uefi])?;
        // A test of an untrusted emulator would fail for no fault of ours.
        setup::ensure(&[Need::QemuForPmu], tree.toolchain())?;
        tree.build_uefi_pmu()?;
        tree.build_stick()?;
        tree.build_faulty_pmu()?;
        tree.build_plugin()?;
        // Single tests need each, and say that they were skipped where it is not available.
        let singly = [
            Need::Grub,
            Need::Fsck,
            Need::Valgrind,
            Need::Compilers,
            Need::Chromium,
            Need::Axe,
            Need::Python,
            Need::Labgrid,
            Need::Parsers,
        ];
        for need in singly {
            if let Err(error) = setup::ensure(&[need], tree.toolchain()) {
                crate::output::say(&format!("continuing without it: {error}"));
            }
        }
        tree
    };
    if !arguments.no_checks && arguments.filter.is_none() {
        super::check::all(&tree)?;
    }
    let status = command(&crates, arguments.filter.as_deref(), &tree).status();
    match status {
        Ok(status) if status.success() => Ok(0),
        Ok(status) => Err(Failure::Tool(format!("tests failed ({status})"))),
        Err(error) => Err(Failure::Tool(format!("cargo cannot be run: {error}"))),
    }
}

fn command(crates: &[&str], filter: Option<&str>, tree: &Tree) -> Command {
    let nextest = crate::process::find("cargo-nextest").is_some();
    let mut command = Command::new(cargo());
    command.current_dir(tree.root()).env("CARGO_TARGET_DIR", tree.target());
    // One run reports everything that fails.
    let run = if nextest {
        &["nextest", "run", "--no-fail-fast"][..]
    } else {
        &["test", "--no-fail-fast"]
    };
    command.args(run);
    for name in crates {
        command.args(["-p", name]);
    }
    command.args(filter);
    // Everything is built, and the tests find the program under test by this.
    command.env("BARECOUNT_PREPARED", "1");
    if let Ok(program) = std::env::current_exe() {
        command.env("BARECOUNT_XTASK", program);
    }
    command
}

/// Whether a part is there, for tests that are skipped without it.
#[must_use]
pub fn has(need: Need) -> bool {
    matches!(need.status(Toolchain::find().ok().as_ref()), Status::Present(_))
}

#[cfg(test)]
mod tests {
    use super::{HOST, QEMU};
    use std::path::Path;

    /// Whether a Rust file below `folder`, other crates' folders left out, has a test.
    fn has_tests(folder: &Path) -> bool {
        let entries = std::fs::read_dir(folder).expect("a folder of ours");
        entries.map(|entry| entry.expect("readable").path()).any(|path| {
            if path.is_dir() {
                return !path.join("Cargo.toml").exists() && has_tests(&path);
            }
            path.extension().is_some_and(|extension| extension == "rs")
                && std::fs::read_to_string(&path).expect("text").contains("#[test]")
        })
    }

    #[test]
    fn every_member_with_tests_is_run() {
        let root = crate::build::root().expect("cargo runs this");
        let manifest = |folder: &Path| -> toml::Table {
            let text = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
            text.parse().expect("TOML")
        };
        let workspace = manifest(root);
        let members = workspace["workspace"]["members"].as_array().expect("a list");
        assert!(members.len() > HOST.len());
        for member in members {
            let folder = root.join(member.as_str().expect("a folder"));
            let manifest = manifest(&folder);
            let name = manifest["package"]["name"].as_str().expect("a name");
            let run = HOST.contains(&name) || name == QEMU;
            assert!(run || !has_tests(&folder), "{name} has tests that nobody runs");
        }
    }
}
