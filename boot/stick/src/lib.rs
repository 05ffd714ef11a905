//! How a report gets from the measured machine to the stick that it was booted from.
//!
//! The firmware has no driver for USB or for a network card, and needs none: the machine's own firmware has them. So
//! the report is left where it survives a reset, the machine is reset, and a UEFI application, which starts before any
//! boot loader, takes it from there and writes it to a file.
//!
//! - [`region`]: memory that is reserved for the report, with its length and its checksum. It is the usual way.
//! - [`variables`]: EFI variables with the report, compressed, for a machine that clears its memory.
//! - [`settings`]: the text file that says what the application is to do.
//! - [`names`]: what the files of the folder are called.
//! - [`summary`]: what is shown of a report.
//! - [`ending`]: what comes then.
//! - [`upload`]: the server that reports are sent to.
//! - `carried`: the volume within the application's own file, when it came over the network.
//!
//! All of this is pure; the application (feature `application`) is in `src/application`.
#![cfg_attr(not(test), no_std)]
#![warn(missing_docs)]

extern crate alloc;

#[cfg(any(test, feature = "application"))]
pub mod carried;
pub mod ending;
pub mod lost;
pub mod names;
pub mod region;
pub mod settings;
pub mod summary;
pub mod upload;
pub mod variables;

/// Type of the UEFI memory that the region is made of: EfiACPIReclaimMemory (UEFI specification 7.2.1), which no loader makes
/// free memory of, and which Linux' EFI stub allocates too. Types of a loader's own, from 0x80000000 on, stop some firmware in its
/// next call of GetMemoryMap or ExitBootServices, since it looks them up in an array (uefi-rs issue 1375).
///
/// ACPI's own tables are of this type as well: the region is the one with a header ([`region::find`]).
pub const MEMORY_TYPE: u32 = 9;
/// Where the region begins is a multiple of this.
pub const ALIGN: u64 = 2 << 20;
/// Where the settings lie on the partition that the application was started from.
pub const SETTINGS: &str = r"\barecount.conf";
/// The folder of the reports.
pub const FOLDER: &str = "barecount";
/// The job that the reports are of, next to them: the same bytes as the ramdisk.
pub const JOB: &str = "JOB.BIN";
/// What the application starts if the settings do not say.
pub const NEXT: &str = r"\EFI\BOOT\NEXT.EFI";
/// The emulated PMU's application where both are on the stick: this one starts it, and it starts [`NEXT`].
pub const PMU_APPLICATION: &str = r"\EFI\barecount\pmu.efi";
/// The section of the application's file with the volume that it carries when it comes over the network.
pub const VOLUME_SECTION: [u8; 8] = *b".volume\0";
