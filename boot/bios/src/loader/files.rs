//! The files: the direct loader at the address that its header names, the kernel and the ramdisk after it.

use super::disk::Drive;
use super::memory;
use bios::SECTOR;
use bios::fat::Volume;
use compressed_kernel::KernelFile;
use core::slice;
use multiboot::header::Header;
use multiboot::information::MemoryEntry;

/// Names of the files, as the image maker gives them.
const DIRECT: &str = "direct.bin";
const KERNEL: &str = "kernel-x86_64";
const RAMDISK: &str = "ramdisk";
const PAGE: u64 = 4096;
/// Pages are mapped up to here, and a multiboot program's modules are below.
const END: u64 = 4 << 30;

/// A file in memory.
#[derive(Clone, Copy)]
pub struct Loaded {
    /// Its first byte.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
}

/// What was loaded.
pub struct Files {
    /// Entry point of the direct loader.
    pub entry: u32,
    pub kernel: Loaded,
    /// The job, if the image has one.
    pub ramdisk: Option<Loaded>,
}

/// Loads them from `volume` to where `regions` say is memory.
///
/// # Panics
/// With the reason, if that cannot be done.
pub fn load(volume: &mut Volume<Drive>, regions: &[MemoryEntry]) -> Files {
    // The header says where it belongs only when it is there: 1 MiB is where it is linked.
    let direct = place(volume, DIRECT, 1 << 20, regions).unwrap_or_else(|| missing(DIRECT));
    // SAFETY: just loaded.
    let bytes = unsafe {
        slice::from_raw_parts(direct.start as *const u8, (direct.end - direct.start) as usize)
    };
    let addresses = Header::from_slice(bytes).and_then(|header| header.get_addresses());
    let addresses = addresses.expect("direct.bin has no multiboot header with addresses");
    assert!(
        u64::from(addresses.load_address) == direct.start,
        "direct.bin belongs to {:#x}",
        addresses.load_address
    );
    let (bss, end) = (u64::from(addresses.load_end_address), u64::from(addresses.bss_end_address));
    assert!(memory::is_free(regions, direct.start, end), "no memory for direct.bin");
    if let Some(bytes) = end.checked_sub(bss) {
        // SAFETY: free memory, in which nothing lies yet.
        unsafe { core::ptr::write_bytes(bss as *mut u8, 0, bytes as usize) };
    }
    let kernel = place(volume, KERNEL, end, regions).unwrap_or_else(|| missing(KERNEL));
    let kernel = unpack(kernel, regions);
    let ramdisk = place(volume, RAMDISK, kernel.end, regions);
    Files { entry: addresses.entry_address, kernel, ramdisk }
}

/// Unpacks the kernel behind its file, if it is compressed: while there is a text screen to say on that it is damaged.
fn unpack(kernel: Loaded, regions: &[MemoryEntry]) -> Loaded {
    // SAFETY: just loaded.
    let file = unsafe {
        slice::from_raw_parts(kernel.start as *const u8, (kernel.end - kernel.start) as usize)
    };
    let file = KernelFile::parse(file).unwrap_or_else(|error| panic!("{KERNEL}: {error}"));
    let KernelFile::Compressed(compressed) = file else { return kernel };
    let (start, bytes) = (kernel.end.next_multiple_of(PAGE), compressed.bytes());
    let end = start + bytes as u64;
    let is_free = end <= END && memory::is_free(regions, start, end);
    assert!(is_free, "no memory to unpack {KERNEL}: {bytes} bytes from {start:#x} on");
    // SAFETY: usable memory after everything that was loaded, mapped one to one.
    let to = unsafe { slice::from_raw_parts_mut(start as *mut u8, bytes) };
    compressed.unpack(to).unwrap_or_else(|error| panic!("{KERNEL}: {error}"));
    Loaded { start, end }
}

fn missing(name: &str) -> ! {
    panic!("the disk's file system has no file {name}");
}

/// Loads the file `name` to the first page from `from` on. `None` if there is none.
fn place(
    volume: &mut Volume<Drive>,
    name: &str,
    from: u64,
    regions: &[MemoryEntry],
) -> Option<Loaded> {
    let found = volume.find(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let file = found?;
    let start = from.next_multiple_of(PAGE);
    let room = u64::from(file.bytes).next_multiple_of(SECTOR as u64);
    let is_free = start + room <= END && memory::is_free(regions, start, start + room);
    assert!(is_free, "no memory for {name}: {} bytes from {start:#x} on", file.bytes);
    // SAFETY: usable memory after everything that was loaded, mapped one to one.
    let to = unsafe { slice::from_raw_parts_mut(start as *mut u8, room as usize) };
    volume.read(file, to).unwrap_or_else(|error| panic!("{name}: {error}"));
    Some(Loaded { start, end: start + u64::from(file.bytes) })
}
