//! Starting the hypervisor: from then on this program, and everything after it, runs as its guest.

use super::files::{self, FileError};
use core::ptr::NonNull;
use core::slice;
use handover::{Entry, LAUNCH_VERSION, Launch, Refusal, image};
use thiserror::Error;
use uefi::boot::{self, AllocateType, MemoryType, PAGE_SIZE};
use uefi::mem::memory_map::MemoryAttribute;
use uefi::proto::pi::mp::MpServices;
use uefi::proto::security::MemoryProtection;
use uefi::system;
use uefi::table::cfg::ConfigTableEntry;

/// More than any hypervisor here needs: a damaged file must not ask for all memory.
const MAX_BYTES: u64 = 64 << 20;
/// Below 4 GiB, as with the direct loader, which maps no more.
const LAST_ADDRESS: u64 = u32::MAX as u64;
/// Pages from one multiple of the alignment to the next.
const ALIGN_PAGES: usize = image::ALIGN as usize / PAGE_SIZE;

/// Why there is no hypervisor.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its file cannot be read.
    #[error("{0}")]
    File(#[from] FileError),
    /// An operating system would start the others outside of the hypervisor, with another processor's identity.
    #[error("the machine has {0} processors, of which the hypervisor can hold one (QEMU: -smp 1)")]
    Processors(usize),
    /// It, or what loads it, refuses.
    #[error("{0}")]
    Refused(#[from] Refusal),
}

/// Loads the file into memory that no operating system will use, and starts it with `options`.
pub fn start(path: &str, options: &str) -> Result<(), StartError> {
    let processors = processors();
    if processors > 1 {
        return Err(StartError::Processors(processors));
    }
    let file = files::read(path)?;
    let bytes = image::bytes_needed(&file)?;
    if bytes > MAX_BYTES {
        return Err(Refusal::NoMemory.into());
    }
    let pages = (bytes as usize).div_ceil(PAGE_SIZE);
    let place = allocate(pages).ok_or(Refusal::NoMemory)?;
    let result = load_and_call(&file, place, pages, options);
    if result.is_err() {
        // SAFETY: a hypervisor that refused uses its memory no more.
        let freed = unsafe { boot::free_pages(place, pages) };
        debug_assert!(freed.is_ok(), "pages that were just allocated");
    }
    Ok(result?)
}

fn load_and_call(
    file: &[u8],
    place: NonNull<u8>,
    pages: usize,
    options: &str,
) -> Result<(), Refusal> {
    let address = place.as_ptr() as u64;
    // SAFETY: pages that were allocated for this; firmware maps memory one to one.
    let memory = unsafe { slice::from_raw_parts_mut(place.as_ptr(), pages * PAGE_SIZE) };
    let entry = image::load(file, memory, address)?;
    make_executable(address, pages);
    let launch = Launch {
        version: LAUNCH_VERSION,
        options: options.as_ptr(),
        options_len: options.len() as u64,
        rsdp: rsdp().unwrap_or(0),
        processor: 0,
        others: core::ptr::null(),
        others_len: 0,
    };
    // SAFETY: `load` put the program there; this is its entry point.
    let entry: Entry = unsafe { core::mem::transmute(entry) };
    // Interrupts are off from its first instruction on, and come back as they were: none of the firmware's can run
    // in between.
    Refusal::from_code(entry(&raw const launch)).map_or(Ok(()), Err)
}

/// Reserved pages below 4 GiB at a multiple of [`image::ALIGN`]. Firmware aligns to pages alone: more are asked for, and
/// those around are given back.
fn allocate(pages: usize) -> Option<NonNull<u8>> {
    let asked = pages + ALIGN_PAGES - 1;
    let kind = AllocateType::MaxAddress(LAST_ADDRESS);
    let first = boot::allocate_pages(kind, MemoryType::RESERVED, asked).ok()?;
    let skipped = first.as_ptr().align_offset(image::ALIGN as usize) / PAGE_SIZE;
    let at = |page: usize| {
        // SAFETY: within the allocation, or just behind it.
        unsafe { first.add(page * PAGE_SIZE) }
    };
    let end = skipped + pages;
    for (from, count) in [(0, skipped), (end, asked - end)] {
        if count > 0 {
            // SAFETY: a part of the allocation that nothing uses. If the firmware keeps it, it is lost and no more.
            let _ = unsafe { boot::free_pages(at(from), count) };
        }
    }
    Some(at(skipped))
}

/// Firmware that protects memory makes what holds no program not executable; it then has a protocol to say otherwise.
fn make_executable(address: u64, pages: usize) {
    let Ok(handle) = boot::get_handle_for_protocol::<MemoryProtection>() else { return };
    let Ok(protection) = boot::open_protocol_exclusive::<MemoryProtection>(handle) else { return };
    let range = address..address + (pages * PAGE_SIZE) as u64;
    let forbidden = MemoryAttribute::EXECUTE_PROTECT | MemoryAttribute::READ_ONLY;
    // If it refuses, there is nothing else to be tried.
    let _ = protection.clear_memory_attributes(range, forbidden);
}

/// How many processors an operating system could start. Firmware without the protocol is not asked further.
fn processors() -> usize {
    let Ok(handle) = boot::get_handle_for_protocol::<MpServices>() else { return 1 };
    let Ok(services) = boot::open_protocol_exclusive::<MpServices>(handle) else { return 1 };
    services.get_number_of_processors().map_or(1, |count| count.enabled)
}

/// ACPI's root pointer.
fn rsdp() -> Option<u64> {
    system::with_config_table(|tables| {
        let table = tables.iter().find(|table| table.guid == ConfigTableEntry::ACPI2_GUID);
        table.map(|table| table.address as u64)
    })
}
