//! `vm`: another system with an emulated PMU.

use super::{CountingOption, Emulated, Pmu, Timeout};
use clap::{ArgGroup, Args};
use std::path::PathBuf;

/// 2 to this power nanoseconds an instruction: less, and the firmware's delays last; more, and the system's clock runs ahead of
/// its work.
const SHIFT: u8 = 4;
/// QEMU's own bound (`MAX_ICOUNT_SHIFT`).
const MAX_SHIFT: i64 = 10;

/// Arguments of `vm`.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("system").required(true).args(["kernel", "disk", "iso"]),
    after_help = "\
Examples:
  cargo xtask vm --pmu skylake --kernel vmlinuz --initrd initrd.img --append 'console=ttyS0'
  cargo xtask vm --pmu zen4 --disk system.qcow2 -- -snapshot
  cargo xtask vm --pmu icelake --iso installer.iso --memory 2048 -- -device VGA -display gtk

The machine starts UEFI firmware, which starts the emulated PMU, which starts the system. Its first serial line is this \
terminal: C-a x ends the machine, C-a c opens QEMU's monitor. It has no screen and no network unless QEMU's arguments \
after `--` add them. Its clock counts instructions (QEMU's -icount), and skips idle time."
)]
pub struct Vm {
    /// The model of its PMU.
    #[arg(long, value_name = "MODEL", value_parser = Pmu::emulated_parser())]
    pub pmu: Emulated,
    /// What counts.
    #[command(flatten)]
    pub by: CountingOption,
    /// Start this kernel: Linux with an EFI stub, as distributions build it, or any EFI program.
    #[arg(long, value_name = "FILE", help_heading = "System")]
    pub kernel: Option<PathBuf>,
    /// The kernel's initial file system.
    #[arg(
        long,
        value_name = "FILE",
        requires = "kernel",
        conflicts_with_all = ["disk", "iso"],
        help_heading = "System"
    )]
    pub initrd: Option<PathBuf>,
    /// The kernel's command line.
    #[arg(
        long,
        value_name = "TEXT",
        requires = "kernel",
        conflicts_with_all = ["disk", "iso"],
        allow_hyphen_values = true,
        help_heading = "System"
    )]
    pub append: Option<String>,
    /// Start \EFI\BOOT\BOOTX64.EFI of this disk, raw or qcow2. The system writes to it.
    #[arg(long, value_name = "FILE", help_heading = "System")]
    pub disk: Option<PathBuf>,
    /// Start \EFI\BOOT\BOOTX64.EFI of this CD image.
    #[arg(long, value_name = "FILE", help_heading = "System")]
    pub iso: Option<PathBuf>,
    /// Processors.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=22), help_heading = "Machine")]
    pub cpus: u32,
    /// Memory in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(128..=1_048_576), help_heading = "Machine")]
    pub memory: u32,
    /// An instruction takes 2^SHIFT nanoseconds, and the same number of cycles.
    #[arg(long, value_name = "SHIFT", default_value_t = SHIFT, value_parser = clap::value_parser!(u8).range(0..=MAX_SHIFT), help_heading = "Machine")]
    pub shift: u8,
    /// End the machine after this many seconds. Default: run until it ends by itself.
    #[arg(long, value_name = "SECONDS", help_heading = "Machine")]
    pub timeout: Option<Timeout>,
    /// Further arguments for QEMU.
    #[arg(last = true, value_name = "QEMU ARGUMENTS")]
    pub qemu_arguments: Vec<String>,
}
