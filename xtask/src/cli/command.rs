//! The commands: those of whoever measures, and those of whoever works on this project.

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
    /// What holds for every command.
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
    /// The QEMU to start, in place of the search path's qemu-system-x86_64.
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
Measures code on the bare machine: boots barecount's firmware in QEMU or makes an image for a USB stick, and renders what it reports.

Start here:
  cargo xtask run                          a tour of measurements in QEMU
  cargo xtask run --asm 'imul rax, rax'    what one instruction costs
  cargo xtask run my-job.toml              a job of your own (see docs/guide/snippets.md)
  cargo xtask image my-job.toml --out usb.img
  cargo xtask vm --pmu zen4 --iso other.iso      a PMU for another system
  cargo xtask collect --serial /dev/ttyUSB0";

pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0   everything was measured, and every expectation met
  1   a measurement missed its expectation, got worse than a baseline, or a test failed
  2   bad usage or a bad job
  3   the machine did not finish (crash, hang, timeout, lost lines), or standard output took no more
  77  nothing could run here
  130 a signal interrupted the run; what was measured before is shown";

/// All commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// For whoever measures.
    #[command(flatten)]
    User(User),
    /// For whoever works on this project.
    #[command(flatten)]
    Project(Project),
}

/// Commands that need no checkout.
#[derive(Debug, Subcommand)]
pub enum User {
    /// Boot a job in QEMU and show what it measured.
    Run(Box<Run>),
    /// Write a Rust package with benchmarks, to begin with.
    New(New),
    /// Start another system in QEMU, with an emulated PMU below it.
    Vm(Vm),
    /// Write a disk image that starts on BIOS and UEFI machines.
    Image(Box<Image>),
    /// Read a report from a serial line, a saved log, or standard input.
    Collect(Collect),
    /// Run a job on many machines, through labgrid, and show one report of all.
    Lab(Lab),
    /// Compare two reports, and tell by the exit code whether something got worse.
    Compare(Compare),
    /// Emulate the machine of a report, and show what is otherwise there.
    Replay(Replay),
    /// Make one HTML file of one or more saved reports.
    Report(ReportArguments),
    /// List all instruction forms, and what reports say of them: latency, throughput, or why there is neither.
    Instructions(Instructions),
    /// List what can be counted, by name, on any processor.
    Events(Events),
    /// Write the form of job files, by which editors complete and check them.
    Schema(Schema),
    /// Write the completions of a shell.
    Completions(Completions),
    /// Write the manual pages.
    Man(Man),
    /// Show whose code is in this program, and under which licences.
    Licences,
    /// Say what is needed, what is there, and how the rest would be got. Changes nothing.
    Doctor(Doctor),
}

/// Commands that work on a checkout.
#[derive(Debug, Subcommand)]
pub enum Project {
    /// Run the project's tests: checks of the source, host tests, tests in QEMU.
    Test(Test),
    /// Measure barecount itself: boot time, sizes, overheads.
    Bench(Bench),
    /// Plant mistakes in the code that makes figures and verdicts, and tell which no test notices.
    Mutants(Mutants),
    /// Write `cargo barecount` as one file that takes no checkout: firmware, loaders and emulated PMU are in it.
    Package(Package),
    /// Check format, lints, documentation and licences.
    Check,
}
