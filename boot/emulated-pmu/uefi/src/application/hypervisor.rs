//! Starting the hypervisor: from then on this program, and everything after it, runs as its guest.

use super::files::{self, FileError};
use super::pages::Pages;
use super::processors;
use alloc::vec::Vec;
use core::mem::transmute;
use core::ptr::null_mut;
use handover::startup::{END, Startup};
use handover::{Entry, LAUNCH_VERSION, Launch, MAX_PROCESSORS, Refusal, image};
use thiserror::Error;
use uefi::boot::PAGE_SIZE;
use uefi::system;
use uefi::table::cfg::ConfigTableEntry;

/// More than any hypervisor here needs: a damaged file must not request all memory.
const MAX_BYTES: u64 = 64 << 20;

/// Why there is no hypervisor.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its file cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// An operating system would start the others outside of the hypervisor, with another processor's identity.
    #[error(
        "the machine has {0} processors, the hypervisor supports {MAX_PROCESSORS} (QEMU: -smp {MAX_PROCESSORS})"
    )]
    Processors(usize),
    /// It, or what loads it, refuses.
    #[error("{0}")]
    Refused(#[from] Refusal),
}

/// Loads the file into memory that no operating system will use, and starts it with `options`: a copy for each processor.
pub fn start(path: &str, options: &str) -> Result<(), StartError> {
    let apic_ids = processors::apic_ids();
    if apic_ids.len() > MAX_PROCESSORS {
        return Err(StartError::Processors(apic_ids.len()));
    }
    let file = files::read(path)?;
    Ok(launch(&file, options, &apic_ids)?)
}

/// What the copies read when this program is gone.
struct StartArguments {
    launches: [Launch; MAX_PROCESSORS],
    startup: Startup,
    options: [u8; MAX_OPTIONS],
}
/// More than a line of the file's that anybody would write.
const MAX_OPTIONS: usize = 2048;
// It is written to the beginning of a page.
const _: () = assert!(align_of::<StartArguments>() <= PAGE_SIZE);

fn launch(file: &[u8], options: &str, apic_ids: &[u64]) -> Result<(), Refusal> {
    let bytes = image::bytes_needed(file)?;
    if bytes > MAX_BYTES || options.len() > MAX_OPTIONS {
        return Err(Refusal::NoMemory);
    }
    let entry = Pages::below(END, PAGE_SIZE)?;
    let argument_pages = Pages::below(u64::from(u32::MAX) + 1, size_of::<StartArguments>())?;
    let arguments = argument_pages.address() as *mut StartArguments;
    let startup = Startup::new(entry.address(), apic_ids).ok_or(Refusal::NoMemory)?;
    let mut line = [0; MAX_OPTIONS];
    line[..options.len()].copy_from_slice(options.as_bytes());
    // SAFETY: pages for this and nothing else, large enough.
    let (options_at, startup_at) = unsafe {
        (&raw mut (*arguments).startup).write(startup);
        (&raw mut (*arguments).options).write(line);
        ((&raw const (*arguments).options).cast(), &raw mut (*arguments).startup)
    };
    let mut images = Vec::with_capacity(apic_ids.len());
    let mut entries = Vec::with_capacity(apic_ids.len());
    for processor in 0..apic_ids.len() {
        let mut pages = Pages::for_image(bytes)?;
        let address = pages.address();
        entries.push(image::load(file, pages.bytes(), address)?);
        images.push(pages);
        let launch = Launch {
            version: LAUNCH_VERSION,
            options: options_at,
            options_len: options.len() as u64,
            rsdp: rsdp().unwrap_or(0),
            processor: processor as u64,
            startup: if apic_ids.len() > 1 { startup_at } else { null_mut() },
        };
        // SAFETY: within the array.
        unsafe { (&raw mut (*arguments).launches[processor]).write(launch) };
    }
    // The first comes last: it makes this program its guest, and from then on there is no way back.
    for (processor, entry) in entries.into_iter().enumerate().rev() {
        // SAFETY: `load` put the program there; this is its entry point.
        let entry: Entry = unsafe { transmute(entry) };
        // SAFETY: within the array. Interrupts are off from its first instruction on, and come back as they were: none
        // of the firmware's can run in between.
        let code = entry(unsafe { &raw const (*arguments).launches[processor] });
        Refusal::from_code(code).map_or(Ok(()), Err)?;
    }
    images.into_iter().for_each(Pages::keep);
    argument_pages.keep();
    if apic_ids.len() > 1 {
        entry.keep();
    }
    Ok(())
}

/// ACPI's root pointer.
fn rsdp() -> Option<u64> {
    system::with_config_table(|tables| {
        let table = tables.iter().find(|table| table.guid == ConfigTableEntry::ACPI2_GUID);
        table.map(|table| table.address as u64)
    })
}
