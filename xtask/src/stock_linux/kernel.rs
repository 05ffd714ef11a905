//! The kernel.

use super::error::StockError;
use super::packages::{dependencies, download, files, unpack};
use std::fs;
use std::path::{Path, PathBuf};

/// Debian's package whose only dependency is the current kernel's.
const NEWEST: &str = "linux-image-amd64";
/// First part of the kernel's name in /boot.
pub(super) const KERNEL: &str = "vmlinuz-";

/// The kernel's file, from `folder`, where the first call leaves it. Nothing is installed: the package is downloaded, and one
/// file is taken out of it.
///
/// # Errors
/// Why there is none: another distribution, no package lists, no connection.
pub fn kernel(folder: &Path) -> Result<PathBuf, StockError> {
    if let Some(file) = find(folder) {
        return Ok(file);
    }
    fs::create_dir_all(folder).map_err(StockError::file(folder))?;
    let scratch = tempfile::tempdir_in(folder).map_err(StockError::file(folder))?;
    let missing = |path: String| StockError::NoFile { path, packages: NEWEST.to_string() };
    let package = dependencies(NEWEST)?.into_iter().next();
    let package = package.ok_or_else(|| missing("of any kernel".to_string()))?;
    for archive in download(&[package], scratch.path())? {
        // All the rest of it is modules.
        unpack(&archive, &["./boot"], scratch.path())?;
    }
    let file =
        find(&scratch.path().join("boot")).ok_or_else(|| missing(format!("/boot/{KERNEL}*")))?;
    let place = folder.join(file.file_name().expect("it has one"));
    // In one step: another test may be looking.
    fs::rename(&file, &place).map_err(StockError::file(&place))?;
    Ok(place)
}

fn find(folder: &Path) -> Option<PathBuf> {
    let is_kernel =
        |file: &PathBuf| file.file_name()?.to_str().map(|name| name.starts_with(KERNEL));
    files(folder).find(|file| is_kernel(file) == Some(true))
}
