//! `replay`: a machine of a report, emulated.

use super::{CountingOption, Timeout};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask run --bring-up --pmu zen4 --format json --out zen4.json
  cargo xtask replay zen4.json
  cargo xtask replay strange.log --keep there      a log of a serial line or a file of the stick

The exit code is 0 if nothing differs, 1 if something does.")]
pub struct Replay {
    /// A report of a bring-up: what `--format json` wrote, a log of a serial line, or a file of the stick. Other reports have only
    /// the machine record, which states less.
    pub report: PathBuf,
    /// Only these checks: names, or prefixes with `*`. Default: those of the report.
    #[arg(long = "check", value_name = "NAME")]
    pub checks: Vec<String>,
    /// What counts for the emulated PMU.
    #[command(flatten)]
    pub by: CountingOption,
    /// A fault of the emulated PMU: for tests.
    #[arg(long, value_name = "NAME", hide = true, value_parser = super::fault::fault)]
    pub pmu_fault: Option<String>,
    /// Stop with an error after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = Timeout(300.0))]
    pub timeout: Timeout,
    /// The comparison's format.
    #[arg(long, value_enum, default_value_t)]
    pub format: ReplayFormat,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Keep the emulated machine's files, including its serial log, in this folder.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
}

/// Format of a replay's comparison.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum ReplayFormat {
    /// For people.
    #[default]
    Table,
    /// One document with every difference.
    Json,
}
