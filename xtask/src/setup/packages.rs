//! Programs from the distribution's packages.

use super::{Need, Status, apt};
use crate::process::{find, stdout_of};
use std::process::Command;

/// The emulator's program.
pub const QEMU: &str = "qemu-system-x86_64";

pub(super) fn qemu_status() -> Status {
    let Some(path) = find(QEMU) else {
        return Status::Missing { why: format!("no {QEMU} in the search path") };
    };
    let text = stdout_of(Command::new(&path).arg("--version")).unwrap_or_default();
    let version = text.split_whitespace().nth(3).unwrap_or("of unknown version");
    Status::Present(format!("{version}, {}", path.display()))
}

/// grub-mkrescue calls the other two.
const GRUB_TOOLS: [&str; 3] = ["grub-mkrescue", "xorriso", "mformat"];

pub(super) fn grub_status() -> Status {
    for tool in GRUB_TOOLS {
        if find(tool).is_none() {
            return Status::Missing { why: format!("no {tool} in the search path") };
        }
    }
    let modules = std::path::Path::new("/usr/lib/grub/i386-pc");
    if !modules.exists() {
        return Status::Missing { why: format!("no {}", modules.display()) };
    }
    Status::Present(modules.display().to_string())
}

/// Debian's packages.
fn debian(need: Need) -> &'static [&'static str] {
    match need {
        // The last two are named because they are only recommended, and needed.
        Need::Qemu => &["qemu-system-x86", "seabios", "ipxe-qemu"],
        Need::Ovmf => &["ovmf"],
        Need::Grub => &["grub-common", "grub-pc-bin", "xorriso", "mtools"],
        Need::Compiler | Need::RustSource | Need::LlvmTools => &[],
    }
}

pub(super) fn install(need: Need) -> Result<(), String> {
    if !apt::may_install() {
        return Err("it can be installed from here only with apt-get and as root".to_string());
    }
    apt::install(debian(need))
}

/// The command to type on this machine.
pub(super) fn hint(need: Need) -> String {
    let rows: [(&str, &str, [&str; 3]); 4] = [
        ("apt-get", "sudo apt-get install", ["", "", ""]),
        (
            "dnf",
            "sudo dnf install",
            [
                "qemu-system-x86-core",
                "edk2-ovmf",
                "grub2-tools-extra grub2-pc-modules xorriso mtools",
            ],
        ),
        ("pacman", "sudo pacman -S", ["qemu-system-x86", "edk2-ovmf", "grub libisoburn mtools"]),
        ("zypper", "sudo zypper install", ["qemu-x86", "qemu-ovmf-x86_64", "grub2 xorriso mtools"]),
    ];
    let index = match need {
        Need::Ovmf => 1,
        Need::Grub => 2,
        _ => 0,
    };
    for (manager, command, packages) in rows {
        if find(manager).is_some() {
            let names = match packages[index] {
                "" => debian(need).join(" "),
                names => names.to_string(),
            };
            return format!("Type: {command} {names}");
        }
    }
    format!("Install {} with your system's package manager", need.name())
}
