//! What can be typed.

use crate::job::Overrides;
use crate::primitives::table::Width;
use clap::{ArgGroup, Args, ValueEnum};
use protocol::serial::SerialPorts;
use std::path::{Path, PathBuf};
use stick::upload::Target;

/// Arguments of `run`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "\
Examples:
  cargo xtask run --asm 'add rax, rbx' --init 'mov rbx, 7'
  cargo xtask run --asm 'mov r14, [r14]' --init 'mov [r14], r14'      L1 load-to-use latency
  cargo xtask run --latency 'imul r64, r64' --throughput 'imul r64, r64'
  cargo xtask run --pmu zen4                                          an emulated PMU
  cargo xtask run --asm 'push rax; pop rbx' --exact                   counts by stepping
  cargo xtask run job.toml --boot uefi --format json --out report.json
  cargo xtask run job.toml --save-baseline main                       for --baseline main")]
pub struct Run {
    /// The job file; without it and without --asm, a tour of measurements.
    pub job: Option<PathBuf>,
    /// Changes to the job.
    #[command(flatten)]
    pub overrides: Overrides,
    /// The machine.
    #[command(flatten)]
    pub machine: Machine,
    /// The report.
    #[command(flatten)]
    pub output: Output,
    /// Baselines.
    #[command(flatten)]
    pub gate: Gate,
    /// Lines for the job's consoles.
    #[command(flatten)]
    pub console: ConsoleOptions,
    /// Keep the run's files (kernel, ramdisk, image, serial log, command line) in this folder.
    #[arg(long, value_name = "DIR", help_heading = "Report")]
    pub keep: Option<PathBuf>,
    /// Have the firmware write KTAP, the kernel's test protocol, to the serial line, with the records as diagnostics: serial.log
    /// of --keep has it.
    #[arg(long, help_heading = "Report")]
    pub ktap: bool,
}

/// What is sent to the consoles of items with `console = true`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Console")]
pub struct ConsoleOptions {
    /// Send what is typed here to the consoles of the job's items, and say here what they answer.
    #[arg(long)]
    pub console: bool,
    /// Send the commands of this file instead, each behind the answer to the one before.
    #[arg(long, value_name = "FILE", conflicts_with = "console")]
    pub commands: Option<PathBuf>,
}

/// The virtual machine to boot.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Machine")]
pub struct Machine {
    /// What executes the guest. auto: KVM if it offers a PMU to guests, else TCG.
    #[arg(long, value_enum, default_value_t)]
    pub accel: Accel,
    /// The guest's PMU.
    #[arg(long, value_name = "MODEL", default_value_t, value_parser = Pmu::parser())]
    pub pmu: Pmu,
    /// What counts for it.
    #[command(flatten)]
    pub by: CountingOption,
    /// A fault of the emulated PMU, by its name in `pmu_model::Mutation`: for tests of how it is reported and handled.
    #[arg(long, value_name = "NAME", hide = true, value_parser = fault::fault)]
    pub pmu_fault: Option<String>,
    /// How to boot. direct: a multiboot loader, no firmware, no disk; bios, uefi: the disk image that a stick gets.
    #[arg(long, value_enum, default_value_t)]
    pub boot: Boot,
    /// Stop with an error after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = Timeout(60.0))]
    pub timeout: Timeout,
    /// If the machine writes no record for this many seconds, end its item as hung; the items after it run in another
    /// boot. Without it, a hang lasts until --timeout.
    #[arg(long, value_name = "SECONDS")]
    pub item_timeout: Option<Timeout>,
    /// The maximum number of further boots after items that crashed the machine or the firmware. An item that crashed after
    /// others in the same boot is run again in a clean boot, so it may need two.
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub reboots: u32,
    /// Under TCG: 2^SHIFT ticks of the TSC per instruction, so that runs repeat exactly; `auto`: 0, but 6 for UEFI, which
    /// otherwise boots too slowly; `off`: the TSC follows the host's clock.
    #[arg(long, value_name = "SHIFT", default_value_t)]
    pub icount: Icount,
    /// Processors of the guest. Default: as many as the job needs, by the processors that it names, or its `cpus`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub cpus: Option<u32>,
    /// Memory of the guest in MiB. Default: 256, plus 16 for each processor after the first, plus the memory and the compiled code of
    /// the job's items.
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(96..=1_048_576))]
    pub memory: Option<u32>,
    /// QEMU's -cpu option. Default: one that suits the accelerator.
    #[arg(long, value_name = "MODEL")]
    pub cpu: Option<String>,
}

/// How to show the report.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Report")]
pub struct Output {
    /// The report's format.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Write it to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the samples to this file as folded stacks, for flame graphs.
    #[arg(long, value_name = "FILE")]
    pub samples_folded: Option<PathBuf>,
    /// Write the samples to this file in pprof's format, for `pprof` and viewers that read it.
    #[arg(long, value_name = "FILE")]
    pub samples_pprof: Option<PathBuf>,
    /// Write a plot of each history to this folder, as SVG.
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
}

impl Output {
    /// The files that it names.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        let files = [&self.out, &self.samples_folded, &self.samples_pprof];
        files.into_iter().flatten().map(PathBuf::as_path).collect()
    }

    /// How wide the report's tables may be.
    #[must_use]
    pub fn width(&self) -> Width {
        if self.out.is_some() { Width::default() } else { Width::of_output() }
    }
}

/// Arguments of `new`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example:
  cargo xtask new counts
  cargo xtask run --crate counts")]
pub struct New {
    /// The folder to create. Nothing in it is overwritten.
    pub path: PathBuf,
}

/// Arguments of `image`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The image is a whole disk. Write it to a stick, for example:
  cargo xtask image job.toml --out usb.img
  sudo dd if=usb.img of=/dev/sdX bs=1M conv=fsync")]
pub struct Image {
    /// The job file; without it and without --asm, a tour of measurements.
    pub job: Option<PathBuf>,
    /// Changes to the job.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Use this emulated PMU on UEFI machines with SVM and a clock that counts instructions, such as QEMU's TCG; other
    /// machines boot the image without it.
    #[arg(long, value_name = "MODEL", value_parser = Pmu::emulated_parser(), help_heading = "Image")]
    pub pmu: Option<Emulated>,
    /// Serial ports that get the report, all at the same time. auto: COM1 and the console port that ACPI names; if
    /// neither exists, the first other port that works. all: every port that works. Or a list of com1 to com4, spcr, dbg2,
    /// pci, port:0x3f8 and mmio:0xfe034000/4 (address and distance of the registers), separated by commas.
    #[arg(long, value_name = "PORTS", help_heading = "Image")]
    pub serial: Option<SerialPorts>,
    /// Have the firmware write KTAP, the kernel's test protocol, with the records as diagnostics.
    #[arg(long, help_heading = "Image")]
    pub ktap: bool,
    /// Whether a UEFI machine saves each report on the stick and shows it; this takes one reset of the machine.
    #[arg(long, value_enum, default_value_t = OnOff::On, conflicts_with = "network", help_heading = "Image")]
    pub save: OnOff,
    /// Where a UEFI machine sends each report: the URL of a folder, http://SERVER:PORT/FOLDER/ (by PUT) or
    /// tftp://ADDRESS:PORT/FOLDER/. Without a port, the protocol's default.
    #[arg(long, value_name = "URL", value_parser = stick::upload::Target::parse, help_heading = "Image")]
    pub upload: Option<Target>,
    /// The image to write.
    #[arg(long, value_name = "FILE", required_unless_present = "network", help_heading = "Image")]
    pub out: Option<PathBuf>,
    /// Instead of an image, write the files of a boot server: barecount.efi for UEFI's PXE and HTTP boot, boot.ipxe for iPXE,
    /// and the files that iPXE loads on a BIOS machine.
    #[arg(long, value_name = "DIR", conflicts_with = "out", help_heading = "Image")]
    pub network: Option<PathBuf>,
}

/// A switch.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum OnOff {
    /// Done.
    #[default]
    On,
    /// Not done.
    Off,
}

/// Arguments of `collect`.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["serial", "qr", "image"]))]
pub struct Collect {
    /// A serial device, a file with a saved log, or `-` for standard input.
    #[arg(long, value_name = "DEVICE|FILE|-")]
    pub serial: Option<PathBuf>,
    /// The QR codes of the last screen: photographs of them, or files with the text that a phone shows; `-` for standard
    /// input. One file may have several codes. They contain a digest: each item's figures, and the expectations it missed.
    #[arg(long, value_name = "PICTURE|TEXT|-", num_args = 1..)]
    pub qr: Vec<PathBuf>,
    /// A stick with saved reports, or an image of one. Lists the reports, and shows the newest.
    #[arg(long, value_name = "DEVICE|FILE")]
    pub image: Option<PathBuf>,
    /// Show this report, by name or number.
    // clap drops `requires` where what is required conflicts with what is there.
    #[arg(long, value_name = "NAME|NUMBER", requires = "image", conflicts_with_all = ["serial", "qr"])]
    pub report: Option<String>,
    /// Copy all saved reports and the job from the stick to this folder.
    #[arg(long, value_name = "DIR", requires = "image", conflicts_with_all = ["serial", "qr"])]
    pub copy: Option<PathBuf>,
    /// Rate of the device in bits per second: the job's `baud`.
    #[arg(long, default_value_t = protocol::job::limits::MAX_BAUD)]
    pub baud: u32,
    /// Stop with an error after this many seconds without the end record. A file is read without waiting.
    #[arg(long, value_name = "SECONDS", default_value_t = Timeout(3600.0))]
    pub timeout: Timeout,
    /// The report.
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask run job.toml --format json --out report.json
  cargo xtask report report.json --out report.html
  cargo xtask report old.json new.json --out both.html        several runs side by side")]
pub struct ReportArguments {
    /// Reports: files that `--format json` wrote, logs of a serial line, or names of baselines.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// The file to write; without it, the first report's name with the ending `html`.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Arguments of `test`.
#[derive(Clone, Debug, Args)]
pub struct Test {
    /// Run only tests whose name contains this.
    pub filter: Option<String>,
    /// Leave out the checks of the source.
    #[arg(long)]
    pub no_checks: bool,
    /// Leave out the tests that start QEMU.
    #[arg(long)]
    pub host_only: bool,
    /// Run only the soak tests: what is tried on a few models, on all of them and for longer. It takes more than an hour.
    #[arg(long, conflicts_with_all = ["filter", "host_only"])]
    pub soak: bool,
}

/// Arguments of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct Doctor {
    /// Also write apt's output about the packages to this folder, without the hosts of its sources: for a report of a failed
    /// set-up.
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

/// Arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct Bench {
    /// Boots of each kind; the median is reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub boots: u32,
    /// Measure only these parts.
    #[arg(long, value_enum, value_name = "PART")]
    pub only: Vec<BenchPart>,
    /// Run the counting jobs small, and once each, to show that they work. Their ratios are meaningless.
    #[arg(long)]
    pub brief: bool,
    /// Also write the figures as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// A part of `bench`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum BenchPart {
    /// Sizes of files.
    Sizes,
    /// Time from the command to the first result.
    Answer,
    /// Boots.
    Boots,
    /// Jobs of many snippets.
    Snippets,
    /// Stepping, and the paths of interrupts and reads.
    Pmu,
    /// Counting, compared with plain TCG.
    Counting,
    /// The same in the distribution's Linux.
    Linux,
    /// Switches from task to task.
    Switches,
}

/// What executes the guest.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Accel {
    /// KVM if it offers a PMU to guests, else TCG.
    #[default]
    Auto,
    /// The host's processor.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

/// How to boot.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq, ValueEnum)]
pub enum Boot {
    /// Multiboot loader, no disk.
    #[default]
    Direct,
    /// Disk image under SeaBIOS.
    Bios,
    /// Disk image under OVMF.
    Uefi,
}

/// Format of the report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One document with every record.
    Json,
    /// Test Anything Protocol: a plan, then a test point for each item. For parsers of versions 13 and 14, and KTAP.
    Tap,
    /// One row per figure.
    Csv,
    /// One file for a browser, with tables, plots and flame graphs.
    Html,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless the environment disables it.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Applies it to all output.
    pub fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

mod command;
mod compare;
mod counting;
mod events;
mod fault;
mod installed;
mod instructions;
mod lab;
mod mutants;
mod package;
mod pmu;
mod replay;
mod shard;
mod values;
mod writes;
pub use command::{Arguments, Command, Options, Project, User};
pub use compare::{Compare, CompareFormat, Confidence, Gate};
mod vm;
pub use counting::{Counting, CountingOption};
pub use events::{Events, ListFormat};
pub use installed::{described, installed};
pub use instructions::{FormState, Instructions, InstructionsFormat};
pub use lab::{Lab, LabCommand, LabFormat, LabNew, LabOutput, LabRun};
pub use mutants::Mutants;
pub use package::Package;
pub use pmu::{Emulated, Pmu, models};
pub use replay::{Replay, ReplayFormat};
pub use shard::Shard;
pub use values::{Icount, Timeout};
pub use vm::Vm;
pub use writes::{Completions, Man, Schema, SchemaFormat};

#[cfg(test)]
mod tests;
