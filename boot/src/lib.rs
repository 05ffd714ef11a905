//! Bootable images: one file that starts on a BIOS and on a UEFI machine, from a USB stick or a disk.
//!
//! The file is an MBR disk with one FAT partition (crate `disk`). A BIOS starts the loader of the crate `bios`, which
//! finds the direct loader, the kernel and the ramdisk in that partition. UEFI firmware finds there the loader of the crate
//! `uefi-loader`, under the name that it looks for on removable media (`\EFI\BOOT\BOOTX64.EFI`, UEFI
//! specification 3.5.1.1), and that finds the same kernel and ramdisk.
//!
//! On request a UEFI application that saves reports (crate `stick`) takes that name, and the emulated PMU's UEFI application that
//! name or, after the other, one of its own; the loader gets another one, under which the application before it finds it. All other files stay as they are, and a BIOS boot does not see the difference.
//!
//! For a boot server, all that UEFI firmware takes is one file: the application that saves reports, which carries the same file
//! system within itself ([`network`]).
#![warn(missing_docs)]

mod section;

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const UEFI_LOADER: &str = "efi/boot/bootx64.efi";
/// What both loaders look for.
const KERNEL: &str = "kernel-x86_64";
const RAMDISK: &str = "ramdisk";
/// What the BIOS loader starts.
const DIRECT: &str = "direct.bin";

/// What every boot takes.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The kernel's ELF file.
    pub kernel: &'a Path,
    /// The packed job.
    pub ramdisk: Option<&'a Path>,
    /// The UEFI loader's file.
    pub uefi_loader: &'a Path,
}

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

/// Reports are saved on the image itself.
#[derive(Clone, Debug)]
pub struct Save {
    /// The UEFI application's file.
    pub application: PathBuf,
    /// Where reports are sent, too.
    pub upload: Option<String>,
}

/// How many files with room for reports there are, and of how many bytes.
const ROOMS: [(usize, usize); 3] = [(6, 256 << 10), (4, 1 << 20), (1, 4 << 20)];
/// Bytes of the clusters of an image with such files. Their folder gets no more clusters, since nothing on the stick may change
/// its length; this is room for 256 entries, and each report takes three.
const CLUSTER_BYTES: u32 = 8 << 10;

/// Writes the image of kernel and ramdisk to `out`, with what saves reports and `pmu` in front of its UEFI loader. The file appears
/// whole or not at all.
///
/// # Errors
/// An input that cannot be read or an output that cannot be written, with its path.
pub fn image(
    base: Base<'_>,
    bios: &Bios,
    pmu: Option<&EmulatedPmu>,
    save: Option<&Save>,
    out: &Path,
) -> Result<()> {
    let mut files =
        vec![(KERNEL.to_string(), kernel(base)?), (DIRECT.to_string(), read(&bios.direct)?)];
    let ramdisk = base.ramdisk.map(read).transpose()?;
    if let Some(ramdisk) = &ramdisk {
        files.push((RAMDISK.to_string(), ramdisk.clone()));
    }
    if let Some(save) = save {
        let upload = save.upload.as_deref();
        add_settings(&mut files, true, ramdisk.as_deref(), pmu.is_some(), upload)?;
        add_saving(&mut files, save, ramdisk.unwrap_or_default())?;
    }
    add_loader(&mut files, base.uefi_loader, pmu, save.is_some())?;
    let cluster = save.map(|_| CLUSTER_BYTES);
    let image = disk::image(&read(&bios.loader)?, &files, cluster);
    write(out, image.context("cannot make the disk image")?)
}

/// Writes the one file that UEFI firmware takes from a boot server to `out`: `application` with kernel, ramdisk, `pmu` and the UEFI
/// loader in it. Reports are sent to `upload`.
///
/// # Errors
/// As for [`image`].
pub fn network(
    base: Base<'_>,
    application: &Path,
    pmu: Option<&EmulatedPmu>,
    upload: Option<&str>,
    out: &Path,
) -> Result<()> {
    let mut files = vec![(KERNEL.to_string(), kernel(base)?)];
    let ramdisk = base.ramdisk.map(read).transpose()?;
    add_settings(&mut files, false, ramdisk.as_deref(), pmu.is_some(), upload)?;
    files.extend(ramdisk.map(|ramdisk| (RAMDISK.to_string(), ramdisk)));
    add_loader(&mut files, base.uefi_loader, pmu, true)?;
    let volume = disk::file_system(&files).context("cannot make the file system")?;
    let file = section::add(&read(application)?, stick::VOLUME_SECTION, &volume);
    write(out, file.with_context(|| format!("cannot add to {}", application.display()))?)
}

/// Writes a file, which appears whole or not at all.
fn write(out: &Path, content: Vec<u8>) -> Result<()> {
    let directory = out.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = tempfile::Builder::new()
        .prefix(".image-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(directory)
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    fs::write(unfinished.path(), content)
        .with_context(|| format!("cannot write into {}", directory.display()))?;
    unfinished.persist(out).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}

/// The kernel, compressed.
fn kernel(base: Base<'_>) -> Result<Vec<u8>> {
    let file = read(base.kernel)?;
    compressed_kernel::compress(&file)
        .with_context(|| format!("{} cannot be compressed", base.kernel.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A name of UEFI's, which begins with a backslash and is of any case, as the image writer takes it.
fn slashes(path: &str) -> String {
    path.replace('\\', "/").trim_start_matches('/').to_lowercase()
}

/// Adds the UEFI loader, with the emulated PMU in front of it. `behind`: the application that saves reports starts the first of them.
fn add_loader(
    files: &mut Vec<(String, Vec<u8>)>,
    loader: &Path,
    pmu: Option<&EmulatedPmu>,
    behind: bool,
) -> Result<()> {
    let Some(pmu) = pmu else {
        let place = if behind { slashes(stick::NEXT) } else { UEFI_LOADER.to_string() };
        files.push((place, read(loader)?));
        return Ok(());
    };
    let entry = format!("pmu {}\n", pmu.model);
    boot_entry::parse(&entry).context("the PMU's model")?;
    let place = if behind { slashes(stick::PMU_APPLICATION) } else { UEFI_LOADER.to_string() };
    files.push((slashes(boot_entry::NEXT), read(loader)?));
    files.push((place, read(&pmu.application)?));
    files.push((slashes(boot_entry::HYPERVISOR), read(&pmu.hypervisor)?));
    files.push((slashes(boot_entry::FILE), entry.into_bytes()));
    Ok(())
}

/// Adds what the application that saves reports is told.
fn add_settings(
    files: &mut Vec<(String, Vec<u8>)>,
    save: bool,
    ramdisk: Option<&[u8]>,
    has_pmu: bool,
    upload: Option<&str>,
) -> Result<()> {
    let save = if save { "on" } else { "off" };
    let image = protocol::checksum::crc32(ramdisk.unwrap_or_default());
    let mut settings = format!("save {save}\nimage {image:08x}\n");
    if has_pmu {
        settings += &format!("next {}\n", stick::PMU_APPLICATION.replace('\\', "/"));
    }
    if let Some(upload) = upload {
        settings += &format!("upload {upload}\n");
    }
    stick::settings::parse(&settings).context("where reports are sent")?;
    files.push((slashes(stick::SETTINGS), settings.into_bytes()));
    Ok(())
}

/// Adds what saves reports: the application in the loader's place, the job, and room.
fn add_saving(files: &mut Vec<(String, Vec<u8>)>, save: &Save, ramdisk: Vec<u8>) -> Result<()> {
    files.push((UEFI_LOADER.to_string(), read(&save.application)?));
    let sizes = ROOMS.into_iter().flat_map(|(count, bytes)| std::iter::repeat_n(bytes, count));
    for (index, bytes) in sizes.enumerate() {
        let name = format!("{}/{}", stick::FOLDER, stick::names::room(index + 1));
        files.push((name, vec![0; bytes]));
    }
    files.push((format!("{}/{}", stick::FOLDER, stick::JOB), ramdisk));
    Ok(())
}
