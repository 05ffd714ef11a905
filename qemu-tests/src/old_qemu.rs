//! An old QEMU beside the machine's own, unpacked from the distribution.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::process::{said, stdout_of};

/// Its packages: the program, and what that loads.
const PACKAGES: [&str; 2] = ["qemu-system-x86", "qemu-system-common"];
/// The program.
const PROGRAM: &str = "usr/bin/qemu-system-x86_64";
/// What it loads.
const MODULES: &str = "usr/lib/x86_64-linux-gnu/qemu";
/// Where the machine's own QEMU has what both load into their guests.
const FIRMWARE: [&str; 3] = ["/usr/share/qemu", "/usr/share/seabios", "/usr/lib/ipxe/qemu"];

/// A script that starts the QEMU whose version begins with `version`, in `folder`, where the first call leaves it. Nothing is
/// installed: the package is downloaded from the machine's own package source and unpacked. Its libraries are the machine's.
///
/// # Errors
/// Why there is none: another release, no package lists, no connection, a library that is missing.
pub fn unpacked(version: &str, folder: &Path) -> Result<PathBuf, String> {
    let script = folder.join("qemu");
    if !script.exists() {
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let scratch = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
        download(version, scratch.path())?;
        // Another test may have been quicker: its files are the same.
        let _ = fs::rename(scratch.path().join("usr"), folder.join("usr"));
        let places = FIRMWARE.map(|place| format!("-L {place}")).join(" ");
        let (program, modules) = (folder.join(PROGRAM), folder.join(MODULES));
        let text = format!(
            "#!/bin/sh\nexport QEMU_MODULE_DIR='{}'\nexec '{}' {places} \"$@\"\n",
            modules.display(),
            program.display()
        );
        // In one step: another test may be looking.
        let unfinished = scratch.path().join("script");
        fs::write(&unfinished, text).map_err(|error| error.to_string())?;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&unfinished, mode).map_err(|error| error.to_string())?;
        fs::rename(&unfinished, &script).map_err(|error| error.to_string())?;
    }
    let starts = Command::new(&script).arg("--version").output();
    match starts {
        Ok(output) if output.status.success() => Ok(script),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(error.to_string()),
    }
}

fn download(version: &str, folder: &Path) -> Result<(), String> {
    let listed = stdout_of(Command::new("apt-cache").args(["madison", PACKAGES[0]]));
    let listed = listed.ok_or("this machine has no apt-cache")?;
    let mut versions = listed.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim);
    let wanted = format!("1:{version}");
    let found = versions.find(|found| found.starts_with(&wanted));
    let found = found.ok_or_else(|| format!("no package source here has QEMU {version}"))?;
    let packages = PACKAGES.map(|package| format!("{package}={found}"));
    run(Command::new("apt-get").args(["-qq", "download"]).args(&packages).current_dir(folder))?;
    let archives = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let archives = archives.flatten().map(|entry| entry.path());
    let archives = archives.filter(|file| file.extension().is_some_and(|end| end == "deb"));
    let archives: Vec<PathBuf> = archives.collect();
    if archives.len() != PACKAGES.len() {
        return Err(format!("apt-get left {} of {packages:?}", archives.len()));
    }
    archives
        .iter()
        .try_for_each(|file| run(Command::new("dpkg-deb").arg("-x").args([file, folder])))
}

fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(error.to_string()),
    }
}
