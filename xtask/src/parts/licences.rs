//! Whose code is in the installed program, and under which licences: what has to go with a binary that is passed on.
//!
//! Cargo says which packages go into the program and into what it carries; their folders have the texts.

use crate::process::said;
use crate::setup::Toolchain;
use crate::setup::toolchain::cargo;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages of this workspace that go in: the program, and what it carries.
const OURS: [&str; 10] = [
    "xtask",
    "kernel",
    "direct",
    "bios",
    "emulated-pmu",
    "emulated-pmu-uefi",
    "emulated-pmu-plugin",
    "stick",
    "uefi-loader",
    "boot",
];
/// Everything that is built for one of these.
const TARGETS: [&str; 3] =
    ["x86_64-unknown-linux-gnu", "x86_64-unknown-none", "x86_64-unknown-uefi"];
/// How the names of files with licences begin, in capitals.
const FILES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
struct Package {
    name: String,
    version: String,
    id: String,
    license: Option<String>,
    manifest_path: PathBuf,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// None: a normal one.
    kind: Option<String>,
}

/// All notices, for the program that is built in `root`.
///
/// # Errors
/// What cargo or the system says.
pub(super) fn of_program(root: &Path) -> Result<String, String> {
    let ours = metadata(&root.join("Cargo.toml"), &["--all-features"])?;
    let packages = reached(&ours, &OURS);
    let mut text = own(root)?;
    text += &standard_library()?;
    text += &listed(&packages)?;
    Ok(text)
}

fn metadata(manifest: &Path, options: &[&str]) -> Result<Metadata, String> {
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version", "1", "--locked", "--manifest-path"]);
    command.arg(manifest).args(options);
    command.args(TARGETS.iter().flat_map(|target| ["--filter-platform", target]));
    let output = command.output().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", said(&output)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// The packages of others that `roots` are linked with. What is only built or tested with is not passed on.
fn reached(metadata: &Metadata, roots: &[&str]) -> BTreeSet<Package> {
    let by_id: HashMap<&str, &Package> =
        metadata.packages.iter().map(|package| (&*package.id, package)).collect();
    let nodes: HashMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (&*node.id, node)).collect();
    let is_root = |package: &&Package| roots.contains(&&*package.name);
    let mut left: Vec<&str> =
        metadata.packages.iter().filter(is_root).map(|package| &*package.id).collect();
    let mut seen: BTreeSet<&str> = left.iter().copied().collect();
    while let Some(id) = left.pop() {
        let Some(node) = nodes.get(id) else { continue };
        for dependency in &node.deps {
            let linked = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            if linked && seen.insert(&dependency.pkg) {
                left.push(&dependency.pkg);
            }
        }
    }
    let found = seen.into_iter().filter_map(|id| by_id.get(id)).copied();
    found.filter(|package| package.source.is_some()).cloned().collect()
}

/// This project's, and that of its tables.
fn own(root: &Path) -> Result<String, String> {
    let mut text = String::new();
    for name in ["NOTICE", "LICENSE-MIT", "LICENSE-APACHE", "arch/events/data/LICENSE.perfmon"] {
        let _ = writeln!(text, "{}\n{}", heading(name), read(&root.join(name))?.trim_end());
    }
    Ok(text)
}

/// Its code is in the program and in all that runs on the bare machine.
fn standard_library() -> Result<String, String> {
    let toolchain = Toolchain::find().map_err(|error| error.to_string())?;
    let mut text = format!(
        "{}\nCopyright (c) The Rust Project Contributors; MIT OR Apache-2.0. What it is made of is told by \
         COPYRIGHT-library.html of Rust {}. Licences within its source:\n",
        heading("Rust's standard library"),
        toolchain.version
    );
    let mut texts = BTreeSet::new();
    let library = toolchain.library_source();
    let folders = fs::read_dir(&library).map_err(|e| format!("{}: {e}", library.display()))?;
    for folder in folders.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        texts.extend(texts_of(&folder)?);
    }
    for one in texts {
        let _ = writeln!(text, "\n{one}");
    }
    Ok(text)
}

/// Every package with its licence, and each text with those that it is of.
fn listed(packages: &BTreeSet<Package>) -> Result<String, String> {
    let mut text = format!("{}\n", heading("Packages"));
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let name = format!("{} {}", package.name, package.version);
        let license = package.license.as_deref().unwrap_or("see its text");
        let _ = writeln!(text, "{name}: {license}");
        let folder = package.manifest_path.parent().unwrap_or(Path::new("/"));
        for one in texts_of(folder)? {
            texts.entry(one).or_default().push(name.clone());
        }
    }
    for (one, names) in texts {
        let _ = writeln!(text, "\n{}\n{one}", heading(&names.join(", ")));
    }
    Ok(text)
}

/// The texts that are in a package's folder.
fn texts_of(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if FILES.iter().any(|begin| name.starts_with(begin)) {
            match fs::read_dir(&path) {
                Ok(within) => files.extend(within.flatten().map(|entry| entry.path())),
                Err(_) => files.push(path),
            }
        }
    }
    files.sort();
    let files = files.iter().filter(|file| file.extension().is_none_or(|ending| ending != "rs"));
    files.map(|file| Ok(read(file)?.replace('\r', "").trim().to_string())).collect()
}

fn read(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn heading(text: &str) -> String {
    format!("{}\n{text}\n", "-".repeat(80))
}
