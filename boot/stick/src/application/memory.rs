//! The memory for the report.

use super::note::Note;
use core::arch::x86_64::_rdtsc;
use core::ptr::NonNull;
use stick::region::{self, HEADER_BYTES, Terms};
use stick::settings::Settings;
use stick::{ALIGN, MEMORY_TYPE};
use thiserror::Error;
use uefi::boot::{self, AllocateType, MemoryAttribute, MemoryDescriptor, MemoryType, PAGE_SIZE};
use uefi::mem::memory_map::{MemoryMap, MemoryMapOwned};
use uefi::table::system_table_raw;

/// Bytes of the region, which fit into the largest file of the stick; less where the machine has little.
const SIZES: [u64; 3] = [4 << 20, 1 << 20, 256 << 10];
/// The region takes at most this part of the piece of free memory that it is in.
const SHARE: u64 = 8;
/// The kernel maps one to one what lies below, for the calls of the firmware; and reads the region by its map of memory.
const END: u64 = 4 << 30;

/// Why there is none.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// The firmware does not say what memory there is.
    #[error("the memory map is not available: {0}")]
    Map(uefi::Error),
    /// All pieces are small.
    #[error("no free memory of {} KiB below 4 GiB", SHARE * SIZES[2] / 1024)]
    None,
    /// It is in the map, but not given.
    #[error("memory at {0:#x} cannot be allocated: {1}")]
    Refused(u64, uefi::Error),
}

fn end(one: &MemoryDescriptor) -> u64 {
    one.phys_start + one.page_count * PAGE_SIZE as u64
}

/// What is at a place where a region was, if that is memory.
pub fn content((address, bytes): (u64, u64)) -> Option<&'static mut [u8]> {
    let map = boot::memory_map(MemoryType::LOADER_DATA).ok()?;
    let is_memory = |one: &&MemoryDescriptor| {
        let kinds = [
            MemoryType::CONVENTIONAL,
            MemoryType::BOOT_SERVICES_CODE,
            MemoryType::BOOT_SERVICES_DATA,
            MemoryType::LOADER_CODE,
            MemoryType::LOADER_DATA,
            MemoryType(MEMORY_TYPE),
        ];
        kinds.contains(&one.ty)
    };
    let to = address.checked_add(bytes).filter(|&to| to <= END)?;
    // The map may have it in several pieces, in any order.
    let covered: u64 = map
        .entries()
        .filter(is_memory)
        .map(|one| end(one).min(to).saturating_sub(one.phys_start.max(address)))
        .sum();
    let is_plausible = bytes > HEADER_BYTES as u64 && address.is_multiple_of(PAGE_SIZE as u64);
    // SAFETY: memory that the firmware maps one to one. It may be in use by now, which the checksums tell; it is written
    // to only where they were right, and then it is the region.
    (covered == bytes && is_plausible && address != 0)
        .then(|| unsafe { core::slice::from_raw_parts_mut(address as *mut u8, bytes as usize) })
}

/// Reserves the region, with its header; returns address and bytes.
pub fn reserve(settings: &Settings, note: &Note) -> Result<(u64, u64), MemoryError> {
    let map = boot::memory_map(MemoryType::LOADER_DATA).map_err(MemoryError::Map)?;
    let (address, bytes) = place(&map, note).ok_or(MemoryError::None)?;
    let kind = AllocateType::Address(address);
    let pages = boot::allocate_pages(kind, MemoryType(MEMORY_TYPE), bytes as usize / PAGE_SIZE)
        .map_err(|error| MemoryError::Refused(address, error))?;
    let terms = Terms { image: settings.image, ..terms(&map, note) };
    region::prepare(bytes_of(pages, bytes), &terms);
    Ok((address, bytes))
}

fn bytes_of(pages: NonNull<u8>, bytes: u64) -> &'static mut [u8] {
    // SAFETY: just allocated, and never freed.
    unsafe { core::slice::from_raw_parts_mut(pages.as_ptr(), bytes as usize) }
}

/// Where it was, if that is free again; else the middle of the largest free piece: firmware begins to use memory at both ends.
fn place(map: &MemoryMapOwned, note: &Note) -> Option<(u64, u64)> {
    let free = |one: &&MemoryDescriptor| one.ty == MemoryType::CONVENTIONAL && end(one) <= END;
    let earlier = note.region.filter(|&(address, bytes)| {
        map.entries()
            .filter(free)
            .any(|one| one.phys_start <= address && address + bytes <= end(one))
    });
    if earlier.is_some_and(|(_, bytes)| SIZES.contains(&bytes)) {
        return earlier;
    }
    let largest = map.entries().filter(free).max_by_key(|one| one.page_count)?;
    let has = end(largest) - largest.phys_start;
    let bytes = SIZES.into_iter().find(|bytes| bytes * SHARE <= has)?;
    Some(((largest.phys_start + has / 2) & !(ALIGN - 1), bytes))
}

/// The way to the variables, for a machine of which it is not known that it keeps its memory.
fn terms(map: &MemoryMapOwned, note: &Note) -> Terms {
    // SAFETY: the counter can always be read here.
    let terms = Terms { boot: unsafe { _rdtsc() }, ..Terms::default() };
    // What the firmware's functions touch, devices included.
    let runtime = map.entries().filter(|one| one.att.contains(MemoryAttribute::RUNTIME));
    let top = runtime.map(end).max().unwrap_or(END).max(END);
    let system = system_table_raw().filter(|_| !note.keeps_memory && top <= 512 << 30);
    let Some(system) = system else { return terms };
    // SAFETY: the firmware's tables, which live as long as this program.
    let services = unsafe { &*(*system.as_ptr()).runtime_services };
    Terms {
        set_variable: services.set_variable as usize as u64,
        query_variables: services.query_variable_info as usize as u64,
        mapped_gib: top.div_ceil(1 << 30),
        ..terms
    }
}
