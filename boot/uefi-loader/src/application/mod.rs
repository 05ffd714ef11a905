//! The application's parts: [`files`] of its partition; [`kernel`], which is unpacked; [`outputs`], the screen; [`memory`], the machine's map and page tables.

mod files;
mod kernel;
mod memory;
mod outputs;

use bootloader_boot_config::BootConfig;
use bootloader_x86_64_common::legacy_memory_region::LegacyFrameAllocator;
use bootloader_x86_64_common::{Kernel, SystemInfo, load_and_switch_to_kernel, logger};
use compressed_kernel::KernelError;
use core::convert::Infallible;
use files::FileError;
use memory::Region;
use thiserror::Error;
use uefi::mem::memory_map::{MemoryMap as _, MemoryMapMut as _, MemoryType};
use uefi::table::cfg::ConfigTableEntry;
use uefi::{boot, println, system};
use uefi_start::levels::{LevelsError, Switch};
use x86_64::PhysAddr;

/// Why the kernel does not start.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file.
    #[error("{0}")]
    File(#[from] FileError),
    /// The kernel's.
    #[error("{0}")]
    Kernel(#[from] KernelError),
    /// No memory for the unpacked kernel.
    #[error("no memory to unpack the kernel, {bytes} bytes: {error}")]
    Memory {
        /// That it takes.
        bytes: usize,
        /// The firmware's error.
        error: uefi::Error,
    },
    /// The way out of five-level paging.
    #[error("{0}")]
    Levels(#[from] LevelsError),
}

/// Starts the kernel.
pub fn start() -> Result<Infallible, LoadError> {
    uefi_start::stop_watchdog();
    uefi_start::allow_no_execute();
    let kernel = kernel::read(uefi::cstr16!("kernel-x86_64"))?;
    let ramdisk = files::read_if_there(uefi::cstr16!("ramdisk"))?;
    let framebuffer = outputs::find();
    let switch = Switch::needed()?;
    let rsdp = rsdp();
    // SAFETY: nothing of the firmware's is used from here on: files are pages, and the screen is the frame buffer.
    let mut map = unsafe { boot::exit_boot_services(Some(MemoryType::LOADER_DATA)) };
    map.sort();
    if let Some(switch) = switch {
        let end = map.entries().map(|region| Region(*region).end()).max().unwrap_or(0);
        // SAFETY: the firmware is gone, and interrupts are off during the switch.
        let switched = unsafe { switch.to_four(end) };
        switched.unwrap_or_else(|error| panic!("barecount: {error}"));
    }
    let mut frames = LegacyFrameAllocator::new(map.entries().copied().map(Region));
    let page_tables = memory::page_tables(&mut frames);
    let system = SystemInfo {
        framebuffer,
        rsdp_addr: rsdp,
        ramdisk_addr: ramdisk.map(|bytes| bytes.as_ptr() as u64),
        ramdisk_len: ramdisk.map_or(0, |bytes| bytes.len() as u64),
    };
    let kernel = Kernel::parse(kernel);
    load_and_switch_to_kernel(kernel, BootConfig::default(), frames, page_tables, system)
}

/// ACPI's root pointer, of version 2 if there is one.
fn rsdp() -> Option<PhysAddr> {
    system::with_config_table(|tables| {
        let of = |guid| tables.iter().find(|table| table.guid == guid);
        let found = of(ConfigTableEntry::ACPI2_GUID).or_else(|| of(ConfigTableEntry::ACPI_GUID))?;
        Some(PhysAddr::new(found.address as u64))
    })
}

/// Writes a panic's message where it can be seen.
pub fn say(message: &core::panic::PanicInfo) {
    // Nothing happens once the machine's console is gone.
    println!("{message}");
    if let Some(logger) = logger::LOGGER.get() {
        // SAFETY: whoever held it will not go on.
        unsafe { logger.force_unlock() };
    }
    log::error!("{message}");
}
