//! axe-core, the checker of accessibility that the tests of HTML reports load into a browser; of one version, as rules differ.

use super::{SetupError, Status};
use crate::build::{root, target};
use crate::process::{find, said};
use std::path::PathBuf;
use std::process::Command;

/// The version.
pub const VERSION: &str = "4.14.1";

/// Where npm puts it: below the build folder.
fn folder() -> Result<PathBuf, SetupError> {
    Ok(target(root()?).join("tools").join(format!("axe-{VERSION}")))
}

/// The script, if it is there.
#[must_use]
pub fn script() -> Option<PathBuf> {
    let script = folder().ok()?.join("node_modules/axe-core/axe.min.js");
    script.is_file().then_some(script)
}

/// What to type to have it.
pub(super) fn hint() -> String {
    "`test` installs it if npm is there. Else install npm with your system's package manager"
        .to_string()
}

pub(super) fn status() -> Status {
    match script() {
        Some(path) => Status::Present(format!("{VERSION}, {}", path.display())),
        None => Status::Missing { why: "it is not installed yet".to_string() },
    }
}

/// Fetches it. Nothing of it is run here.
pub(super) fn install() -> Result<(), String> {
    let npm = find("npm").ok_or("there is no npm in the search path")?;
    let folder = folder().map_err(|error| error.to_string())?;
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut command = Command::new(npm);
    command.args([
        "install",
        "--no-save",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefix",
    ]);
    command.arg(&folder).arg(format!("axe-core@{VERSION}"));
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(format!("npm cannot be run: {error}")),
    }
}
