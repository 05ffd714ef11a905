//! `boot --kernel FILE [--ramdisk FILE] --uefi-loader FILE --bios FILE --direct FILE [--pmu MODEL ...] [--save-application FILE ...] --out FILE`, or
//! `--network` in place of BIOS and direct loader: see the library. The host tool calls it; it is a
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
    /// The UEFI loader.
    #[arg(long)]
    uefi_loader: PathBuf,
    /// The BIOS loader.
    #[arg(long, requires = "direct", required_unless_present = "network")]
    bios: Option<PathBuf>,
    /// The direct loader, which that starts.
    #[arg(long, requires = "bios")]
    direct: Option<PathBuf>,
    /// Make the file that UEFI firmware takes from a boot server.
    #[arg(long, requires = "save_application", conflicts_with = "bios")]
    network: bool,
    /// Model of an emulated PMU for UEFI machines.
    #[arg(long, requires_all = ["pmu_application", "pmu_hypervisor"])]
    pmu: Option<String>,
    /// The UEFI application that starts its hypervisor.
    #[arg(long, requires = "pmu")]
    pmu_application: Option<PathBuf>,
    /// Its hypervisor's ELF file.
    #[arg(long, requires = "pmu")]
    pmu_hypervisor: Option<PathBuf>,
    /// The UEFI application that saves reports on the image, or sends them; without it, they are not saved.
    #[arg(long)]
    save_application: Option<PathBuf>,
    /// Where that sends them, too: tftp://SERVER/FOLDER/ or http://SERVER[:PORT]/FOLDER/.
    #[arg(long, requires = "save_application")]
    upload: Option<String>,
    /// Where to write the image.
    #[arg(long)]
    out: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let pmu = match (arguments.pmu, arguments.pmu_application, arguments.pmu_hypervisor) {
        (Some(model), Some(application), Some(hypervisor)) => {
            Some(boot::EmulatedPmu { model, application, hypervisor })
        }
        _ => None,
    };
    let base = boot::Base {
        kernel: &arguments.kernel,
        ramdisk: arguments.ramdisk.as_deref(),
        uefi_loader: &arguments.uefi_loader,
    };
    let (pmu, upload, out) = (pmu.as_ref(), arguments.upload, &arguments.out);
    match (arguments.bios, arguments.direct, arguments.save_application) {
        (Some(loader), Some(direct), application) => {
            let bios = boot::Bios { loader, direct };
            let save = application.map(|application| boot::Save { application, upload });
            boot::image(base, &bios, pmu, save.as_ref(), out)
        }
        (_, _, Some(application)) => boot::network(base, &application, pmu, upload.as_deref(), out),
        _ => anyhow::bail!("--network takes --save-application"),
    }
}
