//! What the UEFI application is to do: a small text file next to it, in the form of a boot loader entry.
//!
//! ```text
//! # One key a line, white space, the value.
//! pmu         skylake
//! hypervisor  /EFI/barecount/pmu.elf
//! efi         /vmlinuz
//! initrd      /initramfs
//! options     console=ttyS0 quiet
//! ```
//!
//! `efi`, `linux`, `initrd` and `options` are those of the Boot Loader Specification's type 1 entries; `pmu`,
//! `hypervisor` and `device` are ours. `device other` looks for the next program on the other devices, under the name that
//! firmware looks for if `efi` gives none: so another system's disk stays as it is.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

extern crate alloc;

mod error;

use alloc::format;
use alloc::string::{String, ToString};
pub use error::EntryError;

/// The file's place on the partition from which the application was started.
pub const FILE: &str = r"\EFI\barecount\pmu.conf";
/// Where the hypervisor lies if the file does not say.
pub const HYPERVISOR: &str = r"\EFI\barecount\pmu.elf";
/// What is started if the file does not say: the boot loader that the application took the place of.
pub const NEXT: &str = r"\EFI\BOOT\NEXT.EFI";

/// What is started if the file does not say and means another device: what firmware starts from removable media (UEFI
/// specification 3.5.1.1).
pub const REMOVABLE: &str = r"\EFI\BOOT\BOOTX64.EFI";

/// Where the next program is looked for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Device {
    /// On the application's own partition.
    #[default]
    Own,
    /// On the first other file system that has it.
    Other,
}

/// What to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The hypervisor's options, as `pmu=skylake`; `None`: continue without it.
    pub pmu: Option<String>,
    /// The hypervisor's file.
    pub hypervisor: String,
    /// The program to start then.
    pub next: String,
    /// Where it is.
    pub device: Device,
    /// Its command line; `None`: it gets none.
    pub options: Option<String>,
}

impl Default for Entry {
    /// What is done without a file: nothing but starting the next boot loader.
    fn default() -> Self {
        Self {
            pmu: None,
            hypervisor: HYPERVISOR.to_string(),
            next: NEXT.to_string(),
            device: Device::Own,
            options: None,
        }
    }
}

/// Reads the file's text.
///
/// # Errors
/// The first line that is wrong, with its number, its key and the reason.
pub fn parse(text: &str) -> Result<Entry, EntryError> {
    let (mut pmu, mut hypervisor, mut next) = (None, None, None);
    let (mut initrd, mut options, mut device) = (None, None, None);
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let (key, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = value.trim();
        let place = match key {
            "pmu" => &mut pmu,
            "hypervisor" => &mut hypervisor,
            "efi" | "linux" => &mut next,
            "initrd" => &mut initrd,
            "device" => &mut device,
            "options" => &mut options,
            _ => return Err(EntryError::UnknownKey { line: number, key: key.to_string() }),
        };
        let key = key.to_string();
        if value.is_empty() {
            return Err(EntryError::NoValue { line: number, key });
        }
        let value = match key.as_str() {
            "device" if !["own", "other"].contains(&value) => {
                return Err(EntryError::Device { line: number, value: value.to_string() });
            }
            "pmu" | "options" | "device" => value.to_string(),
            _ => path(value).ok_or_else(|| EntryError::Path {
                line: number,
                key: key.clone(),
                value: value.to_string(),
            })?,
        };
        if place.replace(value).is_some() {
            return Err(EntryError::Twice { line: number, key });
        }
    }
    let entry = Entry::default();
    let device = if device.as_deref() == Some("other") { Device::Other } else { Device::Own };
    let usual = if device == Device::Other { REMOVABLE.to_string() } else { entry.next };
    Ok(Entry {
        pmu: pmu.filter(|name| name != "none").map(|name| format!("pmu={name}")),
        hypervisor: hypervisor.unwrap_or(entry.hypervisor),
        next: next.unwrap_or(usual),
        device,
        options: command_line(initrd, options),
    })
}

/// A file's name as UEFI wants it: from the partition's root, separated by backslashes.
fn path(text: &str) -> Option<String> {
    let name = text.replace('/', "\\");
    // UCS-2 is what a device path can hold.
    let fits = name.chars().all(|letter| u32::from(letter) <= 0xffff);
    (fits && name.starts_with('\\') && !name.ends_with('\\')).then_some(name)
}

/// Linux's EFI stub loads the initial file system that its command line names.
fn command_line(initrd: Option<String>, options: Option<String>) -> Option<String> {
    match (initrd, options) {
        (Some(initrd), Some(options)) => Some(format!("initrd={initrd} {options}")),
        (Some(initrd), None) => Some(format!("initrd={initrd}")),
        (None, options) => options,
    }
}

#[cfg(test)]
mod tests;
