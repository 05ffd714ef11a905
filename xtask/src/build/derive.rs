//! Files made out of cargo's output.

use super::{BuildError, Tree};
use crate::process::said;
use pmu_model::Model;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

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
    derive(from, to, |unfinished| {
        let mut command = tree.toolchain().objcopy();
        command.args(options).arg(from).arg(unfinished);
        run(command)
    })
}

/// Makes `to` out of `from`, if it is not of that `from`: `make` writes it to the path that it gets.
fn derive(
    from: &Path,
    to: &Path,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), BuildError> {
    // Asked for before it is read: who changes it meanwhile has it made once more.
    let of = modified(from);
    if of.is_some() && of == modified(to) {
        return Ok(());
    }
    let failed = |reason: String| BuildError::Derive { path: to.to_path_buf(), reason };
    let folder = to.parent().expect("a file in the target folder");
    fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    // Written under another name first: another run may be reading the old file.
    let unfinished = tempfile::NamedTempFile::new_in(folder).map_err(|e| failed(e.to_string()))?;
    make(unfinished.path()).map_err(failed)?;
    // By its path: who makes it may have put another file there.
    if let (Some(of), Ok(made)) = (of, File::open(unfinished.path())) {
        // Without it, it is made again by the next command.
        let _ = made.set_modified(of);
    }
    unfinished.persist(to).map_err(|error| failed(error.to_string()))?;
    Ok(())
}

/// When a file was written. A derived file has the time of the one that it was made of: cargo puts an older build back with the time
/// that it had, for example when a change is undone, so a derived file that is newer may well be of another build.
fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|data| data.modified()).ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_is_derived_again_of_an_older_build_that_cargo_has_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["built", "made/derived"].map(|name| folder.path().join(name));
        let build = |content: &str, time| {
            fs::write(&from, content).unwrap();
            File::open(&from).unwrap().set_modified(time).unwrap();
        };
        let derived = || {
            let mut is_made = false;
            derive(&from, &to, |unfinished| {
                is_made = true;
                fs::copy(&from, unfinished).map(drop).map_err(|error| error.to_string())
            })
            .unwrap();
            (is_made, fs::read_to_string(&to).unwrap())
        };
        let now = SystemTime::now();
        let expected = |is_made: bool, content: &str| (is_made, content.to_string());
        build("of the change", now);
        assert_eq!(derived(), expected(true, "of the change"));
        assert_eq!(derived(), expected(false, "of the change"));
        build("from before the change", now - Duration::from_secs(3600));
        assert_eq!(derived(), expected(true, "from before the change"));
        assert_eq!(derived(), expected(false, "from before the change"));
    }

    #[test]
    fn what_cannot_be_derived_is_named_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["absent", "derived"].map(|name| folder.path().join(name));
        let error = derive(&from, &to, |_| Err("no such file".to_string())).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot make {}: no such file", to.display()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
