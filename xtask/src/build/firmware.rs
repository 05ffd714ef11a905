//! Calls of cargo.

use super::{BuildError, Tree};
use crate::progress::Work;
use crate::setup::toolchain::cargo;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Target of everything that runs on the bare machine.
const TARGET: &str = "x86_64-unknown-none";
/// Target of what UEFI firmware starts.
const UEFI_TARGET: &str = "x86_64-unknown-uefi";
/// Below the target folder.
pub(super) const FOLDER: &str = "x86_64-unknown-none/firmware";
/// Below the target folder, for UEFI.
pub(super) const UEFI_FOLDER: &str = "x86_64-unknown-uefi/firmware";

/// Builds the kernel.
pub(super) fn build_kernel(tree: &Tree) -> Result<(), BuildError> {
    let message = "building the kernel (the first time takes about a minute)";
    run(bare_metal(tree, &["-p", "kernel", "--features", "firmware"]), "the kernel", message)
}

/// Builds the direct loader: in a call of its own, because cargo gives crates that both use the features
/// that either asks for, and the loader has no heap.
pub(super) fn build_direct(tree: &Tree) -> Result<(), BuildError> {
    run(bare_metal(tree, &["-p", "direct"]), "the direct loader", "building the direct loader")
}

/// Builds the emulated PMU's hypervisor.
pub(super) fn build_emulated_pmu(tree: &Tree) -> Result<(), BuildError> {
    let packages = ["-p", "emulated-pmu", "--features", "payload"];
    run(bare_metal(tree, &packages), "the emulated PMU", "building the emulated PMU")
}

/// Builds the UEFI application that starts it.
pub(super) fn build_uefi_application(tree: &Tree) -> Result<(), BuildError> {
    let packages = ["-p", "emulated-pmu-uefi", "--features", "application"];
    let message = "building the emulated PMU's UEFI application";
    run(without_std(tree, UEFI_TARGET, &packages), "the UEFI application", message)
}

/// Builds a guest of `qemu-tests/guests`.
pub(super) fn build_guest(tree: &Tree, name: &str) -> Result<(), BuildError> {
    run(bare_metal(tree, &["-p", name]), "a test guest", &format!("building the guest {name}"))
}

fn bare_metal(tree: &Tree, packages: &[&str]) -> Command {
    without_std(tree, TARGET, packages)
}

fn without_std(tree: &Tree, target: &str, packages: &[&str]) -> Command {
    let mut command = cargo_build(tree);
    command.args(["--profile", "firmware", "--target", target]).args(packages);
    command.arg("-Zbuild-std=core,alloc,compiler_builtins");
    command.arg("-Zbuild-std-features=compiler-builtins-mem,optimize_for_size");
    command
}

/// Builds the image maker, and within it the boot loader's stages. In a folder of its own: it shares
/// crates with this program, and cargo would build those anew at each change between a build with
/// RUSTC_BOOTSTRAP and one without.
pub(super) fn build_image_maker(tree: &Tree) -> Result<(), BuildError> {
    let mut command = cargo_build(tree);
    command.args(["-p", "boot"]).arg("--target-dir").arg(tree.image_maker_target());
    run(command, "the image maker", "building the boot loader (the first time takes some minutes)")
}

fn cargo_build(tree: &Tree) -> Command {
    let mut command = Command::new(cargo());
    command.arg("build").current_dir(tree.root());
    // build-std and the loaders' unstable features on a stable compiler.
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}

fn run(mut command: Command, what: &'static str, message: &str) -> Result<(), BuildError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |said: String| BuildError::Cargo { what, said };
    let child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let waiter = std::thread::spawn(move || child.wait_with_output());
    let mut work = Work::new(message);
    while !waiter.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        work.tick(0);
    }
    let output = waiter.join().expect("the waiting thread does not panic");
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() { Ok(()) } else { Err(failed(crate::process::said(&output))) }
}
