//! The part of the settings that a run takes.
//!
//! cargo-mutants' own `--file` and `--re` do not do: the first adds to the settings' globs, and the second lets mutants
//! that leave out a field of a struct through (27.1.0).

use super::{CONFIG, MutantsError};
use std::path::Path;
use toml::{Table, Value};
use wildmatch::WildMatch;

const KEY: &str = "examine_globs";

fn malformed(reason: impl ToString) -> MutantsError {
    MutantsError::Malformed { file: CONFIG, reason: reason.to_string() }
}

fn parse(text: &str) -> Result<Table, MutantsError> {
    text.parse().map_err(malformed)
}

/// The globs of the files that are examined.
///
/// # Errors
/// The settings are not TOML, or have none.
pub fn globs(text: &str) -> Result<Vec<String>, MutantsError> {
    strings(text, KEY)
}

fn strings(text: &str, key: &str) -> Result<Vec<String>, MutantsError> {
    let settings = parse(text)?;
    let list = settings.get(key).and_then(Value::as_array);
    let strings = list.and_then(|list| {
        list.iter().map(|one| one.as_str().map(String::from)).collect::<Option<Vec<_>>>()
    });
    strings.filter(|all| !all.is_empty()).ok_or_else(|| malformed(format!("no list `{key}`")))
}

/// The packages whose tests mutants are tried on.
///
/// # Errors
/// The settings are not TOML, or name none.
pub fn packages(text: &str) -> Result<Vec<String>, MutantsError> {
    strings(text, "test_package")
}

/// Whether a file is one of those, before exclusions.
#[must_use]
pub fn examines(globs: &[String], file: &str) -> bool {
    globs.iter().any(|glob| WildMatch::new(glob).matches(file))
}

/// The settings, of which only what is in `paths` is examined. The paths are those of files, or of folders, from the
/// checkout's root; none: everything.
///
/// # Errors
/// The settings are malformed, or a path holds nothing of theirs.
pub fn restrict(text: &str, paths: &[&Path]) -> Result<String, MutantsError> {
    let all = globs(text)?;
    let mut kept = Vec::new();
    for path in paths {
        let found = within(&all, &path.to_string_lossy());
        if found.is_empty() {
            return Err(MutantsError::Outside { path: path.to_path_buf(), globs: all });
        }
        kept.extend(found.into_iter().filter(|glob| !kept.contains(glob)).collect::<Vec<_>>());
    }
    let mut settings = parse(text)?;
    if !paths.is_empty() {
        settings.insert(KEY.to_string(), Value::from(kept));
    }
    Ok(settings.to_string())
}

/// What `path` and `globs` have in common, as globs.
fn within(globs: &[String], path: &str) -> Vec<String> {
    let path = path.trim_end_matches('/');
    let inside = |glob: &String| {
        let below = format!("{path}/");
        // A folder's own glob ends in `/**`, which needs something after the slash.
        if examines(std::slice::from_ref(glob), path) || glob.starts_with(&format!("{path}/**")) {
            return if path.ends_with(".rs") { Some(path.to_string()) } else { Some(below + "**") };
        }
        glob.starts_with(&below).then(|| glob.clone())
    };
    globs.iter().filter_map(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = r#"
examine_globs = ["kernel/src/counting/**", "kernel/src/statistics*", "xtask/src/collect.rs", "xtask/src/render/**"]
exclude_re = ["Debug"]
"#;

    fn kept(paths: &[&str]) -> Vec<String> {
        let paths: Vec<&Path> = paths.iter().map(Path::new).collect();
        let text = restrict(SETTINGS, &paths).unwrap();
        assert!(text.contains("exclude_re = [\"Debug\"]"), "{text}");
        globs(&text).unwrap()
    }

    #[test]
    fn a_run_examines_what_the_paths_and_the_settings_have_in_common() {
        assert_eq!(kept(&[]).len(), 4);
        assert_eq!(kept(&["xtask"]), ["xtask/src/collect.rs", "xtask/src/render/**"]);
        assert_eq!(kept(&["kernel/src/counting/"]), ["kernel/src/counting/**"]);
        assert_eq!(kept(&["kernel/src/counting/job"]), ["kernel/src/counting/job/**"]);
        assert_eq!(kept(&["kernel/src/statistics.rs"]), ["kernel/src/statistics.rs"]);
        assert_eq!(kept(&["xtask/src/collect.rs", "xtask/src/collect.rs"]).len(), 1);
    }

    #[test]
    fn a_path_that_is_not_examined_is_refused() {
        for path in ["boot", "kernel/src/count", "kernel/src/run.rs", "xtask/src/render.rs"] {
            let said = restrict(SETTINGS, &[Path::new(path)]).unwrap_err().to_string();
            let begin = format!("{path} has nothing that .cargo/mutants.toml examines: kernel/");
            assert!(said.starts_with(&begin), "{said}");
        }
    }

    #[test]
    fn the_projects_own_settings_name_the_packages_whose_tests_are_run() {
        let root = crate::build::root().expect("cargo runs this");
        let text = std::fs::read_to_string(root.join(CONFIG)).unwrap();
        assert_eq!(packages(&text).unwrap(), ["arch", "events", "kernel", "protocol", "xtask"]);
        let said = packages(SETTINGS).unwrap_err().to_string();
        assert_eq!(said, ".cargo/mutants.toml: no list `test_package`");
    }

    #[test]
    fn settings_without_files_are_no_settings() {
        for text in ["", "examine_globs = []", "examine_globs = [1]", "x"] {
            let said = globs(text).unwrap_err().to_string();
            assert!(said.starts_with(".cargo/mutants.toml: "), "{said}");
        }
    }
}
