//! Hiding the HPET from the guest: an operating system that finds it in ACPI's tables sets its counter to 0 and takes its
//! timers, and the alarm clock is one of them. And finding the power management timer. ACPI specification 6.5, 5.2.

use super::memory::read_physical;

const ROOT_SIGNATURE: &[u8; 8] = b"RSD PTR ";
const HPET: u32 = u32::from_le_bytes(*b"HPET");
/// The fixed ACPI description table.
const FIXED_DESCRIPTION: u32 = u32::from_le_bytes(*b"FACP");
/// A name that no driver looks for.
const HIDDEN: u32 = u32::from_le_bytes(*b"HPEt");
/// Bytes of a table's header, in which its length is at 4 and its checksum at 9.
const HEADER: u64 = 36;
/// More entries than any machine has tables.
const MAX_ENTRIES: u64 = 256;

fn word(address: u64) -> u32 {
    read_physical(address) as u32
}

/// The addresses of the tables with this signature. `root` is the address of ACPI's root pointer, or 0.
fn tables(root: u64, signature: u32) -> impl Iterator<Item = u64> {
    let is_root = root != 0 && read_physical(root).to_le_bytes() == *ROOT_SIGNATURE;
    let (list, width) =
        match is_root.then(|| (read_physical(root + 8) >> 56, read_physical(root + 24))) {
            Some((2.., extended)) if extended != 0 => (extended, 8),
            Some(_) => (u64::from(word(root + 16)), 4),
            None => (0, 4),
        };
    let bytes = if list == 0 { 0 } else { u64::from(word(list + 4)).saturating_sub(HEADER) };
    (0..(bytes / width).min(MAX_ENTRIES))
        .map(move |index| list + HEADER + width * index)
        .map(move |at| if width == 8 { read_physical(at) } else { u64::from(word(at)) })
        .filter(move |&table| table != 0 && word(table) == signature)
}

/// Renames the HPET's table.
pub fn hide_hpet(root: u64) {
    tables(root, HPET).for_each(rename);
}

/// The port of the power management timer: field PM_TMR_BLK of the fixed description table, if PM_TMR_LEN says that there
/// is one (ACPI 6.5, table 5.9).
pub fn pm_timer(root: u64) -> Option<u16> {
    const BLOCK: u64 = 76;
    const LENGTH: u64 = 91;
    let table = tables(root, FIXED_DESCRIPTION).next()?;
    let (block, length) = (word(table + BLOCK), word(table + LENGTH) as u8);
    u16::try_from(block).ok().filter(|&port| port != 0 && length == 4)
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
