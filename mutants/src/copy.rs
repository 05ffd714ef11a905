//! The copy of the checkout that is written to.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Makes `copy` hold what `source` does, without build folders. What is the same there keeps its time, so that cargo
/// builds what has changed.
pub fn copy(source: &Path, copy: &Path) -> Result<()> {
    fs::create_dir_all(copy).with_context(|| copy.display().to_string())?;
    for entry in fs::read_dir(copy)? {
        let old = entry?.path();
        let name = old.file_name().context("an entry has a name")?;
        if name != "target" && fs::symlink_metadata(source.join(name)).is_err() {
            if old.is_dir() { fs::remove_dir_all(&old)? } else { fs::remove_file(&old)? }
        }
    }
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            // Build folders, and the history.
            if entry.file_name() != ".git" && entry.file_name() != "target" {
                self::copy(&from, &to)?;
            }
        } else if kind.is_file() && fs::read(&to).ok() != Some(fs::read(&from)?) {
            fs::copy(&from, &to).with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}
