//! `perf` and a shell, with what they need.

use super::needed::libraries;
use super::packages::{dependencies, download, unpack};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// In the folder of the distribution's files: the tools.
const FOLDER: &str = "tools";
const PERF: &str = "linux-perf";
const SHELL: &str = "busybox-static";
/// The program that starts programs with shared libraries.
const INTERPRETER: &str = "lib64/ld-linux-x86-64.so.2";

/// The tools' files.
pub struct Tools {
    /// Name in the guest's file system and file here.
    pub files: Vec<(String, PathBuf)>,
}

/// The tools, from `folder`, where the first call leaves them.
///
/// # Errors
/// Why there are none: another distribution, no package lists, no connection.
pub fn tools(folder: &Path) -> Result<Tools, String> {
    let place = folder.join(FOLDER);
    if !place.exists() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let scratch = tempfile::tempdir_in(folder).map_err(|error| error.to_string())?;
        let ready = scratch.path().join(FOLDER);
        collect(&fetch(scratch.path())?, &ready)?;
        // In one step: another test may be looking, or have been quicker.
        fs::rename(&ready, &place).or_else(|error| if place.exists() { Ok(()) } else { Err(error) })
            .map_err(|error| format!("{}: {error}", place.display()))?;
    }
    let mut files = Vec::new();
    list(&place, "", &mut files).map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(Tools { files })
}

/// Unpacks the packages and those of the libraries, of which as few are asked for as turns out to be needed: first
/// those that perf's own package names, then those that these name, and so on.
fn fetch(scratch: &Path) -> Result<PathBuf, String> {
    let root = scratch.join("root");
    let mut next = vec![SHELL.to_string(), PERF.to_string()];
    let mut had = BTreeSet::new();
    loop {
        had.extend(next.iter().cloned());
        for archive in download(&next, &scratch.join(format!("packages-{}", had.len())))? {
            unpack(&archive, &[], &root)?;
        }
        let missing = libraries(&root.join("usr/bin/perf"), &root)?.missing;
        if missing.is_empty() {
            return Ok(root);
        }
        let mut named = BTreeSet::new();
        for package in &next {
            named.extend(dependencies(package)?.into_iter().filter(|name| name.starts_with("lib")));
        }
        next = named.difference(&had).cloned().collect();
        if next.is_empty() {
            return Err(format!("no package that {PERF} depends on has {}", missing.join(", ")));
        }
    }
}

/// Copies what is needed to `to`.
fn collect(root: &Path, to: &Path) -> Result<(), String> {
    let copy = |from: &Path, name: &str| {
        let file = to.join(name);
        let folder = file.parent().expect("it is below `to`");
        let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(from, &file));
        copied.map(|_| ()).map_err(|error| format!("{}: {error}", from.display()))
    };
    // Where busybox lies depends on the distribution's age.
    let shell = ["usr/bin/busybox", "bin/busybox"].map(|name| root.join(name));
    let shell = shell.iter().find(|file| file.exists());
    copy(shell.ok_or_else(|| format!("{SHELL} has no busybox"))?, "bin/busybox")?;
    let perf = root.join("usr/bin/perf");
    copy(&perf, "bin/perf")?;
    let interpreter = [root.join(INTERPRETER), root.join("usr").join(INTERPRETER)];
    let interpreter = interpreter.iter().find(|file| file.exists());
    copy(interpreter.ok_or("no dynamic linker in the packages")?, INTERPRETER)?;
    for (name, file) in libraries(&perf, root)?.found {
        copy(&file, &format!("lib/{name}"))?;
    }
    Ok(())
}

fn list(folder: &Path, name: &str, files: &mut Vec<(String, PathBuf)>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let last = path.file_name().expect("it has one").to_string_lossy().into_owned();
        let name = if name.is_empty() { last } else { format!("{name}/{last}") };
        if path.is_dir() {
            list(&path, &name, files)?;
        } else {
            files.push((name, path));
        }
    }
    Ok(())
}
