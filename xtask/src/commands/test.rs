//! `test`: checks of the source, host tests, then tests in QEMU, through cargo-nextest where it is installed, else cargo test.

use super::run::prepare;
use crate::build::Tree;
use crate::cli::{Boot, Test};
use crate::process::tied;
use crate::setup::toolchain::cargo;
use crate::setup::{self, Need, Status, Toolchain};
use crate::{Failure, Result};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Crates whose tests run on the host alone.
const HOST: [&str; 24] = [
    "protocol",
    "arch",
    "step",
    "events",
    "recorded",
    "bios",
    "compressed-kernel",
    "disk",
    "loader-serial",
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
    let runner = Runner::find();
    setup::ensure(Need::build(), &toolchain)?;
    let mut tree = Tree::new(toolchain)?;
    let mut building = None;
    if !arguments.host_only {
        crates.push(QEMU);
        building = runner.build(&crates, &tree);
        tree = prepare(&[Boot::Direct, Boot::Bios, Boot::Uefi])?;
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
    }
    if !arguments.no_checks && !arguments.soak && arguments.filter.is_none() {
        super::check::all(&tree)?;
    }
    if let Some(mut building) = building {
        // If it failed, the next call says why.
        let _ = building.wait();
    }
    let mut tests = runner.command(Command::new(cargo()), &crates, &tree);
    // One run reports everything that fails.
    let status = tests.arg("--no-fail-fast").args(chosen(arguments, runner.nextest)).status();
    match status {
        Ok(status) if status.success() => Ok(0),
        Ok(status) => Err(Failure::Tool(format!("tests failed ({status})"))),
        Err(error) => Err(Failure::Tool(format!("cargo cannot be run: {error}"))),
    }
}

/// What a soak test's name ends with. The runners would not run one by itself: it is `#[ignore]`d.
const SOAK: &str = "_soak";

/// The runner's arguments that say which tests to run.
fn chosen(arguments: &Test, nextest: bool) -> Vec<&str> {
    match (arguments.soak, nextest) {
        (true, true) => vec!["--run-ignored", "only", SOAK],
        (true, false) => vec![SOAK, "--", "--ignored"],
        (false, _) => arguments.filter.as_deref().into_iter().collect(),
    }
}

/// How the tests are called.
struct Runner {
    nextest: bool,
    /// This program. Found before the tests are built: that may put a new file in its place, and the system then calls this one deleted.
    program: Option<PathBuf>,
}

impl Runner {
    fn find() -> Self {
        let nextest = crate::process::find("cargo-nextest").is_some();
        Self { nextest, program: std::env::current_exe().ok() }
    }

    /// Builds the tests beside the firmware, whose linking takes long and one processor alone. `None`: it cannot be started.
    fn build(&self, crates: &[&str], tree: &Tree) -> Option<Child> {
        let mut command = self.command(tied(cargo()), crates, tree);
        // Of nextest, it does not go together with --no-fail-fast.
        command.arg("--no-run");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()
    }

    fn command(&self, mut command: Command, crates: &[&str], tree: &Tree) -> Command {
        command.current_dir(tree.root()).env("CARGO_TARGET_DIR", tree.target());
        command.args(if self.nextest { &["nextest", "run"][..] } else { &["test"] });
        for name in crates {
            command.args(["-p", name]);
        }
        // Everything is built, and the tests find the program under test by this.
        command.env("BARECOUNT_PREPARED", "1");
        if let Some(program) = &self.program {
            command.env("BARECOUNT_XTASK", program);
        }
        command
    }
}

/// Whether a part is there, for tests that are skipped without it.
#[must_use]
pub fn has(need: Need) -> bool {
    matches!(need.status(Toolchain::find().ok().as_ref()), Status::Present(_))
}

#[cfg(test)]
mod tests;
