//! Files made out of cargo's output.

use super::{BuildError, Tree};
use crate::process::said;
use pmu_model::Model;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The kernel without symbols: a quarter of the size, and BIOS calls read the disk slowly.
pub(super) fn strip(tree: &Tree) -> Result<(), BuildError> {
    strip_to(tree, &tree.kernel_with_symbols(), &tree.kernel())
}

/// Any program without symbols.
pub(super) fn strip_to(tree: &Tree, from: &Path, to: &Path) -> Result<(), BuildError> {
    objcopy(tree, &["--strip-all"], from, to)
}

/// A program with what a backtrace takes of its symbols: functions, calls and lines, but not where its variables are.
/// The sections are compressed, which their readers understand.
pub(super) fn symbols_to(tree: &Tree, from: &Path, to: &Path) -> Result<(), BuildError> {
    let options = [
        "--remove-section=.debug_loc",
        "--remove-section=.debug_frame",
        "--remove-section=.debug_aranges",
        "--compress-debug-sections=zstd",
    ];
    objcopy(tree, &options, from, to)
}

/// A loader as a flat file: whoever starts it puts it to its address as it is.
pub(super) fn flatten(tree: &Tree, name: &str, to: &Path) -> Result<(), BuildError> {
    objcopy(tree, &["-O", "binary"], &tree.built(name), to)
}

fn objcopy(tree: &Tree, options: &[&str], from: &Path, to: &Path) -> Result<(), BuildError> {
    if is_newer(to, from) {
        return Ok(());
    }
    let failed = |reason: String| BuildError::Derive { path: to.to_path_buf(), reason };
    let folder = to.parent().expect("a file in the target folder");
    fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    // Written under another name first: another run may be reading the old file.
    let unfinished = tempfile::NamedTempFile::new_in(folder).map_err(|e| failed(e.to_string()))?;
    let mut command = tree.toolchain().objcopy();
    command.args(options).arg(from).arg(unfinished.path());
    run(command).map_err(failed)?;
    unfinished.persist(to).map_err(|error| failed(error.to_string()))?;
    Ok(())
}

fn is_newer(file: &Path, than: &Path) -> bool {
    let time = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
    match (time(file), time(than)) {
        (Some(file), Some(than)) => file > than,
        _ => false,
    }
}

/// Writes the image that boots `kernel` with `ramdisk` on BIOS and UEFI machines.
///
/// # Errors
/// The image maker's message.
pub fn image(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&Path>,
    out: &Path,
) -> Result<(), BuildError> {
    image_with(tree, kernel, ramdisk, Extras::default(), out)
}

/// What an image may have for UEFI machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// An emulated PMU, which [`Tree::build_uefi_pmu`] builds.
    pub pmu: Option<Hypervisor<'a>>,
    /// Reports are saved on it, by what [`Tree::build_stick`] builds.
    pub save: Option<Save<'a>>,
}

/// An emulated PMU for an image.
#[derive(Clone, Copy, Debug)]
pub struct Hypervisor<'a> {
    /// The model.
    pub model: Model,
    /// The file: [`Tree::emulated_pmu`], or one with a recorded processor.
    pub file: &'a Path,
}

/// How reports are saved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Save<'a> {
    /// Where they are sent, too.
    pub upload: Option<&'a str>,
}

/// Writes such an image with more for UEFI machines.
///
/// # Errors
/// The image maker's message.
pub fn image_with(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&Path>,
    extras: Extras,
    out: &Path,
) -> Result<(), BuildError> {
    let mut command = maker(tree, kernel, ramdisk, extras.pmu, out);
    command.arg("--bios").arg(tree.bios()).arg("--direct").arg(tree.direct());
    if let Some(save) = extras.save {
        command.arg("--save-application").arg(tree.stick_application());
        if let Some(upload) = save.upload {
            command.args(["--upload", upload]);
        }
    }
    run(command).map_err(|reason| BuildError::Derive { path: out.to_path_buf(), reason })
}

/// Writes the file that UEFI firmware takes from a boot server. [`Tree::build_stick`] builds what it is made of.
///
/// # Errors
/// The image maker's message.
pub fn network(
    tree: &Tree,
    kernel: &Path,
    ramdisk: &Path,
    pmu: Option<Hypervisor>,
    upload: Option<&str>,
    out: &Path,
) -> Result<(), BuildError> {
    let mut command = maker(tree, kernel, Some(ramdisk), pmu, out);
    command.arg("--network").arg("--save-application").arg(tree.stick_application());
    if let Some(upload) = upload {
        command.args(["--upload", upload]);
    }
    run(command).map_err(|reason| BuildError::Derive { path: out.to_path_buf(), reason })
}

/// The image maker with what all of its files have.
fn maker(
    tree: &Tree,
    kernel: &Path,
    ramdisk: Option<&Path>,
    pmu: Option<Hypervisor>,
    out: &Path,
) -> Command {
    let mut command = Command::new(tree.image_maker());
    command.arg("--kernel").arg(kernel).arg("--out").arg(out);
    command.arg("--uefi-loader").arg(tree.uefi_loader());
    if let Some(ramdisk) = ramdisk {
        command.arg("--ramdisk").arg(ramdisk);
    }
    if let Some(pmu) = pmu {
        command.arg("--pmu").arg(pmu.model.spec().name);
        command.arg("--pmu-application").arg(tree.pmu_application());
        command.arg("--pmu-hypervisor").arg(pmu.file);
    }
    command
}

fn run(mut command: Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(error.to_string()),
    }
}
