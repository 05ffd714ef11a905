//! What was linked before, kept under a name made of everything that it was made of.

use super::error::ProgramError;
use crate::build;
use std::path::{Path, PathBuf};

/// Changes with the way in which programs are linked.
const VERSION: u64 = 2;
/// Below the folder of everything that is built.
const FOLDER: &str = "barecount/programs";

/// A name for what is made of `parts`.
pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut sums = VERSION.to_le_bytes().to_vec();
    for part in parts {
        sums.extend_from_slice(&protocol::program::sum(part).to_le_bytes());
    }
    protocol::program::sum(&sums)
}

/// The folder, next to everything else that is built.
fn folder() -> Result<PathBuf, ProgramError> {
    let folder = build::target_folder().map_err(|error| ProgramError::Tool(error.to_string()))?;
    let folder = folder.join(FOLDER);
    let made = std::fs::create_dir_all(&folder);
    made.map_err(|error| ProgramError::Tool(format!("{}: {error}", folder.display())))?;
    Ok(folder)
}

/// The linked file of a program, if it is still here. Nothing is created.
pub(super) fn find(key: u64) -> Option<PathBuf> {
    let path = build::target_folder().ok()?.join(FOLDER).join(name(key, "elf"));
    path.is_file().then_some(path)
}

fn name(key: u64, extension: &str) -> String {
    format!("{key:016x}.{extension}")
}

/// The file of that name, made by `make` if it is not there yet. It comes to its place as a whole.
pub(super) fn file(
    key: u64,
    extension: &str,
    make: impl FnOnce(&Path) -> Result<(), ProgramError>,
) -> Result<PathBuf, ProgramError> {
    let folder = folder()?;
    let path = folder.join(name(key, extension));
    if path.is_file() {
        return Ok(path);
    }
    let failed =
        |error: std::io::Error| ProgramError::Tool(format!("{}: {error}", folder.display()));
    let scratch = tempfile::tempdir_in(&folder).map_err(failed)?;
    let made = scratch.path().join("made");
    make(&made)?;
    std::fs::rename(&made, &path).map_err(failed)?;
    Ok(path)
}
