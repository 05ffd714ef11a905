//! The system that is started: a kernel of its own, or whatever a disk or a CD starts.

use crate::build::Tree;
use crate::cli::Vm;
use crate::{Failure, Result};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What is started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum System {
    /// A kernel, from the partition of the UEFI application.
    Kernel {
        /// Its file.
        kernel: PathBuf,
        /// Its initial file system.
        initrd: Option<PathBuf>,
        /// Its command line.
        append: Option<String>,
    },
    /// A disk of its own.
    Disk {
        /// Its file.
        file: PathBuf,
        /// QEMU's name of the file's format.
        format: &'static str,
    },
    /// A CD.
    Iso {
        /// Its file.
        file: PathBuf,
    },
}

/// QEMU makes FAT16 of a folder, which holds 504 MiB.
const MAX_BYTES: u64 = 500 << 20;
/// Where a program file for DOS, which every EFI program is too, says where its own header is (PE format, "MS-DOS Stub").
const HEADER_AT: u64 = 0x3c;
/// The first bytes of a disk in QEMU's own format (QEMU, `docs/interop/qcow2.rst`).
const QCOW2: &[u8] = b"QFI\xfb";

impl System {
    /// What the arguments name, which is there and of the right kind.
    ///
    /// # Errors
    /// A file that cannot be read or is not what it must be.
    pub fn of(wanted: &Vm) -> Result<Self> {
        if let Some(kernel) = &wanted.kernel {
            let initrd = wanted.initrd.as_deref().map(absolute).transpose()?;
            let kernel = absolute(kernel)?;
            is_efi_program(&kernel)?;
            fits(&[Some(&kernel), initrd.as_ref()])?;
            return Ok(Self::Kernel { kernel, initrd, append: wanted.append.clone() });
        }
        if let Some(disk) = &wanted.disk {
            let file = absolute(disk)?;
            let format = if begin(&file, 0, QCOW2.len())? == QCOW2 { "qcow2" } else { "raw" };
            return Ok(Self::Disk { file, format });
        }
        let iso = wanted.iso.as_deref().expect("the command line takes one of three");
        Ok(Self::Iso { file: absolute(iso)? })
    }

    /// Makes the application's partition of the folder `to`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(super) fn fill(
        &self,
        (tree, hypervisor): (&Tree, &Path),
        pmu: &str,
        to: &Path,
    ) -> Result<()> {
        for folder in ["EFI/BOOT", "EFI/barecount"] {
            let folder = to.join(folder);
            fs::create_dir_all(&folder).map_err(Failure::file("create", &folder))?;
        }
        let link = |from: &Path, name: &str| {
            let to = to.join(name);
            symlink(from, &to).map_err(Failure::file("create", &to))
        };
        link(&tree.pmu_application(), "EFI/BOOT/BOOTX64.EFI")?;
        link(hypervisor, "EFI/barecount/pmu.elf")?;
        if let Self::Kernel { kernel, initrd, .. } = self {
            link(kernel, "kernel")?;
            initrd.as_deref().map_or(Ok(()), |initrd| link(initrd, "initrd"))?;
        }
        let entry = to.join("EFI/barecount/pmu.conf");
        fs::write(&entry, self.entry(pmu)).map_err(Failure::file("write", &entry))
    }

    /// What the application is told.
    fn entry(&self, pmu: &str) -> String {
        let mut text = format!("pmu {pmu}\n");
        match self {
            Self::Kernel { initrd, append, .. } => {
                text += "linux /kernel\n";
                if initrd.is_some() {
                    text += "initrd /initrd\n";
                }
                if let Some(append) = append {
                    text += &format!("options {append}\n");
                }
            }
            Self::Disk { .. } | Self::Iso { .. } => text += "device other\n",
        }
        text
    }

    /// QEMU's arguments for its devices: those that every system has drivers for.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        let drive = |file: &Path, format: &str, device: &str| {
            let name = file.to_string_lossy().replace(',', ",,");
            let drive = format!("if=none,id=system,format={format},file={name}");
            let device = format!("{device},drive=system,bootindex=1");
            ["-drive".to_string(), drive, "-device".to_string(), device].to_vec()
        };
        match self {
            Self::Kernel { .. } => Vec::new(),
            Self::Disk { file, format } => drive(file, format, "ide-hd"),
            Self::Iso { file } => drive(file, "raw,readonly=on", "ide-cd"),
        }
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    let file = File::open(path).and_then(|file| file.metadata());
    let data = file.map_err(Failure::file("read", path))?;
    if data.is_dir() {
        return Err(Failure::Usage(format!("{} is a folder", path.display())));
    }
    path.canonicalize().map_err(Failure::file("read", path))
}

fn begin(path: &Path, at: u64, bytes: usize) -> Result<Vec<u8>> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(at))?;
        let mut found = Vec::new();
        file.take(bytes as u64).read_to_end(&mut found)?;
        Ok(found)
    };
    read().map_err(Failure::file("read", path))
}

/// Firmware starts no others.
fn is_efi_program(path: &Path) -> Result<()> {
    let header = begin(path, HEADER_AT, 4)?;
    let at = <[u8; 4]>::try_from(header).map(u32::from_le_bytes);
    let is_one = begin(path, 0, 2)? == b"MZ"
        && at.is_ok_and(|at| begin(path, at.into(), 4).is_ok_and(|mark| mark == b"PE\0\0"));
    if is_one {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--kernel {}: it is not an EFI program; a Linux kernel must be built with CONFIG_EFI_STUB, and not be unpacked",
        path.display()
    )))
}

fn fits(files: &[Option<&PathBuf>]) -> Result<()> {
    let size = |path: &PathBuf| path.metadata().map_or(0, |data| data.len());
    let sum: u64 = files.iter().flatten().map(|path| size(path)).sum();
    if sum <= MAX_BYTES {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--kernel and --initrd have {} MiB together; the firmware takes at most {}",
        sum >> 20,
        MAX_BYTES >> 20
    )))
}

#[cfg(test)]
mod tests;
