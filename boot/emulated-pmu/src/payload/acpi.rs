//! Hiding the HPET from the guest: an operating system that finds it in ACPI's tables sets its counter to 0 and takes its
//! timers, and the alarm clock is one of them. And finding the power management timer. ACPI specification 6.5, 5.2.

use super::memory::read_physical;
use core::slice;
use emulated_pmu::acpi;

const ROOT_SIGNATURE: &[u8; 8] = b"RSD PTR ";
const HPET: u32 = u32::from_le_bytes(*b"HPET");
/// The fixed ACPI description table.
const FIXED_DESCRIPTION: u32 = u32::from_le_bytes(*b"FACP");
/// A name that no driver looks for.
const HIDDEN: u32 = u32::from_le_bytes(*b"HPEt");
/// The differentiated system description table, which is AML.
const DESCRIPTION: u32 = u32::from_le_bytes(*b"DSDT");
/// Bytes of a table's header, and where its length is in it.
const HEADER: u64 = 36;
const LENGTH: u64 = 4;
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
    let bytes = if list == 0 { 0 } else { u64::from(word(list + LENGTH)).saturating_sub(HEADER) };
    (0..(bytes / width).min(MAX_ENTRIES))
        .map(move |index| list + HEADER + width * index)
        .map(move |at| if width == 8 { read_physical(at) } else { u64::from(word(at)) })
        .filter(move |&table| table != 0 && word(table) == signature)
}

/// Renames the HPET's table, and makes reserved memory of the device that the machine's description has in it.
pub fn hide_hpet(root: u64) {
    for table in tables(root, HPET) {
        change(table, |table| acpi::put(table, 0, &HIDDEN.to_le_bytes()));
    }
    if let Some(table) = description(root) {
        change(table, acpi::reserve_hpet);
    }
}

/// The differentiated system description table: fields DSDT and X_DSDT of the fixed one (ACPI 6.5, table 5.9).
fn description(root: u64) -> Option<u64> {
    const DSDT: u64 = 40;
    const X_DSDT: u64 = 140;
    let fixed = tables(root, FIXED_DESCRIPTION).next()?;
    let has_extended = u64::from(word(fixed + LENGTH)) >= X_DSDT + 8;
    let extended = has_extended.then(|| read_physical(fixed + X_DSDT)).filter(|&table| table != 0);
    let table = extended.unwrap_or_else(|| word(fixed + DSDT).into());
    (table != 0 && word(table) == DESCRIPTION).then_some(table)
}

/// The port of the power management timer: field PM_TMR_BLK of the fixed description table, if PM_TMR_LEN says that there
/// is one (ACPI 6.5, table 5.9).
pub fn pm_timer(root: u64) -> Option<u16> {
    const BLOCK: u64 = 76;
    const BLOCK_LENGTH: u64 = 91;
    let table = tables(root, FIXED_DESCRIPTION).next()?;
    let (block, length) = (word(table + BLOCK), word(table + BLOCK_LENGTH) as u8);
    u16::try_from(block).ok().filter(|&port| port != 0 && length == 4)
}

/// Changes the table at this address.
fn change(table: u64, change: impl FnOnce(&mut [u8])) {
    let bytes = word(table + LENGTH) as usize;
    // SAFETY: the table is in memory that the firmware set aside, identity mapped and writable; nobody reads it now.
    change(unsafe { slice::from_raw_parts_mut(table as *mut u8, bytes) });
}
