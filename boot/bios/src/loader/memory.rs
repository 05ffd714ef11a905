//! Memory: what there is, and address line 20.

use super::buffer;
use super::call::{Registers, bios};
use ::bios::map::first_uncovered;
use multiboot::information::{MemoryEntry, MemoryType};
use spin::{Mutex, MutexGuard};
use x86_64::instructions::port::Port;

const SYSTEM: u8 = 0x15;
/// ACPI specification, 15.1: INT 15h, E820h.
const E820: u32 = 0xe820;
/// "SMAP".
const SIGNATURE: u32 = 0x534d_4150;
const ENTRY_BYTES: usize = 20;
/// Real maps have some ten to sixty; what is left out may be what another entry has to be cut by.
const MAX_REGIONS: usize = 256;
/// INT 15h, 2401h: opens address line 20.
const OPEN_A20: u32 = 0x2401;
/// Port 0x92, bit 1: opens it on machines whose BIOS has no such call. Bit 0 resets the machine.
const FAST_A20: u16 = 0x92;
/// How often memory is looked at before the line counts as closed: a keyboard controller takes its time.
const LOOKS: u32 = 100_000;

/// The memory map, in the form that a multiboot program gets.
///
/// # Panics
/// If the BIOS has none.
pub fn map() -> &'static [MemoryEntry] {
    static REGIONS: Mutex<[MemoryEntry; MAX_REGIONS]> = Mutex::new(
        // SAFETY: it consists of numbers.
        unsafe { core::mem::zeroed() },
    );
    // Never unlocked again.
    let regions = MutexGuard::leak(REGIONS.lock());
    let (mut count, mut ebx) = (0, 0);
    while count < MAX_REGIONS {
        let registers = Registers {
            eax: E820,
            ebx,
            ecx: ENTRY_BYTES as u32,
            edx: SIGNATURE,
            es: buffer::SEGMENT,
            ..Registers::default()
        };
        // SAFETY: writes an entry to the buffer.
        let done = unsafe { bios(SYSTEM, registers) };
        if done.failed() || done.eax != SIGNATURE {
            break;
        }
        let mut entry = [0; ENTRY_BYTES];
        buffer::read(0, &mut entry);
        regions[count] = region(&entry);
        count += 1;
        ebx = done.ebx;
        if ebx == 0 {
            break;
        }
    }
    assert!(count > 0, "the BIOS has no memory map (INT 15h, E820h)");
    &regions[..count]
}

fn region(entry: &[u8; ENTRY_BYTES]) -> MemoryEntry {
    let number = |at: usize| {
        let bytes = entry[at..at + 8].first_chunk().expect("eight bytes");
        u64::from_le_bytes(*bytes)
    };
    let kind = match entry[16] {
        1 => MemoryType::Available,
        3 => MemoryType::ACPI,
        4 => MemoryType::NVS,
        5 => MemoryType::Defect,
        _ => MemoryType::Reserved,
    };
    MemoryEntry::new(number(0), number(8), kind)
}

/// Whether all of a range is usable memory, and nothing else by another entry.
pub fn is_free(regions: &[MemoryEntry], start: u64, end: u64) -> bool {
    let ranges = |usable: bool| {
        let is = move |region: &&MemoryEntry| {
            matches!(region.memory_type(), MemoryType::Available) == usable
        };
        let range = |region: &MemoryEntry| {
            region.base_address()..region.base_address().saturating_add(region.length())
        };
        regions.iter().filter(is).map(range)
    };
    ranges(true).any(|range| range.start <= start && end <= range.end)
        && first_uncovered(start..end, ranges(false)) == Some(start..end)
}

/// Opens address line 20, without which every odd MiB is the even one below it.
///
/// # Panics
/// If it stays closed.
pub fn enable_a20() {
    if is_a20_open(1) {
        return;
    }
    // SAFETY: opens the line, and nothing else.
    unsafe { bios(SYSTEM, Registers { eax: OPEN_A20, ..Registers::default() }) };
    if is_a20_open(LOOKS) {
        return;
    }
    let mut port = Port::<u8>::new(FAST_A20);
    // SAFETY: as above: bit 0 stays clear.
    unsafe {
        let value = port.read();
        port.write((value | 0b10) & !0b01);
    }
    assert!(is_a20_open(LOOKS), "address line 20 stays closed");
}

/// Whether an address and the one a MiB above it are different memory.
fn is_a20_open(looks: u32) -> bool {
    // The boot sector's signature, which nobody needs any more.
    let (low, high) = (0x7dfe as *mut u16, 0x10_7dfe as *mut u16);
    (0..looks).any(|look| {
        // SAFETY: the memory above 1 MiB holds nothing yet.
        unsafe {
            low.write_volatile(look as u16);
            high.write_volatile(!(look as u16));
            low.read_volatile() == look as u16
        }
    })
}
