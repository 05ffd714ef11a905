//! How long a user waits: from the command to the answer, where everything is built.

use super::Figure;
use crate::build::Tree;
use crate::machine::MachineError;
use crate::process::said;
use crate::progress::Work;
use crate::setup::toolchain::cargo;
use crate::{Failure, Result};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What is typed.
const COMMAND: [&str; 4] = ["xtask", "run", "--asm", "nop"];

/// Wall time of the command, cargo's own look at the host tool included, so many times after one that is not counted.
pub(super) fn measure(tree: &Tree, count: u32) -> Result<Figure> {
    let mut work = Work::of(u64::from(count), "from command to answer");
    let mut times = Vec::new();
    for round in 0..=count {
        work.tick(u64::from(round));
        let mut command = Command::new(cargo());
        command.args(COMMAND).current_dir(tree.root()).stdin(Stdio::null());
        let start = Instant::now();
        let output = command.output().map_err(|error| Failure::Tool(format!("cargo: {error}")))?;
        let elapsed = start.elapsed();
        if !output.status.success() {
            let text = format!("cargo {} failed: {}", COMMAND.join(" "), said(&output));
            return Err(MachineError::Unfinished(text).into());
        }
        if round > 0 {
            times.push(elapsed.as_secs_f64());
        }
    }
    Ok(Figure::time("warm, from command to answer: cargo xtask run --asm nop", times))
}
