//! Bootable images: one file that starts on a BIOS and on a UEFI machine, from a USB stick or a disk.
//!
//! The file is the `bootloader` crate's BIOS image, an MBR disk with a FAT partition, into whose partition
//! its UEFI loader was put as well, under the name that UEFI firmware looks for on removable media
//! (`\EFI\BOOT\BOOTX64.EFI`, UEFI specification 3.5.1.1). Both loaders find the same kernel and ramdisk.
//!
//! On request the emulated PMU's UEFI application takes that name, and the loader another one, under which the
//! application finds it. All other files stay as they are, and a BIOS boot does not see the difference.
//!
//! The file system is then made anew with the clusters that the BIOS loader reads best: see the crate `clusters`.
#![warn(missing_docs)]

use anyhow::{Context, Result};
use bootloader::{BootConfig, DiskImageBuilder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const UEFI_LOADER: &str = "efi/boot/bootx64.efi";
/// Name under which `create_uefi_tftp_folder` leaves the UEFI loader.
const TFTP_LOADER: &str = "bootloader";

/// A PMU for UEFI machines that have none.
#[derive(Clone, Debug)]
pub struct EmulatedPmu {
    /// The model's name, and further words for the hypervisor.
    pub model: String,
    /// The UEFI application's file.
    pub application: PathBuf,
    /// The hypervisor's file.
    pub hypervisor: PathBuf,
}

/// Writes the image of `kernel` and `ramdisk` to `out`, with `pmu` in front of its UEFI loader. The file appears whole
/// or not at all.
///
/// # Errors
/// An input that cannot be read or an output that cannot be written, with its path.
pub fn image(
    kernel: &Path,
    ramdisk: Option<&Path>,
    pmu: Option<&EmulatedPmu>,
    out: &Path,
) -> Result<()> {
    let mut builder = DiskImageBuilder::new(kernel.to_path_buf());
    if let Some(ramdisk) = ramdisk {
        builder.set_ramdisk(ramdisk.to_path_buf());
    }
    // The loader's own messages would stand between the records on the serial line and on the screen.
    let mut config = BootConfig::default();
    config.serial_logging = false;
    config.frame_buffer_logging = false;
    builder.set_boot_config(&config);
    match pmu {
        None => drop(builder.set_file_contents(UEFI_LOADER.to_string(), uefi_loader()?)),
        Some(pmu) => put_in_front(&mut builder, pmu)?,
    }
    let directory = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = tempfile::Builder::new()
        .prefix(".image-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(directory)
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    builder.create_bios_image(unfinished.path()).context("cannot make the disk image")?;
    clusters::enlarge(unfinished.path()).context("cannot arrange the disk image for the BIOS")?;
    unfinished.persist(out).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}

/// Gives the loader's place to the emulated PMU's application.
fn put_in_front(builder: &mut DiskImageBuilder, pmu: &EmulatedPmu) -> Result<()> {
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let entry = format!("pmu {}\n", pmu.model);
    boot_entry::parse(&entry).context("the PMU's model")?;
    for (path, content) in [
        (UEFI_LOADER, read(&pmu.application)?),
        (boot_entry::NEXT, uefi_loader()?),
        (boot_entry::HYPERVISOR, read(&pmu.hypervisor)?),
        (boot_entry::FILE, entry.into_bytes()),
    ] {
        // UEFI separates names by backslashes and begins with one, and knows no case.
        let path = path.replace('\\', "/").trim_start_matches('/').to_lowercase();
        builder.set_file_contents(path, content);
    }
    Ok(())
}

/// The UEFI loader's program file.
fn uefi_loader() -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    DiskImageBuilder::empty().create_uefi_tftp_folder(folder.path())?;
    fs::read(folder.path().join(TFTP_LOADER)).context("cannot read the UEFI loader")
}
