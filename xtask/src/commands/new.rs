//! `new`: write a package with benchmarks.

use crate::benchmarks::template;
use crate::{Result, cli, output, tool};

/// Runs the command.
///
/// # Errors
/// The folder is not empty or cannot be written to.
pub fn run(arguments: &cli::New) -> Result<u8> {
    template::write(&arguments.path)?;
    let path = arguments.path.display();
    output::say(&format!(
        "wrote {path}: benchmarks in benches/counts.rs; measure them with `{} run --crate {path}`",
        tool::called()
    ));
    Ok(0)
}
