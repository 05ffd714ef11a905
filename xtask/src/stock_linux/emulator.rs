//! This machine's own QEMU, with all that it needs, for a guest's file system: a virtual machine within the virtual machine.

use super::error::StockError;
use super::needed::libraries;
use super::tools::INTERPRETER;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the guest's shell finds it.
const PROGRAM: &str = "bin/qemu-system-x86_64";
/// Where the guest has the files that QEMU looks for in folders of its own.
pub const DATA: &str = "usr/share/qemu";
/// Those that a direct boot takes: the BIOS, and what loads a multiboot kernel.
const FILES: [&str; 3] = ["bios-256k.bin", "multiboot_dma.bin", "kvmvapic.bin"];

/// The files of `program`: name in the guest's file system and file here. [`DATA`] is for its option `-L`.
///
/// # Errors
/// QEMU does not run, or something that it needs is not where the distribution has it.
pub fn files(program: &Path) -> Result<Vec<(String, PathBuf)>, StockError> {
    let root = [PathBuf::from("/")];
    let found = libraries(program, &root)?;
    if !found.missing.is_empty() {
        return Err(StockError::NoLibrary { package: "QEMU", missing: found.missing });
    }
    let mut files = vec![(PROGRAM.to_string(), program.to_path_buf())];
    files.push((INTERPRETER.to_string(), PathBuf::from("/").join(INTERPRETER)));
    files.extend(found.found.into_iter().map(|(name, file)| (format!("lib/{name}"), file)));
    let folders = folders(program)?;
    for name in FILES {
        let file = folders.iter().map(|folder| folder.join(name)).find(|file| file.exists());
        let path = name.to_string();
        let file = file.ok_or(StockError::NoFile { path, packages: format!("{folders:?}") })?;
        files.push((format!("{DATA}/{name}"), file));
    }
    Ok(files)
}

/// The folders in which it looks for files, as it says itself.
fn folders(program: &Path) -> Result<Vec<PathBuf>, StockError> {
    let name = program.display().to_string();
    let failed = |reason: String| StockError::Program { program: name.clone(), reason };
    let said = Command::new(program).args(["-L", "help"]).output();
    let said = said.map_err(|error| failed(error.to_string()))?;
    if !said.status.success() {
        return Err(failed(String::from_utf8_lossy(&said.stderr).trim().to_string()));
    }
    Ok(String::from_utf8_lossy(&said.stdout).lines().map(PathBuf::from).collect())
}
