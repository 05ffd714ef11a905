//! Nested paging: its faults, and nested guests without paging of their own.

use super::block::{
    self, AT_HLT, AT_VMMCALL, CR0, CR3, CR4, CS, EFER, EXIT, HLT, IDTR, INFO_1, INFO_2, INJECT,
    NESTED, NESTED_CR3, Page, RIP, RSP, VECTORS,
};
use super::{SVME, WAYS, Way};
use crate::line;
use crate::machine::{PHYSICAL, physical};
use crate::pmu::Unit;

/// Present, writable, user.
const ALL: u64 = 7;
const LARGE: u64 = 1 << 7;
const FAULT: u64 = 0x400;
/// A guest physical address at which there is no memory, and where it is mapped linearly.
const HOLE: u64 = 0x3000_0000;
const FINAL: u64 = 1 << 32;

#[repr(C, align(4096))]
struct Table([u64; 512]);
/// Levels 4, 3, 2, and the lowest one of the first 2 MiB.
static mut TABLES: [Table; 4] = [const { Table([0; 512]) }; 4];
static mut MAGIC: Page = Page([0x5a; 4096]);
static mut REAL: Page = Page([0; 4096]);

fn entry(level: usize, slot: usize) -> *mut u64 {
    // SAFETY: within the tables.
    unsafe { (&raw mut TABLES).cast::<u64>().add(512 * level + slot) }
}

fn set(level: usize, slot: usize, value: u64) {
    // SAFETY: the tables are not in use.
    unsafe { entry(level, slot).write(value) };
}

/// Maps the first GiB and, for devices, the fourth as they are, but for the hole.
fn map() {
    let table = |level: usize| physical(entry(level, 0) as u64);
    set(0, 0, table(1) | ALL);
    set(1, 0, table(2) | ALL);
    set(1, 3, 3 << 30 | LARGE | ALL);
    for slot in 0..512 {
        set(2, slot, (slot as u64) << 21 | LARGE | ALL);
        set(3, slot, (slot as u64) << 12 | ALL);
    }
    set(2, 0, table(3) | ALL);
    set(2, (HOLE >> 21) as usize, 0);
}

fn with_tables() {
    block::put(NESTED, 1);
    block::put(NESTED_CR3, physical(entry(0, 0) as u64));
}

/// NOP; MOV RAX, \[RSI\]; the same as a store.
const LOAD: [u8; 4] = [0x90, 0x48, 0x8b, 0x06];
const STORE: [u8; 4] = [0x90, 0x48, 0x89, 0x06];

pub fn run(unit: &Unit) {
    for way in WAYS {
        map();
        block::prepare(&[&[0x90; 50]]);
        with_tables();
        let counted = way.run(unit, 50);
        line!("case {}.paging.straight.exit {:#x} {AT_VMMCALL:#x}", way.name, block::get(EXIT));
        line!("case {}.paging.straight.counted {counted} 50", way.name);
        faults(unit, way);
        real_mode(unit, way);
    }
}

fn access(unit: &Unit, way: Way, name: &str, code: &[u8], entry: u64, info: Option<u64>) {
    set(2, (HOLE >> 21) as usize, entry);
    block::prepare(&[code]);
    with_tables();
    block::set_registers([0, 0, 0, PHYSICAL + HOLE + 0x18, 0]);
    let (exit, expected) = if info.is_some() { (FAULT, 1) } else { (AT_VMMCALL, 2) };
    let counted = way.run(unit, expected);
    let way = way.name;
    line!("case {way}.paging.{name}.exit {:#x} {exit:#x}", block::get(EXIT));
    line!("case {way}.paging.{name}.counted {counted} {expected}");
    if let Some(info) = info {
        line!("case {way}.paging.{name}.info {:#x} {info:#x}", block::get(INFO_1));
        line!("case {way}.paging.{name}.address {:#x} {:#x}", block::get(INFO_2), HOLE + 0x18);
        line!("case {way}.paging.{name}.rip {} {}", block::get(RIP), block::code() + 1);
    }
}

fn faults(unit: &Unit, way: Way) {
    // What the nested guest finds there: the 2 MiB in which that page lies.
    let magic = physical(&raw const MAGIC as u64);
    let mapped = magic & !0x1f_ffff | LARGE | ALL;
    access(unit, way, "load", &LOAD, 0, Some(FINAL | 4));
    access(unit, way, "store", &STORE, 0, Some(FINAL | 6));
    access(unit, way, "protected", &STORE, mapped & !2, Some(FINAL | 7));
    access(unit, way, "load_protected", &LOAD, mapped & !2, None);
    access(unit, way, "load_again", &LOAD, 0, Some(FINAL | 4));
    // The page itself.
    set(2, (HOLE >> 21) as usize, mapped);
    block::prepare(&[&LOAD]);
    with_tables();
    block::set_registers([0, 0, 0, PHYSICAL + HOLE + (magic & 0x1f_ffff), 0]);
    let counted = way.run(unit, 2);
    let way = way.name;
    line!("case {way}.paging.mapped.value {:#x} 0x5a5a5a5a5a5a5a5a", block::get(block::RAX));
    line!("case {way}.paging.mapped.counted {counted} 2");
}

/// A nested guest in real mode, all in the page at 0x2000: code, interrupt table, a handler at 0x100, and its stack.
fn real_mode(unit: &Unit, way: Way) {
    // NOP, HLT; at 0x100 NOP, IRET.
    let real = physical(&raw const REAL as u64);
    let page = &raw mut REAL;
    // SAFETY: this module's page.
    unsafe {
        let page = page.cast::<u8>();
        page.copy_from_nonoverlapping([0x90, 0xf4].as_ptr(), 2);
        page.add(0x100).copy_from_nonoverlapping([0x90, 0xcf].as_ptr(), 2);
        // Offset 0x100, segment 0x200.
        page.add(0x60 * 4).copy_from_nonoverlapping([0x00, 0x01, 0x00, 0x02].as_ptr(), 4);
    }
    for (name, event, expected) in [
        ("plain", 0, 1),
        ("interrupt", 1 << 31 | 0x60, 3),
        ("nmi_like", 1 << 31 | 4 << 8 | 0x60, 3),
    ] {
        map();
        set(3, 2, real | ALL);
        block::prepare(&[]);
        with_tables();
        block::put(CR0, 0x10);
        block::put(CR3, 0);
        block::put(CR4, 0);
        block::put(EFER, SVME);
        block::segment(CS, 0x200, 0x9b, 0xffff, 0x2000);
        for place in [0x400, 0x420, 0x430] {
            block::segment(place, 0x200, 0x93, 0xffff, 0x2000);
        }
        block::segment(IDTR, 0, 0, 0x3ff, 0x2000);
        block::put(RIP, 0);
        block::put(RSP, 0xff0);
        block::put(block::RFLAGS, 0x202);
        block::put(VECTORS, block::get(VECTORS) | HLT);
        block::put(INJECT, event);
        let counted = way.run(unit, expected);
        let way = way.name;
        line!("case {way}.real.{name}.exit {:#x} {AT_HLT:#x}", block::get(EXIT));
        line!("case {way}.real.{name}.rip {} 1", block::get(RIP));
        line!("case {way}.real.{name}.rsp {:#x} 0xff0", block::get(RSP) & 0xffff);
        line!("case {way}.real.{name}.counted {counted} {expected}");
    }
}
