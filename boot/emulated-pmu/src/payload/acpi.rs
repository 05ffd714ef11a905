//! Hiding the HPET from the guest: an operating system that finds it in ACPI's tables sets its counter to 0 and takes its
//! timers, and the alarm clock is one of them. ACPI specification 6.5, 5.2.

use super::memory::read_physical;

const ROOT_SIGNATURE: &[u8; 8] = b"RSD PTR ";
const HPET: u32 = u32::from_le_bytes(*b"HPET");
/// A name that no driver looks for.
const HIDDEN: u32 = u32::from_le_bytes(*b"HPEt");
/// Bytes of a table's header, in which its length is at 4 and its checksum at 9.
const HEADER: u64 = 36;
/// More entries than any machine has tables.
const MAX_ENTRIES: u64 = 256;

fn word(address: u64) -> u32 {
    read_physical(address) as u32
}

/// Renames the table. `root` is the address of ACPI's root pointer, or 0.
pub fn hide_hpet(root: u64) {
    if root == 0 || read_physical(root).to_le_bytes() != *ROOT_SIGNATURE {
        return;
    }
    let revision = read_physical(root + 8) >> 56;
    let (list, width) = match (revision, read_physical(root + 24)) {
        (2.., extended) if extended != 0 => (extended, 8),
        _ => (u64::from(word(root + 16)), 4),
    };
    let bytes = u64::from(word(list + 4)).saturating_sub(HEADER);
    for index in 0..(bytes / width).min(MAX_ENTRIES) {
        let at = list + HEADER + width * index;
        let table = if width == 8 { read_physical(at) } else { u64::from(word(at)) };
        if table != 0 && word(table) == HPET {
            rename(table);
        }
    }
}

fn rename(table: u64) {
    // The sum of all bytes has to stay 0.
    let more = HIDDEN.to_le_bytes().iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let less = HPET.to_le_bytes().iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    // SAFETY: the table lies in memory that the firmware set aside, identity mapped and writable; nobody reads it now.
    unsafe {
        (table as *mut u32).write_unaligned(HIDDEN);
        let checksum = (table + 9) as *mut u8;
        checksum.write(checksum.read().wrapping_add(less).wrapping_sub(more));
    }
}
