//! The commands: those for measuring, and those for developing this project.

use super::{
    Bench, Collect, Color, Compare, Completions, Doctor, Events, Image, Instructions, Lab, Man,
    Mutants, New, Package, Replay, ReportArguments, Run, Schema, Test, Vm,
};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Measures code on the bare machine.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, about, long_about = LONG, after_help = EXIT_CODES)]
pub struct Arguments {
    /// Options of every command.
    #[command(flatten)]
    pub options: Options,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub struct Options {
    /// When to use colour.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// The QEMU program. Default: qemu-system-x86_64 in the search path.
    #[arg(
        long,
        global = true,
        value_name = "PROGRAM",
        env = "BARECOUNT_QEMU",
        hide_env_values = true
    )]
    pub qemu: Option<PathBuf>,
}

pub(super) const LONG: &str = "\
Measures code on the bare machine: boots barecount's firmware in QEMU or writes an image for a USB stick, and shows the report.

Start here:
  cargo xtask run                          a tour of measurements in QEMU
  cargo xtask run --asm 'imul rax, rax'    what one instruction costs
  cargo xtask run my-job.toml              a job of your own (see docs/guide/snippets.md)
  cargo xtask image my-job.toml --out usb.img
  cargo xtask vm --pmu zen4 --iso other.iso      a PMU for another system
  cargo xtask collect --serial /dev/ttyUSB0";

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0   everything was measured, and every expectation was met
  1   an item failed, missed its expectation, or got worse than a baseline; or a test failed
  2   wrong usage, or an error in the job
  3   the machine did not finish (crash, hang, timeout, lost lines), or standard output was closed
  77  nothing could run: the host lacks what the command needs, or the machine what the job needs
  130 a signal interrupted the run; what was measured before is shown";

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// For measuring.
    #[command(flatten)]
    User(User),
    /// For developing this project.
    #[command(flatten)]
    Project(Project),
}

/// Commands that need no checkout.
#[derive(Debug, Subcommand)]
pub enum User {
    /// Boot a job in QEMU and show what it measured.
    Run(Box<Run>),
    /// Create a Rust package with example benchmarks.
    New(New),
    /// Start another system in QEMU, with an emulated PMU.
    Vm(Vm),
    /// Write a disk image that boots on BIOS and UEFI machines.
    Image(Box<Image>),
    /// Read a report from a serial line, a saved log, or standard input.
    Collect(Collect),
    /// Run a job on many machines through labgrid, and show one report for all of them.
    Lab(Lab),
    /// Compare two reports; the exit code states whether a figure got worse.
    Compare(Compare),
    /// Emulate the machine of a report, run its checks there, and show the differences.
    Replay(Replay),
    /// Make one HTML file of one or more saved reports.
    Report(ReportArguments),
    /// List all instruction forms with the results of reports: latency, throughput, or the reason why there is none.
    Instructions(Instructions),
    /// List what can be counted, by name, on any processor.
    Events(Events),
    /// Write the schema of job files, which editors use to complete and check them.
    Schema(Schema),
    /// Write the completions of a shell.
    Completions(Completions),
    /// Write the manual pages.
    Man(Man),
    /// Show the libraries in this program and their licences.
    Licences,
    /// Show which programs are needed, which are installed, and how to install the others. Changes nothing.
    Doctor(Doctor),
}

/// Commands that work on a checkout.
#[derive(Debug, Subcommand)]
pub enum Project {
    /// Run the project's tests: checks of the source, host tests, tests in QEMU.
    Test(Test),
    /// Measure barecount itself: boot time, sizes, overheads.
    Bench(Bench),
    /// Plant mistakes in the code that computes figures and verdicts, and list those that no test detects.
    Mutants(Mutants),
    /// Write `cargo barecount` as one file that needs no checkout: it contains the firmware, loaders and emulated PMU.
    Package(Package),
    /// Check format, lints, documentation and licences.
    Check,
}
