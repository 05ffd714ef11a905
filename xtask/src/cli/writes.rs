//! Arguments of the commands that write something about the tool itself.

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// Arguments of `schema`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  cargo xtask schema --out job.schema.json
Then `#:schema job.schema.json` as the first line of a job makes editors that use Taplo complete and check it.")]
pub struct Schema {
    /// The format to write.
    #[arg(long, value_enum, default_value_t)]
    pub format: SchemaFormat,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Format of the schema.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum SchemaFormat {
    /// A JSON schema of draft 7.
    #[default]
    Json,
    /// A page of the guide.
    Markdown,
}

/// Arguments of `completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples: for this shell only, and for every bash with bash-completion
  source <(cargo xtask completions bash)
  cargo xtask completions bash --out ~/.local/share/bash-completion/completions/cargo")]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
    /// Write them to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Arguments of `man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  cargo xtask man --out ~/.local/share/man/man1")]
pub struct Man {
    /// Write a page for each command to this folder. Without it, print the first page.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
