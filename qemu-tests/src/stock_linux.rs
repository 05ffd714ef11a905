//! A Linux kernel as the distribution ships it, and a file system in memory with one program.

use std::fs::{self, File};
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::process::{said, stdout_of};

/// Debian's package whose only dependency is the current kernel's.
const NEWEST: &str = "linux-image-amd64";
/// First part of the kernel's name in /boot.
const KERNEL: &str = "vmlinuz-";

/// The kernel's file, from `folder`, where the first call leaves it. Nothing is installed: the package is downloaded
/// from the machine's own package source, and one file is taken out of it.
///
/// # Errors
/// Why there is none: another distribution, no package lists, no connection.
pub fn kernel(folder: &Path) -> Result<PathBuf, String> {
    if let Some(file) = find(folder) {
        return Ok(file);
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let scratch = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
    let package = package()?;
    run(Command::new("apt-get").args(["-qq", "download", &package]).current_dir(scratch.path()))?;
    let archive = one_file(scratch.path(), |name| name.ends_with(".deb"))
        .ok_or_else(|| format!("apt-get left no file of {package}"))?;
    unpack(&archive, scratch.path())?;
    let file = find(&scratch.path().join("boot"))
        .ok_or_else(|| format!("{package} has no file /boot/{KERNEL}*"))?;
    let place = folder.join(file.file_name().expect("it has one"));
    // In one step: another test may be looking.
    fs::rename(&file, &place).map_err(|error| error.to_string())?;
    Ok(place)
}

fn find(folder: &Path) -> Option<PathBuf> {
    one_file(folder, |name| name.starts_with(KERNEL))
}

fn one_file(folder: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    files.find(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(&is_it))
}

/// The newest kernel's own package.
fn package() -> Result<String, String> {
    let listed = stdout_of(Command::new("apt-cache").args(["depends", "--important", NEWEST]));
    let listed = listed.ok_or_else(|| format!("no package source here has {NEWEST}"))?;
    let depends = listed.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    Ok(depends.ok_or_else(|| format!("{NEWEST} depends on no kernel"))?.trim().to_string())
}

/// Takes /boot out of a package; all the rest of it is modules.
fn unpack(package: &Path, folder: &Path) -> Result<(), String> {
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.arg("--fsys-tarfile").arg(package).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut dpkg = dpkg.spawn().map_err(|error| format!("dpkg-deb cannot be run: {error}"))?;
    let archive = dpkg.stdout.take().expect("piped");
    let mut tar = Command::new("tar");
    tar.args(["-x", "-f", "-", "./boot"]).current_dir(folder).stdin(archive);
    let unpacked = run(&mut tar);
    let status = dpkg.wait().map_err(|error| error.to_string())?;
    unpacked?;
    if status.success() { Ok(()) } else { Err(format!("dpkg-deb ended with {status}")) }
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{name}: {}", said(&output))),
        Err(error) => Err(format!("{name} cannot be run: {error}")),
    }
}

/// Writes a file system in memory whose only file is the program `init`.
///
/// # Errors
/// The file system's.
pub fn initial_file_system(init: &Path, out: &Path) -> std::io::Result<()> {
    const EXECUTABLE: u32 = 0o100_755;
    let program = cpio::NewcBuilder::new("init").mode(EXECUTABLE);
    let files = [(program, Cursor::new(fs::read(init)?))];
    cpio::write_cpio(files.into_iter(), File::create(out)?)?;
    Ok(())
}
