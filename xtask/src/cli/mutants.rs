//! `mutants`: its arguments.

use super::Shard;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `mutants`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask mutants --list kernel/src/statistics.rs     what would be planted there
  cargo xtask mutants kernel/src/history                  plant them, one after the other
  cargo xtask mutants --fast                              build all at once, each with a switch
  cargo xtask mutants --shard 0/16                        one sixteenth of all")]
pub struct Mutants {
    /// Files or folders to plant mistakes in. Default: all that .cargo/mutants.toml names, which takes half a day without
    /// `--fast`.
    pub paths: Vec<PathBuf>,
    /// Take every Nth mutant only, beginning with the Kth, from 0.
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    /// Build all of them at once, each enabled by a switch, and run only the tests that reach it.
    #[arg(long)]
    pub fast: bool,
    /// Reuse the detected mutants of the previous run in unchanged code, and test only the others.
    #[arg(long, requires = "fast")]
    pub resume: bool,
    /// Only list them.
    #[arg(long, conflicts_with = "fast")]
    pub list: bool,
}
