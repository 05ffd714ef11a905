//! `lab`: a job on many machines, through labgrid.

use super::{Emulated, Output, Pmu};
use crate::job::Overrides;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `lab`.
#[derive(Clone, Debug, Args)]
pub struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub command: LabCommand,
}

/// The commands of `lab`.
#[derive(Clone, Debug, Subcommand)]
pub enum LabCommand {
    /// Create example environments for labgrid with their strategy, and a job for LAVA.
    New(LabNew),
    /// Run a job on each machine, and show one report for all of them.
    Run(Box<LabRun>),
}

/// Arguments of `lab new`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  cargo xtask lab new lab
  cargo xtask lab run --env lab/qemu.yaml")]
pub struct LabNew {
    /// The folder to create. Nothing in it is overwritten.
    pub path: PathBuf,
}

/// Arguments of `lab run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask lab run job.toml --env lab/qemu.yaml --pmu zen4          without a coordinator
  cargo xtask lab run job.toml --env lab/stick.yaml --places cpu=zen4  every place with that tag
  cargo xtask lab run job.toml --env lab/pxe.yaml --places name=board7

labgrid reserves and acquires each place, switches its power, and stops at its timeouts.")]
pub struct LabRun {
    /// The job file; without it and without --asm, a tour of measurements.
    pub job: Option<PathBuf>,
    /// Changes to the job.
    #[command(flatten)]
    pub overrides: Overrides,
    /// labgrid's environment: the drivers of a machine, and the strategy.
    #[arg(long, value_name = "FILE", help_heading = "Lab")]
    pub env: PathBuf,
    /// Run on every place of the coordinator whose tags have these values; `name` is the name of the place. Without it, on the
    /// machine that the environment describes, without a coordinator.
    #[arg(long, value_name = "TAG=VALUE,…", value_delimiter = ',', value_parser = tag, help_heading = "Lab")]
    pub places: Vec<String>,
    /// The coordinator.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "LG_COORDINATOR",
        hide_env_values = true,
        default_value = "127.0.0.1:20408",
        help_heading = "Lab"
    )]
    pub coordinator: String,
    /// The target of the environment, if it has several.
    #[arg(long, value_name = "NAME", default_value = "main", help_heading = "Lab")]
    pub target: String,
    /// Skip a place that does not become free within this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = super::Timeout(3600.0), help_heading = "Lab")]
    pub wait: super::Timeout,
    /// Stop a machine that has not finished its report this many seconds after power on. Default: the environment's
    /// timeout.
    #[arg(long, value_name = "SECONDS", help_heading = "Lab")]
    pub timeout: Option<super::Timeout>,
    /// Treat a machine as hung that writes nothing for this many seconds. Default: the environment's timeout.
    #[arg(long, value_name = "SECONDS", help_heading = "Lab")]
    pub silence: Option<super::Timeout>,
    /// The PMU of QEMU's machines, if a place has no tag `pmu`.
    #[arg(long, value_name = "MODEL", value_parser = Pmu::emulated_parser(), help_heading = "Lab")]
    pub pmu: Option<Emulated>,
    /// Have the firmware write KTAP to the serial line, with the records as diagnostics.
    #[arg(long, help_heading = "Lab")]
    pub ktap: bool,
    /// A Python that has labgrid. Default: the one that barecount installs.
    #[arg(long, value_name = "PROGRAM", help_heading = "Lab")]
    pub python: Option<PathBuf>,
    /// Keep the booted files and each machine's serial log in this folder.
    #[arg(long, value_name = "DIR", help_heading = "Report")]
    pub keep: Option<PathBuf>,
    /// The report's format.
    #[command(flatten)]
    pub output: LabOutput,
}

/// How to show the report of many machines.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Report")]
pub struct LabOutput {
    /// The report's format.
    #[arg(long, value_enum, default_value_t)]
    pub format: LabFormat,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Format of a report of many machines.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum LabFormat {
    /// For people: a column for each machine.
    #[default]
    Table,
    /// One document with every machine's report.
    Json,
    /// One row per figure, with the machine in the first column.
    Csv,
    /// One file for a browser, the machines side by side.
    Html,
}

impl LabOutput {
    /// How wide the tables may be, as for one machine's report.
    #[must_use]
    pub fn width(&self) -> crate::primitives::table::Width {
        Output { out: self.out.clone(), ..Output::default() }.width()
    }
}

/// A tag and its value, as labgrid takes them.
fn tag(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(text.to_string()),
        _ => Err("it must be a tag and its value, such as cpu=zen4".to_string()),
    }
}
