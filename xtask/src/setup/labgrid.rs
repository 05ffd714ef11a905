//! labgrid, which drives machines in labs; of one version, in an environment of Python's of its own.

use super::{SetupError, Status};
use crate::build::{root, target};
use crate::parts;
use crate::process::{find, said, stdout_of};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version.
pub const VERSION: &str = "26.0.1";
/// What Python has to have for environments; Debian has the latter in a package of its own.
const MODULES: &str = "import venv, ensurepip";

/// Where it is put: below the build folder, or where the installed program has its files.
fn folder() -> Result<PathBuf, SetupError> {
    let name = format!("labgrid-{VERSION}");
    if parts::installed().is_some() {
        let failed = |error: parts::PartsError| SetupError {
            need: "a folder for labgrid",
            why: error.to_string(),
            hint: String::new(),
        };
        return Ok(parts::extract::cache().map_err(failed)?.join(name));
    }
    Ok(target(root()?).join("tools").join(name))
}

/// Its Python, if it is there.
#[must_use]
pub fn python() -> Option<PathBuf> {
    find(folder().ok()?.join("bin/python"))
}

/// labgrid's version in what a Python has.
#[must_use]
pub fn version(python: &Path) -> Option<String> {
    let asked = "import importlib.metadata as m; print(m.version('labgrid'))";
    stdout_of(Command::new(python).args(["-c", asked]))
}

/// What to type to have it.
pub(super) fn hint() -> String {
    format!(
        "`lab` installs it if Python's pip reaches a package index. Else type: python3 -m venv DIR; DIR/bin/pip install \
             labgrid=={VERSION}; and name DIR/bin/python by --python"
    )
}

pub(super) fn status() -> Status {
    match python().and_then(|python| Some((version(&python)?, python))) {
        Some((_, python)) if !has_its_python(&python.with_file_name("labgrid-client")) => {
            let why =
                format!("{}: its programs name another folder: it was moved", python.display());
            Status::Missing { why }
        }
        Some((found, python)) if found == VERSION => {
            Status::Present(format!("{VERSION}, {}", python.display()))
        }
        Some((found, python)) => {
            Status::Missing { why: format!("{} has {found}", python.display()) }
        }
        None => Status::Missing { why: "it is not installed yet".to_string() },
    }
}

/// Whether the Python is there that a program of the environment names in its first lines. The path is that of the folder in which
/// the environment was made; pip puts it after `exec` where it is too long for the kernel.
fn has_its_python(program: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(program) else { return false };
    let words = text.lines().take(2).flat_map(str::split_whitespace);
    let mut paths = words.map(|word| word.trim_start_matches("#!").trim_matches(['\'', '"']));
    paths.any(|path| path.starts_with('/') && path.contains("python") && Path::new(path).exists())
}

/// Whether there is a Python that makes environments.
pub(super) fn python_status() -> Status {
    let Some(python) = find("python3") else {
        return Status::Missing { why: "no python3 in the search path".to_string() };
    };
    match Command::new(&python).args(["-c", MODULES]).output() {
        Ok(output) if output.status.success() => Status::Present(python.display().to_string()),
        Ok(output) => {
            let said = said(&output);
            let last = said.lines().last().unwrap_or_default();
            Status::Missing { why: format!("{}: {last}", python.display()) }
        }
        Err(error) => Status::Missing { why: format!("{}: {error}", python.display()) },
    }
}

/// Fetches it. An environment has its own path in its programs, so it is made where it stays, and one that was begun is made
/// again.
pub(super) fn install() -> Result<(), String> {
    let python = find("python3").ok_or("there is no python3 in the search path")?;
    let folder = folder().map_err(|error| error.to_string())?;
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(format!("{} cannot be run: {error}", python.display())),
    };
    run(Command::new(&python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(pip.arg(format!("labgrid=={VERSION}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_python_has_no_labgrid() {
        assert_eq!(version(Path::new("/bin/false")), None);
        assert_eq!(version(Path::new("/nowhere/python")), None);
    }

    /// A build folder that was moved has programs that name the folder it was made in.
    #[test]
    fn a_moved_environment_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let [python, program] = ["python3", "labgrid-client"].map(|name| folder.path().join(name));
        let write = |text: String| std::fs::write(&program, text).unwrap();
        assert!(!has_its_python(&program), "it is not there");
        let short = format!("#!{}\nimport sys\n", python.display());
        let long = format!("#!/bin/sh\n'''exec' {} \"$0\" \"$@\"\n' '''\n", python.display());
        for text in [short, long] {
            write(text);
            assert!(!has_its_python(&program));
            std::fs::write(&python, "").unwrap();
            assert!(has_its_python(&program));
            std::fs::remove_file(&python).unwrap();
        }
    }
}
