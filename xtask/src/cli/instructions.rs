//! `instructions`: the table of all instruction forms.

use clap::{Args, ValueEnum};
use protocol::bits::Bits;
use std::path::PathBuf;

/// Arguments of `instructions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask instructions --extension AVX2    what can be measured, and what cannot, and why
  cargo xtask run xtask/jobs/all-instructions.toml --format json --out all.json
  cargo xtask instructions all.json --format xml --architecture SKL --out skl.xml

A run of all forms can be divided: `shard = \"3/16\"` in the job, or `run --shard 3/16`. Reports of the parts, and of an \
interrupted run, are joined here; they must be of the same machine.")]
pub struct Instructions {
    /// Reports: files that `--format json` wrote, names of baselines, or logs of a serial line. Without reports, the forms are listed.
    pub reports: Vec<String>,
    /// Only forms of this extension, such as AVX2; may be given several times.
    #[arg(long = "extension", value_name = "NAME")]
    pub extensions: Vec<String>,
    /// Forms of 64-bit code or of 32-bit code (compatibility mode). Default: 64.
    #[arg(long, value_name = "64|32")]
    pub bits: Option<Bits>,
    /// Only forms in this state; may be given several times.
    #[arg(long = "state", value_enum, value_name = "STATE")]
    pub states: Vec<FormState>,
    /// The table's format.
    #[arg(long, value_enum, default_value_t)]
    pub format: InstructionsFormat,
    /// The name of the microarchitecture for `--format xml`.
    #[arg(long, value_name = "NAME", default_value = "MEASURED")]
    pub architecture: String,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Format of the table.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum InstructionsFormat {
    /// For people.
    #[default]
    Table,
    /// One row for each form.
    Csv,
    /// One document.
    Json,
    /// The layout of uops.info's file, with the measured forms.
    Xml,
}

/// What is known of a form.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum FormState {
    /// All measurable figures have results.
    Measured,
    /// Some of them have.
    Partly,
    /// It can be measured, but no report has it.
    Open,
    /// The processor does not have it.
    Absent,
    /// An item ended in an exception.
    Failed,
    /// It cannot be measured by itself.
    Refused,
}

impl FormState {
    /// Its name, as the table has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Partly => "partly",
            Self::Open => "open",
            Self::Absent => "absent",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}
