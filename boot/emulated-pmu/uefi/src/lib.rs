//! What the UEFI application is to do: a small text file beside it, in the form of a boot loader entry.
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
//! `efi`, `linux`, `initrd` and `options` are those of the Boot Loader Specification's type 1 entries; `pmu` and
//! `hypervisor` are ours.
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

/// What to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The hypervisor's options, as `pmu=skylake`; `None`: go on without it.
    pub pmu: Option<String>,
    /// The hypervisor's file.
    pub hypervisor: String,
    /// The program to start then.
    pub next: String,
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
    let (mut initrd, mut options) = (None, None);
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
            "options" => &mut options,
            _ => return Err(EntryError::UnknownKey { line: number, key: key.to_string() }),
        };
        let key = key.to_string();
        if value.is_empty() {
            return Err(EntryError::NoValue { line: number, key });
        }
        let value = match key.as_str() {
            "pmu" | "options" => value.to_string(),
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
    Ok(Entry {
        pmu: pmu.filter(|name| name != "none").map(|name| format!("pmu={name}")),
        hypervisor: hypervisor.unwrap_or(entry.hypervisor),
        next: next.unwrap_or(entry.next),
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
