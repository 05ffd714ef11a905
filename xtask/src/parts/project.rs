//! The project that the installed program is called in.

use crate::process::said;
use crate::setup::SetupError;
use crate::setup::toolchain::cargo;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Deserialize)]
struct Metadata {
    target_directory: PathBuf,
}

/// Where cargo builds the project that the working folder is in; none outside of one.
///
/// # Errors
/// Cargo refuses the project.
pub fn build_folder() -> Result<Option<PathBuf>, SetupError> {
    let refused = |why: String| SetupError {
        need: "the build folder of this project",
        why,
        hint: "Name a folder for baselines by the variable BARECOUNT_BASELINES".to_string(),
    };
    let here = std::env::current_dir().map_err(|error| refused(error.to_string()))?;
    if !here.ancestors().any(is_project) {
        return Ok(None);
    }
    let mut command = Command::new(cargo());
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    let output = command.output().map_err(|e| refused(format!("cargo cannot be run: {e}")))?;
    if !output.status.success() {
        return Err(refused(format!("cargo metadata: {}", said(&output))));
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|error| refused(format!("cargo metadata: {error}")))?;
    Ok(Some(metadata.target_directory))
}

fn is_project(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file()
}
