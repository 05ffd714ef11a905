//! The partition from which UEFI starts the emulated PMU and then the kernel.

use crate::build::Tree;
use pmu_model::Model;
use std::fs;
use std::io;
use std::path::Path;

/// What the kernel needs to be told: where to speak, and not to wait after a panic.
const OPTIONS: &str = "console=ttyS0 panic=-1";

/// Where the file system in memory has to are in the partition's folder.
pub const INITIAL: &str = "initramfs";

/// Fills the `folder` of a partition that boots `kernel` by the application, with more `options` for the kernel. Where no plugin
/// counts repeated string instructions, `strings=decoded` has fewer of them to be watched.
///
/// # Errors
/// The host's file system's.
pub fn fill(
    tree: &Tree,
    kernel: &Path,
    model: Model,
    options: &str,
    folder: &Path,
) -> io::Result<()> {
    fs::create_dir_all(folder.join("EFI/BOOT"))?;
    fs::create_dir_all(folder.join("EFI/barecount"))?;
    fs::copy(tree.pmu_application(), folder.join("EFI/BOOT/BOOTX64.EFI"))?;
    fs::copy(tree.emulated_pmu(), folder.join("EFI/barecount/pmu.elf"))?;
    fs::copy(kernel, folder.join("vmlinuz"))?;
    let entry = format!(
        "pmu {} strings=decoded\nlinux /vmlinuz\ninitrd /{INITIAL}\noptions {OPTIONS} {options}\n",
        model.spec().name,
    );
    fs::write(folder.join("EFI/barecount/pmu.conf"), entry)
}
