//! `perf` and a shell, with what they need.

use super::error::StockError;
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
pub(super) const INTERPRETER: &str = "lib64/ld-linux-x86-64.so.2";
const PROGRAM: &str = "bin/perf";

/// The tools' files.
pub struct Tools {
    /// Name in the guest's file system and file here.
    pub files: Vec<(String, PathBuf)>,
}

/// The tools, from `folder`, where the first call leaves them.
///
/// # Errors
/// Why there are none: another distribution, no package lists, no connection.
pub fn tools(folder: &Path) -> Result<Tools, StockError> {
    let place = folder.join(FOLDER);
    if !place.exists() {
        fs::create_dir_all(folder).map_err(StockError::file(folder))?;
        let scratch = tempfile::tempdir_in(folder).map_err(StockError::file(folder))?;
        let ready = scratch.path().join(FOLDER);
        collect(&fetch(scratch.path())?, &ready)?;
        // In one step: another test may be looking, or have been quicker.
        fs::rename(&ready, &place)
            .or_else(|error| if place.exists() { Ok(()) } else { Err(error) })
            .map_err(StockError::file(&place))?;
    }
    let mut files = Vec::new();
    list(&place, "", &mut files).map_err(StockError::file(&place))?;
    Ok(Tools { files })
}

/// Unpacks the packages, each into a folder of its name, which are the result: first perf's and those that it depends on,
/// then, while libraries are missing, those that the package depends on whose library needs one.
fn fetch(scratch: &Path) -> Result<Vec<PathBuf>, StockError> {
    let mut roots = Vec::new();
    let mut next = BTreeSet::from([SHELL, PERF].map(str::to_string));
    next.extend(library_packages(PERF)?);
    loop {
        let packages: Vec<String> = next.iter().cloned().collect();
        let folder = scratch.join(format!("packages-{}", roots.len()));
        for archive in download(&packages, &folder)? {
            // NAME_VERSION_ARCHITECTURE.deb
            let file = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let root = scratch.join("root").join(file.split('_').next().unwrap_or_default());
            unpack(&archive, &[], &root)?;
            roots.push(root);
        }
        let missing = libraries(&find(&roots, PROGRAM)?, &roots)?.missing;
        if missing.is_empty() {
            return Ok(roots);
        }
        let owner = |file: &PathBuf| roots.iter().find(|root| file.starts_with(root));
        let owners: BTreeSet<&PathBuf> = missing.values().filter_map(owner).collect();
        next.clear();
        for owner in owners {
            next.extend(library_packages(
                &owner.file_name().unwrap_or_default().to_string_lossy(),
            )?);
        }
        next.retain(|name| !roots.iter().any(|root| root.ends_with(name)));
        if next.is_empty() {
            return Err(StockError::NoLibrary { package: PERF, missing });
        }
    }
}

/// Those that `package` depends on and that by their names are libraries: not the interpreters of perf's scripts.
fn library_packages(package: &str) -> Result<Vec<String>, StockError> {
    let all = dependencies(package)?.into_iter();
    Ok(all.filter(|name| name.contains("lib") && !name.ends_with("-stdlib")).collect())
}

/// A file, by the path that the package installs it at; in older releases /bin, /lib and /lib64 are not below /usr.
fn find(roots: &[PathBuf], path: &str) -> Result<PathBuf, StockError> {
    let paths = roots.iter().flat_map(|root| [root.join(path), root.join("usr").join(path)]);
    let missing =
        || StockError::NoFile { path: format!("/{path}"), packages: format!("{PERF}, {SHELL}") };
    paths.into_iter().find(|file| file.exists()).ok_or_else(missing)
}

/// Copies what is needed to `to`.
fn collect(roots: &[PathBuf], to: &Path) -> Result<(), StockError> {
    let copy = |from: &Path, name: &str| {
        let file = to.join(name);
        let folder = file.parent().expect("it is below `to`");
        let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(from, &file));
        copied.map(|_| ()).map_err(StockError::file(from))
    };
    let program = find(roots, PROGRAM)?;
    for file in [PROGRAM, "bin/busybox", INTERPRETER] {
        copy(&find(roots, file)?, file)?;
    }
    for (name, file) in libraries(&program, roots)?.found {
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
