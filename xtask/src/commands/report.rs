//! `report`: one HTML file of saved reports.

use crate::cli::ReportArguments;
use crate::compare::baseline::{Baselines, file_of};
use crate::document::Document;
use crate::text::printable;
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
    let out = arguments.out.clone().unwrap_or_else(|| beside(&files[0]));
    let inputs: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    output::distinct(&[&out], &inputs)?;
    output::check(&out)?;
    let text = page::render(&documents(&named, baselines.as_ref())?, None);
    output::write(&out, text)?;
    output::say(&format!("written: {}", out.display()));
    Ok(0)
}

/// The page of a report's file, in the folder in which one is.
fn beside(file: &Path) -> PathBuf {
    // Only the ending is cut: what is before it may have dots of its own.
    let mut name = file.file_stem().unwrap_or(file.as_os_str()).to_os_string();
    name.push(".html");
    name.into()
}

/// Reads all of them. Where several stand side by side, each has the part of its name that the others do not have.
///
/// # Errors
/// The first that cannot be read.
pub(super) fn documents(named: &[&str], baselines: Option<&Baselines>) -> Result<Vec<Document>> {
    let files: Vec<PathBuf> = named.iter().map(|one| file_of(one, baselines)).collect();
    let read = |((named, file), short): ((&&str, &PathBuf), String)| {
        let bytes = std::fs::read(file).map_err(Failure::file("read", file))?;
        // Errors name it as it was typed.
        let mut document = page::read(&bytes, named)?;
        document.name = printable(&short).into_owned();
        Ok(document)
    };
    named.iter().zip(&files).zip(short(named, &files)).map(read).collect()
}

/// File names without folder and ending, if they differ; else as they were typed.
fn short(named: &[&str], files: &[PathBuf]) -> Vec<String> {
    let stem = |file: &PathBuf| {
        file.file_stem().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    let differ = (1..stems.len()).all(|index| !stems[..index].contains(&stems[index]));
    if differ { stems } else { named.iter().map(ToString::to_string).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_runs_side_by_side_have_names_that_differ() {
        let short = |named: &[&str]| {
            let files: Vec<PathBuf> = named.iter().map(PathBuf::from).collect();
            super::short(named, &files)
        };
        assert_eq!(short(&["a/old.json", "b/new.json"]), ["old", "new"]);
        assert_eq!(short(&["a/run.json", "b/run.json"]), ["a/run.json", "b/run.json"]);
        assert_eq!(short(&["run-0.1.json", "run-0.2.json"]), ["run-0.1", "run-0.2"]);
    }

    #[test]
    fn the_page_of_each_report_has_its_whole_name() {
        let page = |file: &str| beside(Path::new(file));
        assert_eq!(page("results/run.json"), Path::new("run.html"));
        assert_eq!(page("main"), Path::new("main.html"));
        assert_eq!(page("run-0.1.json"), Path::new("run-0.1.html"));
    }

    #[test]
    fn baselines_with_dots_in_their_names_keep_them() {
        let target = tempfile::tempdir().unwrap();
        let baselines = Baselines::in_folder(target.path());
        let report = r#"{"report":1,"run":{},"exit_code":0,"records":[]}"#;
        for name in ["v1.2", "v1.3"] {
            baselines.save(&name.parse().unwrap(), report).unwrap();
            let file = file_of(name, Some(&baselines));
            assert_eq!(beside(&file), PathBuf::from(format!("{name}.html")));
        }
        let read = documents(&["v1.2", "v1.3"], Some(&baselines)).unwrap();
        let names: Vec<&str> = read.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["v1.2", "v1.3"]);
    }

    #[test]
    fn what_is_no_report_is_named_as_it_was_typed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.csv");
        std::fs::write(&file, "item,name\n").unwrap();
        let typed = file.to_str().unwrap();
        let error = documents(&[typed], None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{typed} is not a report")), "{error}");
    }
}
