//! `boot --kernel FILE [--ramdisk FILE] --out FILE`: see the library. The host tool calls it; it is a
//! program of its own because building it needs a toolchain that the host tool first makes sure of.

use clap::Parser;
use std::path::PathBuf;

#[derive(Parser)]
#[command(about = "Makes a disk image that starts a kernel on BIOS and UEFI machines")]
struct Arguments {
    /// The kernel's ELF file.
    #[arg(long)]
    kernel: PathBuf,
    /// The packed job.
    #[arg(long)]
    ramdisk: Option<PathBuf>,
    /// Where to write the image.
    #[arg(long)]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    boot::image(&arguments.kernel, arguments.ramdisk.as_deref(), &arguments.out)
}
