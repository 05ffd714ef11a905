//! Keeping the local APIC's registers from being written to unseen, and from being read as well where the hypervisor has
//! registers of its own among them ([`crate::payload::ibs`]): nested page tables that map all memory as it is, but for that
//! one page.

use crate::payload::lapic;
use crate::payload::maps::PAGE;
use crate::payload::port::read_msr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use emulated_pmu::vmcb::Vmcb;

const ENTRIES: u64 = 512;
/// Present, writable, user: nested walks count as user accesses.
const OPEN: u64 = 0b111;
const WRITABLE: u64 = 0b10;
const LARGE: u64 = 1 << 7;
const PAT: u32 = 0x277;

#[repr(C, align(4096))]
struct Table([u64; ENTRIES as usize]);
/// One of each level, the highest first.
static mut TABLES: [Table; 4] = [const { Table([0; ENTRIES as usize]) }; 4];
/// The page's address, or 0 if it is not guarded.
static GUARDED: AtomicU64 = AtomicU64::new(0);
/// It must not be read either.
static HIDES: AtomicBool = AtomicBool::new(false);
/// An access that has been looked at is let through.
static LETS_ACCESS: AtomicBool = AtomicBool::new(false);

/// The page that is guarded, if one is.
pub fn page() -> Option<u64> {
    Some(GUARDED.load(Ordering::Relaxed)).filter(|&page| page != 0)
}

/// Whether reads are seen as well.
pub fn hides() -> bool {
    HIDES.load(Ordering::Relaxed)
}

/// Sees reads as well from now on, in the mode in which the registers have a page. The guest is not running.
pub fn hide() {
    if !lapic::is_in_page(lapic::page()) {
        return;
    }
    HIDES.store(true, Ordering::Relaxed);
    // SAFETY: the hypervisor runs, on this copy's processor; no guest walks the tables now.
    unsafe { begin() };
}

/// Begins to guard the page where the local APIC's registers are.
///
/// # Safety
/// While no guest runs.
pub unsafe fn begin() {
    let guarded = lapic::page();
    let tables = &raw mut TABLES;
    // SAFETY: the caller's promise; nobody else has a reference to the tables.
    let tables = unsafe { &mut *tables };
    let address = |level: usize| (&raw const TABLES) as u64 + level as u64 * PAGE;
    tables[0].0[0] = address(1) | OPEN;
    for (level, table) in tables.iter_mut().enumerate().skip(1) {
        // Bytes that an entry maps.
        let span = PAGE * ENTRIES.pow(3 - level as u32);
        let first = if level == 1 { 0 } else { guarded & !(span * ENTRIES - 1) };
        let size = if span == PAGE { 0 } else { LARGE };
        for (slot, entry) in table.0.iter_mut().enumerate() {
            let start = first + slot as u64 * span;
            let holds = guarded & !(span - 1) == start;
            *entry = match (holds, level) {
                (true, 3) if hides() => 0,
                (true, 3) => start | OPEN & !WRITABLE,
                (true, _) => address(level + 1) | OPEN,
                (false, _) => start | OPEN | size,
            };
        }
    }
    GUARDED.store(guarded, Ordering::Relaxed);
}

/// Before an entry, with nested paging as it would be without the guard.
pub fn apply(vmcb: &mut Vmcb) {
    if page().is_none() {
        return;
    }
    if LETS_ACCESS.load(Ordering::Relaxed) {
        vmcb.nested_control = 0;
    } else if vmcb.nested_control == 0 {
        vmcb.nested_control = 1;
        vmcb.nested_cr3 = (&raw const TABLES) as u64;
        // SAFETY: every x86-64 processor has the register; the guest's value is live in it.
        vmcb.pat = unsafe { read_msr(PAT) };
    }
}

/// Lets what happens in `during` access the page.
pub fn lift(during: impl FnOnce()) {
    LETS_ACCESS.store(true, Ordering::Relaxed);
    during();
    LETS_ACCESS.store(false, Ordering::Relaxed);
}
