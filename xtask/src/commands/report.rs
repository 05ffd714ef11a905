//! `report`: one HTML file of saved reports.

use crate::cli::ReportArguments;
use crate::compare::baseline::{Baselines, file_of};
use crate::document::Document;
use crate::{Failure, Result, output, page};
use std::path::{Path, PathBuf};

/// Runs the command.
///
/// # Errors
/// A report that cannot be read, or a page that cannot be written.
pub fn run(arguments: &ReportArguments) -> Result<u8> {
    // Files alone need no project around them.
    let baselines = Baselines::find().ok();
    let named: Vec<&str> = arguments.files.iter().map(String::as_str).collect();
    let files: Vec<PathBuf> = named.iter().map(|one| file_of(one, baselines.as_ref())).collect();
    let out = arguments.out.clone().unwrap_or_else(|| beside(named[0]));
    let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    output::distinct(&[&out], &inputs)?;
    output::check(&out)?;
    let text = page::render(&documents(&named, baselines.as_ref())?, None);
    output::write(&out, text)?;
    output::say(&format!("written: {}", out.display()));
    Ok(0)
}

/// The page of a report, in the folder in which one is.
fn beside(named: &str) -> PathBuf {
    let name =
        Path::new(named).file_stem().map_or_else(|| named.into(), std::ffi::OsStr::to_os_string);
    PathBuf::from(name).with_extension("html")
}

/// Reads all of them. Where several stand side by side, each has the part of its name that the others do not have.
///
/// # Errors
/// The first that cannot be read.
pub(super) fn documents(named: &[&str], baselines: Option<&Baselines>) -> Result<Vec<Document>> {
    let read = |(named, short): (&&str, String)| {
        let path = file_of(named, baselines);
        let bytes = std::fs::read(&path).map_err(Failure::file("read", &path))?;
        Ok(page::read(&bytes, &short)?)
    };
    named.iter().zip(short(named)).map(read).collect()
}

/// File names without folder and ending, if they differ; else as they were typed.
fn short(named: &[&str]) -> Vec<String> {
    let stem = |name: &&str| {
        Path::new(name)
            .file_stem()
            .map_or((*name).to_string(), |stem| stem.to_string_lossy().into_owned())
    };
    let stems: Vec<String> = named.iter().map(stem).collect();
    let differ = (1..stems.len()).all(|index| !stems[..index].contains(&stems[index]));
    if differ { stems } else { named.iter().map(ToString::to_string).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_runs_side_by_side_have_names_that_differ() {
        assert_eq!(short(&["a/old.json", "b/new.json"]), ["old", "new"]);
        assert_eq!(short(&["a/run.json", "b/run.json"]), ["a/run.json", "b/run.json"]);
        assert_eq!(beside("results/run.json"), Path::new("run.html"));
        assert_eq!(beside("main"), Path::new("main.html"));
    }
}
