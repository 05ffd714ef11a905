//! What tests read our TAP and KTAP with, in addition to what the distribution has: a parser of TAP, and the checker that LAVA holds
//! its jobs against its schema with.

use super::{SetupError, Status, labgrid};
use crate::build::{root, target};
use crate::process::said;
use std::path::PathBuf;
use std::process::Command;

/// Packages of Python, each of one version.
const PACKAGES: [&str; 2] = ["tap.py==3.2.1", "voluptuous==0.16.0"];
/// What lies there then.
const MODULES: [&str; 2] = ["tap/parser.py", "voluptuous/__init__.py"];

/// Where they are put: a folder for PYTHONPATH.
///
/// # Errors
/// There is no checkout.
pub fn folder() -> Result<PathBuf, SetupError> {
    Ok(target(root()?).join("tools/parsers-1"))
}

pub(super) fn hint() -> String {
    "`test` installs them if Python's pip reaches a package index".to_string()
}

pub(super) fn status() -> Status {
    let missing = |why: String| Status::Missing { why };
    match folder() {
        Ok(folder) if MODULES.iter().all(|module| folder.join(module).is_file()) => {
            Status::Present(folder.display().to_string())
        }
        Ok(_) => missing("they are not installed yet".to_string()),
        Err(error) => missing(error.to_string()),
    }
}

pub(super) fn install() -> Result<(), String> {
    let python = labgrid::python().ok_or("labgrid's Python is missing")?;
    let folder = folder().map_err(|error| error.to_string())?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade"]);
    match pip.arg("--target").arg(&folder).args(PACKAGES).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(said(&output)),
        Err(error) => Err(format!("{} cannot be run: {error}", python.display())),
    }
}
