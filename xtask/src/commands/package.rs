//! `package`: the installed program as one file to pass on, with all that it carries.

use crate::build::Tree;
use crate::cli::Package;
use crate::parts::pack;
use crate::process::said;
use crate::setup::toolchain::cargo;
use crate::setup::{self, Need, Toolchain};
use crate::{Failure, Result, output, progress};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The program's name, which makes it a subcommand of cargo.
const PROGRAM: &str = "cargo-barecount";

/// Runs the command.
///
/// # Errors
/// What is missing or does not build; the file cannot be written.
pub fn run(arguments: &Package) -> Result<u8> {
    let toolchain = Toolchain::find()?;
    setup::ensure(Need::build(), &toolchain)?;
    let tree = Tree::new(toolchain)?;
    tree.writable()?;
    if let Some(path) = &arguments.parts {
        output::write(path, pack::pack(&tree)?)?;
    }
    if let Some(path) = &arguments.out {
        output::check(path)?;
        let bytes = program(&tree, &arguments.profile)?;
        output::write(path, &bytes)?;
        fs::set_permissions(path, Permissions::from_mode(0o755))
            .map_err(Failure::file("write", path))?;
        output::say(&format!("{}: {} bytes", path.display(), bytes.len()));
    }
    Ok(0)
}

/// Builds it; returns its file without symbols.
fn program(tree: &Tree, profile: &str) -> Result<Vec<u8>> {
    let mut command = Command::new(cargo());
    command.current_dir(tree.root()).args(["build", "--locked", "--package", "xtask"]);
    command.args(["--profile", profile, "--bin", PROGRAM, "--target-dir"]).arg(tree.target());
    let message = format!("building {PROGRAM} (some minutes)");
    let output = progress::output(&mut command, &message);
    let output = output.map_err(|error| Failure::Tool(format!("cargo cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(Failure::Tool(format!("{PROGRAM} does not build:\n{}", said(&output))));
    }
    let built = tree.target().join(profile).join(PROGRAM);
    let smaller = tree.installed_program(&built)?;
    fs::read(&smaller).map_err(Failure::file("read", &smaller))
}
