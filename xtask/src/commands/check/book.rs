//! Whether the guide is whole: its summary names every page once, and every link of the documents leads somewhere.

mod links;

use crate::process::said;
use crate::setup::toolchain::cargo;
use links::{anchors, links};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// The guide's folder and its summary.
const BOOK: &str = "docs";
const SUMMARY: &str = "docs/SUMMARY.md";
/// Folders without documents of ours.
const PASSED_OVER: [&str; 2] = ["target", ".git"];

/// Every document by its path from the checkout.
type Documents = BTreeMap<PathBuf, String>;

/// Reads every document and looks at it.
pub(super) fn check(root: &Path) -> Result<(), String> {
    let mut documents = Documents::new();
    collect(root, Path::new(""), &mut documents)
        .map_err(|error| format!("{}: {error}", root.display()))?;
    let mut wrong = dead_links(&documents, &|path| root.join(path).exists());
    wrong.extend(unlisted(&documents));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// The crate that builds the book by mdBook's library.
const BUILDER: &str = "xtask/book/Cargo.toml";

/// Builds the book below the build folder. Whatever mdBook says is a failure: it warns, and continues, where a file that a page
/// includes is missing.
pub(super) fn build(root: &Path, target: &Path) -> Result<bool, String> {
    let mut command = Command::new(cargo());
    command.args(["run", "--quiet", "--locked", "--manifest-path"]).arg(root.join(BUILDER));
    command.arg("--").arg(root.join(BOOK)).arg(target.join("book"));
    // A folder of its own: what it shares with the workspace, it wants with other features.
    command.env("CARGO_TARGET_DIR", target.join("book-builder"));
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() && output.stderr.is_empty() { Ok(true) } else { Err(said(&output)) }
}

/// Markdown files below `folder`, which is relative to `root`.
fn collect(root: &Path, folder: &Path, documents: &mut Documents) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let (path, name) = (folder.join(entry.file_name()), entry.file_name());
        if entry.file_type()?.is_dir() {
            if !PASSED_OVER.iter().any(|passed| name == **passed) {
                collect(root, &path, documents)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(root.join(&path))?;
            documents.insert(path, text);
        }
    }
    Ok(())
}

/// The path without `.` and `..`; `None`: it leaves the checkout.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => normal.pop().then_some(())?,
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    Some(normal)
}

/// Links to files that are not there, or to headings that the document lacks.
fn dead_links(documents: &Documents, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for (page, text) in documents {
        for link in links(text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = page.parent().unwrap_or(Path::new(""));
            let target =
                if file.is_empty() { Some(page.clone()) } else { normal(&folder.join(file)) };
            let Some(target) = target.filter(|target| exists(target)) else {
                wrong.push(format!("{}: `{link}` leads to no file", page.display()));
                continue;
            };
            // A page of the book can only lead to what the book has.
            if page.starts_with(BOOK) && !target.starts_with(BOOK) {
                wrong.push(format!("{}: `{link}` points outside the book", page.display()));
            }
            let headings = documents.get(&target).map(|text| anchors(text));
            if !anchor.is_empty() && !headings.is_some_and(|all| all.contains(anchor)) {
                wrong.push(format!("{}: `{link}` leads to no heading", page.display()));
            }
        }
    }
    wrong
}

/// Pages of the book that its summary does not name, or names twice.
fn unlisted(documents: &Documents) -> Vec<String> {
    let Some(summary) = documents.get(Path::new(SUMMARY)) else {
        return vec![format!("there is no {SUMMARY}")];
    };
    let (mut wrong, mut listed) = (Vec::new(), BTreeSet::new());
    for link in links(summary) {
        let path = normal(&Path::new(BOOK).join(&link)).unwrap_or_default();
        if !listed.insert(path) {
            wrong.push(format!("{SUMMARY}: `{link}` is listed twice"));
        }
    }
    let pages = documents.keys().filter(|path| path.starts_with(BOOK));
    for page in pages.filter(|page| *page != Path::new(SUMMARY) && !listed.contains(*page)) {
        wrong.push(format!("{SUMMARY}: {} is missing", page.display()));
    }
    wrong
}

#[cfg(test)]
mod tests;
