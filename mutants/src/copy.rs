//! The copy of the checkout that is written to.

use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Beside the sources: the build folder, and the history. Below, a folder may have the name of one.
const NO_SOURCES: [&str; 2] = ["target", ".git"];
/// What cargo puts into each build folder, also of a workspace within the checkout (the Cache Directory Tagging Specification).
const TAG: &str = "CACHEDIR.TAG";

/// Makes `copy` hold what `source` does, without build folders and history. What is the same there keeps its time, so that
/// cargo builds what has changed.
pub fn copy(source: &Path, copy: &Path) -> Result<()> {
    level(source, copy, &NO_SOURCES)
}

fn level(source: &Path, copy: &Path, without: &[&str]) -> Result<()> {
    let is_left_out = |name: &OsStr| without.iter().any(|one| name == *one);
    fs::create_dir_all(copy).with_context(|| copy.display().to_string())?;
    for entry in fs::read_dir(copy)? {
        let old = entry?.path();
        let name = old.file_name().context("an entry has a name")?;
        if !is_left_out(name) && fs::symlink_metadata(source.join(name)).is_err() {
            if old.is_dir() { fs::remove_dir_all(&old)? } else { fs::remove_file(&old)? }
        }
    }
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), copy.join(entry.file_name()));
        let kind = entry.file_type()?;
        if is_left_out(&entry.file_name()) {
            continue;
        }
        if kind.is_dir() {
            if !from.join(TAG).exists() {
                level(&from, &to, &[])?;
            }
        } else if kind.is_file() && fs::read(&to).ok() != Some(fs::read(&from)?) {
            fs::copy(&from, &to).with_context(|| to.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod what_is_copied {
    use super::*;

    #[test]
    fn all_sources_whatever_their_folders_are_called_and_no_build_folder() {
        let folder = std::env::temp_dir().join(format!("schemata-copy-{}", std::process::id()));
        let (source, to) = (folder.join("source"), folder.join("copy"));
        let write = |root: &Path, name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        };
        let sources = ["Cargo.toml", "src/target/mod.rs", "tests/.git/config"];
        let others = ["target/debug/a", ".git/HEAD", "fuzz/target/CACHEDIR.TAG", "fuzz/target/a"];
        sources.iter().chain(&others).for_each(|name| write(&source, name));
        // Of the copy before: its own build folder stays.
        ["target/debug/b", "src/old.rs", "src/target/old.rs"]
            .iter()
            .for_each(|name| write(&to, name));
        copy(&source, &to).unwrap();
        for name in sources.iter().chain(&["target/debug/b", "fuzz"]) {
            assert!(to.join(name).exists(), "{name}");
        }
        for name in others.iter().chain(&["src/old.rs", "src/target/old.rs"]) {
            assert!(!to.join(name).exists(), "{name}");
        }
        // The history of a worktree is a file.
        fs::remove_dir_all(source.join(".git")).unwrap();
        write(&source, ".git");
        copy(&source, &to).unwrap();
        assert!(!to.join(".git").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
