//! Bootable images: one file that starts on a BIOS and on a UEFI machine, from a USB stick or a disk.
//!
//! The file is an MBR disk with one FAT partition (crate `disk`). A BIOS starts the loader of the crate `bios`, which
//! finds the direct loader, the kernel and the ramdisk in that partition. UEFI firmware finds there the `bootloader`
//! crate's UEFI loader, under the name that it looks for on removable media (`\EFI\BOOT\BOOTX64.EFI`, UEFI
//! specification 3.5.1.1), and that finds the same kernel and ramdisk.
//!
//! On request the emulated PMU's UEFI application takes that name, and the loader another one, under which the
//! application finds it. All other files stay as they are, and a BIOS boot does not see the difference.
#![warn(missing_docs)]

use anyhow::{Context, Result};
use bootloader::{BootConfig, DiskImageBuilder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const UEFI_LOADER: &str = "efi/boot/bootx64.efi";
/// What the `bootloader` crate's UEFI loader looks for, and the BIOS loader too.
const KERNEL: &str = "kernel-x86_64";
const RAMDISK: &str = "ramdisk";
/// What the UEFI loader is told.
const CONFIG: &str = "boot.json";
/// What the BIOS loader starts.
const DIRECT: &str = "direct.bin";
/// Name under which `create_uefi_tftp_folder` leaves the UEFI loader.
const TFTP_LOADER: &str = "bootloader";

/// What a BIOS boot takes.
#[derive(Clone, Debug)]
pub struct Bios {
    /// The BIOS loader, a flat file that begins with the boot sector.
    pub loader: PathBuf,
    /// The direct loader, a flat file.
    pub direct: PathBuf,
}

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
    bios: &Bios,
    pmu: Option<&EmulatedPmu>,
    out: &Path,
) -> Result<()> {
    let mut files = vec![
        (KERNEL.to_string(), read(kernel)?),
        (DIRECT.to_string(), read(&bios.direct)?),
        (CONFIG.to_string(), config()?),
    ];
    if let Some(ramdisk) = ramdisk {
        files.push((RAMDISK.to_string(), read(ramdisk)?));
    }
    match pmu {
        None => files.push((UEFI_LOADER.to_string(), uefi_loader()?)),
        Some(pmu) => put_in_front(&mut files, pmu)?,
    }
    let image = disk::image(&read(&bios.loader)?, &files).context("cannot make the disk image")?;
    let directory = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = tempfile::Builder::new()
        .prefix(".image-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(directory)
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    fs::write(unfinished.path(), image)
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    unfinished.persist(out).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The UEFI loader's own messages would stand between the records on the serial line and on the screen.
fn config() -> Result<Vec<u8>> {
    let mut config = BootConfig::default();
    config.serial_logging = false;
    config.frame_buffer_logging = false;
    Ok(serde_json::to_vec(&config)?)
}

/// Gives the loader's place to the emulated PMU's application.
fn put_in_front(files: &mut Vec<(String, Vec<u8>)>, pmu: &EmulatedPmu) -> Result<()> {
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
        files.push((path, content));
    }
    Ok(())
}

/// The UEFI loader's program file.
fn uefi_loader() -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    DiskImageBuilder::empty().create_uefi_tftp_folder(folder.path())?;
    fs::read(folder.path().join(TFTP_LOADER)).context("cannot read the UEFI loader")
}
