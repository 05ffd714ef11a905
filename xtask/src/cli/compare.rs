//! What can be typed about baselines and comparisons.

use crate::compare::baseline::Name;
use clap::{Args, ValueEnum};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask run job.toml --save-baseline main
  cargo xtask run job.toml --baseline main          run, and compare
  cargo xtask compare main new.json --limits limits.toml --format markdown

Exit codes:
  0   nothing got worse beyond its limit
  1   a figure did, or an item that had figures ended in an error
  2   wrong usage, no report of that name, or nothing to compare")]
pub struct Compare {
    /// The old report: a file that `--format json` wrote, or the name of a baseline.
    pub old: String,
    /// The new report, likewise. If a baseline and a file in this folder have the same name, NAME is the baseline and ./NAME the
    /// file.
    pub new: String,
    /// Limits of figures and items; they override those of the job.
    #[arg(long, value_name = "FILE")]
    pub limits: Option<PathBuf>,
    /// Confidence in percent, for the intervals of all varying figures together.
    #[arg(long, value_name = "PERCENT", default_value_t)]
    pub confidence: Confidence,
    /// In a table, also show unchanged figures.
    #[arg(long)]
    pub all: bool,
    /// The comparison's format.
    #[arg(long, value_enum, default_value_t)]
    pub format: CompareFormat,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What `run` does with baselines.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Baselines")]
pub struct Gate {
    /// Keep the report under this name in the build folder, or in the one that BARECOUNT_BASELINES names, with the value
    /// of every run.
    #[arg(long, value_name = "NAME")]
    pub save_baseline: Option<Name>,
    /// After the run, compare with the report of this name; exit code 1 if a figure got worse beyond its limit. If the report
    /// is printed in another format than a table, the comparison goes to standard error.
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<Name>,
    /// With --baseline: limits of figures and items.
    #[arg(long, value_name = "FILE", requires = "baseline")]
    pub limits: Option<PathBuf>,
}

impl Gate {
    /// Whether the value of every run is needed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.save_baseline.is_some() || self.baseline.is_some()
    }
}

/// A share of one, given in percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence(pub f64);

impl Default for Confidence {
    /// Ten runs on both sides can show something with it in some hundred figures.
    fn default() -> Self {
        Self(0.99)
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 * 100.0)
    }
}

impl FromStr for Confidence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent: f64 = text.parse().map_err(|_| "it is not a number of percent".to_string())?;
        if (50.0..100.0).contains(&percent) {
            return Ok(Self(percent / 100.0));
        }
        Err("it must be 50 or more, and less than 100 percent".to_string())
    }
}

/// Format of a comparison.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum CompareFormat {
    /// For people.
    #[default]
    Table,
    /// One document with every figure.
    Json,
    /// For a comment on a pull request.
    Markdown,
    /// One file for a browser: what changed, and both runs side by side.
    Html,
    /// JUnit's XML: a suite for each item, a case for each figure.
    Junit,
    /// The new figures for github-action-benchmark.
    #[value(name = "customSmallerIsBetter")]
    CustomSmallerIsBetter,
    /// The new figures in Bencher's metric format.
    Bencher,
    /// GitHub's workflow commands, which show regressions at the lines of the job.
    Annotations,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_is_a_share_between_a_half_and_one() {
        for bad in ["100", "49", "-1", "nan", "inf", "x", ""] {
            assert!(bad.parse::<Confidence>().is_err(), "{bad}");
        }
        assert_eq!("95".parse(), Ok(Confidence(0.95)));
        assert_eq!(Confidence::default().to_string().parse(), Ok(Confidence::default()));
    }
}
