//! Calls of cargo.

use super::{BuildError, Tree, stamp};
use crate::progress;
use crate::setup::toolchain::cargo;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// Target of everything that runs on the bare machine.
const TARGET: &str = "x86_64-unknown-none";
/// Target of what UEFI firmware starts.
const UEFI_TARGET: &str = "x86_64-unknown-uefi";
/// Below the target folder.
pub(super) const FOLDER: &str = "x86_64-unknown-none/firmware";
/// Below the target folder, for the image maker.
pub(super) const IMAGE_MAKER_FOLDER: &str = "boot/debug";
/// Below the target folder, for what runs in QEMU itself.
pub(super) const PLUGIN_FOLDER: &str = PLUGIN_PROFILE;
/// The plugin's profile, which nothing else is built with: the build script of the installed program, itself called by a
/// cargo that holds the lock of `release`, has it built.
const PLUGIN_PROFILE: &str = "plugin";
/// Below the target folder, for UEFI.
pub(super) const UEFI_FOLDER: &str = "x86_64-unknown-uefi/firmware";

/// Builds the kernel.
pub(super) fn build_kernel(tree: &Tree) -> Result<(), BuildError> {
    let message = "building the kernel (the first time takes about a minute)";
    let mut command = bare_metal(tree, &["-p", "kernel", "--features", "firmware"]);
    // The hypervisor decodes and the loaders unpack with them, and need speed. Here one decodes what is stepped over, where an exception
    // costs far more, and the other compresses a digest.
    for package in ["iced-x86", "miniz_oxide"] {
        command.args(["--config", &format!("profile.firmware.package.{package}.opt-level=\"z\"")]);
    }
    Part { name: "kernel", what: "the kernel", folder: FOLDER, message }.build(tree, command)
}

/// Builds the direct loader: in a call of its own, because cargo gives crates that both use the features
/// that either requests, and the loader has no heap.
pub(super) fn build_direct(tree: &Tree) -> Result<(), BuildError> {
    let (what, message) = ("the direct loader", "building the direct loader");
    let command = bare_metal(tree, &["-p", "direct"]);
    Part { name: "direct", what, folder: FOLDER, message }.build(tree, command)
}

/// Builds the BIOS loader.
pub(super) fn build_bios(tree: &Tree) -> Result<(), BuildError> {
    let (what, message) = ("the BIOS loader", "building the BIOS loader");
    let command = bare_metal(tree, &["-p", "bios", "--features", "loader"]);
    Part { name: "bios", what, folder: FOLDER, message }.build(tree, command)
}

/// Builds the emulated PMU's hypervisor.
pub(super) fn build_emulated_pmu(tree: &Tree) -> Result<(), BuildError> {
    let (what, message) = ("the emulated PMU", "building the emulated PMU");
    let command = bare_metal(tree, &["-p", "emulated-pmu", "--features", "payload"]);
    Part { name: "emulated-pmu", what, folder: FOLDER, message }.build(tree, command)
}

/// Builds the same with faults.
pub(super) fn build_faulty_pmu(tree: &Tree) -> Result<(), BuildError> {
    let program = ["-p", "emulated-pmu", "--bin", "emulated-pmu-faulty"];
    let packages = [&program[..], &["--features", "payload,faults"]].concat();
    let (what, message) = ("the emulated PMU with faults", "building the emulated PMU with faults");
    let command = bare_metal(tree, &packages);
    Part { name: "emulated-pmu-faulty", what, folder: FOLDER, message }.build(tree, command)
}

/// Builds the UEFI application that starts it.
pub(super) fn build_uefi_application(tree: &Tree) -> Result<(), BuildError> {
    let name = "emulated-pmu-uefi";
    let (what, message) = ("the UEFI application", "building the emulated PMU's UEFI application");
    let command = without_std(tree, UEFI_TARGET, &["-p", name, "--features", "application"]);
    Part { name, what, folder: UEFI_FOLDER, message }.build(tree, command)
}

/// Builds the UEFI application that saves reports on the stick.
pub(super) fn build_stick(tree: &Tree) -> Result<(), BuildError> {
    let (what, message) = ("the stick's UEFI application", "building the stick's UEFI application");
    let command = without_std(tree, UEFI_TARGET, &["-p", "stick", "--features", "application"]);
    Part { name: "stick-uefi", what, folder: UEFI_FOLDER, message }.build(tree, command)
}

/// The plugin's file without its ending, as cargo names it on Linux.
pub(super) const PLUGIN: &str = "libemulated_pmu_plugin";

/// Builds the UEFI loader.
pub(super) fn build_uefi_loader(tree: &Tree) -> Result<(), BuildError> {
    let name = "uefi-loader";
    let (what, message) = ("the UEFI loader", "building the UEFI loader");
    let command = without_std(tree, UEFI_TARGET, &["-p", name, "--features", "application"]);
    Part { name, what, folder: UEFI_FOLDER, message }.build(tree, command)
}

/// Builds the plugin for QEMU's translator: for the host, and optimised, because it runs at each block of the guest's code.
pub(super) fn build_plugin(tree: &Tree) -> Result<(), BuildError> {
    let mut command = cargo_build(tree, &tree.target());
    command.args(["--profile", PLUGIN_PROFILE, "-p", "emulated-pmu-plugin"]);
    let (what, message) = ("the plugin for QEMU", "building the emulated PMU's plugin for QEMU");
    Part { name: PLUGIN, what, folder: PLUGIN_FOLDER, message }.build(tree, command)
}

/// Builds a guest of `qemu-tests/guests`.
pub(super) fn build_guest(tree: &Tree, name: &str) -> Result<(), BuildError> {
    let message = &format!("building the guest {name}");
    let command = bare_metal(tree, &["-p", name]);
    Part { name, what: "a test guest", folder: FOLDER, message }.build(tree, command)
}

/// Builds a guest that UEFI firmware starts.
pub(super) fn build_uefi_guest(tree: &Tree, name: &str) -> Result<(), BuildError> {
    let message = &format!("building the guest {name}");
    let command = without_std(tree, UEFI_TARGET, &["-p", name]);
    Part { name, what: "a test guest", folder: UEFI_FOLDER, message }.build(tree, command)
}

fn bare_metal(tree: &Tree, packages: &[&str]) -> Command {
    without_std(tree, TARGET, packages)
}

fn without_std(tree: &Tree, target: &str, packages: &[&str]) -> Command {
    let mut command = cargo_build(tree, &tree.target());
    command.args(["--profile", "firmware", "--target", target]).args(packages);
    command.arg("-Zbuild-std=core,alloc,compiler_builtins");
    command.arg("-Zbuild-std-features=compiler-builtins-mem,optimize_for_size");
    command
}

/// Builds the image maker. In a folder of its own: it shares crates with this program, and cargo would build those again at each
/// change between a build with RUSTC_BOOTSTRAP and one without.
pub(super) fn build_image_maker(tree: &Tree) -> Result<(), BuildError> {
    let mut command = cargo_build(tree, &tree.image_maker_target());
    command.args(["-p", "boot"]);
    let message = "building the image maker";
    Part { name: "boot", what: "the image maker", folder: IMAGE_MAKER_FOLDER, message }
        .build(tree, command)
}

fn cargo_build(tree: &Tree, target: &Path) -> Command {
    let mut command = Command::new(cargo());
    // Named, because cargo would take a relative one of the environment from another working folder.
    command.arg("build").current_dir(tree.root()).arg("--target-dir").arg(target);
    // build-std and the loaders' unstable features on a stable compiler.
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}

/// A program to build.
struct Part<'a> {
    /// Cargo's name of it.
    name: &'a str,
    /// What it is, for errors.
    what: &'static str,
    /// Below the target folder, where cargo puts it.
    folder: &'static str,
    /// What is said meanwhile.
    message: &'a str,
}

impl Part<'_> {
    /// Calls cargo, if anything has changed since its last call.
    fn build(&self, tree: &Tree, mut command: Command) -> Result<(), BuildError> {
        let noted = tree.stamp(self.name);
        if stamp::is_fresh(tree, &command, &noted) {
            return Ok(());
        }
        let start = SystemTime::now();
        run(&mut command, self.what, self.message)?;
        let dependencies = tree.target().join(self.folder).join(format!("{}.d", self.name));
        stamp::write(tree, &command, &dependencies, start, &noted);
        Ok(())
    }
}

fn run(command: &mut Command, what: &'static str, message: &str) -> Result<(), BuildError> {
    let failed = |said: String| BuildError::Cargo { what, said };
    let output = progress::output(command, message).map_err(|error| failed(error.to_string()))?;
    if output.status.success() { Ok(()) } else { Err(failed(crate::process::said(&output))) }
}
