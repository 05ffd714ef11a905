//! Counts over VMRUN and the exit: of all, of the guest alone, and of the nested guest alone.

use super::block::{self, AT_NMI, AT_VMMCALL, ENTER, EXIT, NMI, RIP, TSC_OFFSET, VECTORS};
use super::{EFER, ENABLE, GUEST_ONLY, HOST_ONLY, SVME};
use crate::machine::apic_write;
use crate::overflow::{noted, set_going_on};
use crate::pmu::{AROUND, INSTRUCTIONS, INTERRUPT, KERNEL, USER, Unit, write};
use crate::{case, line};
use core::arch::asm;
use x86_64::registers::model_specific::Msr;

const NOP: [u8; 100] = [0x90; 100];
/// DEC RCX, JNZ.
const LOOP: [u8; 5] = [0x48, 0xff, 0xc9, 0x75, 0xfb];
const LVTPC: u64 = 0x340;
const LVT_NMI: u32 = 0x400;

pub fn run(unit: &Unit) {
    let straight = || block::prepare(&[&NOP]);
    let all = [
        ("both", 0, ENTER + 100),
        ("guest", HOST_ONLY, ENTER),
        ("nested", GUEST_ONLY, 100),
        ("either", HOST_ONLY | GUEST_ONLY, ENTER + 100),
    ];
    for (name, bits, expected) in all {
        straight();
        let seen = over(unit, INSTRUCTIONS | KERNEL | bits);
        line!("case counts.straight.{name} {seen} {expected}");
        case("counts.straight.exit", block::get(EXIT), AT_VMMCALL);
        straight();
        line!("case counts.straight.{name}.user {} 0", over(unit, INSTRUCTIONS | USER | bits));
    }
    for rounds in [1_000u64, 100_000] {
        block::prepare(&[&LOOP]);
        block::set_registers([rounds, 0, 0, 0, 0]);
        let seen = over(unit, INSTRUCTIONS | KERNEL | GUEST_ONLY);
        line!("case counts.loop_{rounds} {seen} {}", 2 * rounds);
    }
    branches(unit);
    without_svm(unit);
    clock();
    for interrupt in [LVT_NMI, u32::from(crate::handlers::PMI)] {
        overflow(unit, interrupt);
    }
}

/// What is counted over [`block::enter`].
fn over(unit: &Unit, select: u64) -> u64 {
    let guest = select & KERNEL != 0 && select & (HOST_ONLY | GUEST_ONLY) != GUEST_ONLY;
    unit.over_raw(select, block::enter, 0) - if guest { AROUND } else { 0 }
}

/// VMRUN is a branch of the nested guest's, and none of the guest's, who has CALL and RET.
fn branches(unit: &Unit) {
    let (_, _, event) = unit.branches();
    let all = [("nested", GUEST_ONLY, 1_001), ("guest", HOST_ONLY, 2), ("both", 0, 1_003)];
    for (name, bits, expected) in all {
        block::prepare(&[&LOOP]);
        block::set_registers([1_000, 0, 0, 0, 0]);
        let seen = unit.over_raw(event | KERNEL | bits, block::enter, 0);
        line!("case counts.branches.{name} {seen} {expected}");
    }
}

/// With EFER.SVME clear a counter for either counts nothing.
fn without_svm(unit: &Unit) {
    // SAFETY: no nested guest runs.
    unsafe {
        let mut efer = Msr::new(EFER);
        let value = efer.read();
        efer.write(value & !SVME);
        for bits in [HOST_ONLY, GUEST_ONLY, HOST_ONLY | GUEST_ONLY] {
            let select = INSTRUCTIONS | KERNEL | USER | bits;
            let counted = unit.over_raw(select, crate::code::straight::run, 0);
            case("counts.without_svm", counted, 0);
        }
        efer.write(value);
    }
    let select = INSTRUCTIONS | KERNEL | USER;
    let counted = unit.over(select | HOST_ONLY, crate::code::straight::run);
    case("counts.with_svm", counted, crate::code::straight::COUNT);
}

/// RDTSC of the nested guest is its guest's and the offset.
fn clock() {
    const OFFSET: u64 = 0x1234_5678_9abc;
    const RDTSC: [u8; 2] = [0x0f, 0x31];
    let now = || -> u64 {
        let (low, high): (u64, u64);
        // SAFETY: reads the TSC.
        unsafe { asm!("rdtsc", out("rax") low, out("rdx") high) };
        high << 32 | low
    };
    block::prepare(&[&RDTSC]);
    block::put(TSC_OFFSET, OFFSET);
    let before = now();
    block::enter();
    let after = now();
    let nested = (block::register(1) << 32 | block::get(block::RAX) & 0xffff_ffff) - OFFSET;
    case("counts.clock", u64::from((before..after).contains(&nested)), 1);
}

/// A counter of the nested guest overflows in its loop: the exit comes at that instruction, and the interrupt after STGI.
fn overflow(unit: &Unit, interrupt: u32) {
    let is_nmi = interrupt == LVT_NMI;
    let intercept = if is_nmi { NMI } else { block::INTR };
    let name = if is_nmi { "nmi" } else { "vector" };
    set_going_on(0);
    for period in [1u64, 2, 100, 4_000, 20_000] {
        block::prepare(&[&LOOP]);
        block::set_registers([50_000, 0, 0, 0, 0]);
        block::put(VECTORS, block::get(VECTORS) | intercept);
        // Interrupts of devices are let in by the guest's own flag.
        block::put(block::INTERRUPTS, 1 << 24);
        apic_write(LVTPC, interrupt);
        let (_, before) = noted();
        let select = INSTRUCTIONS | KERNEL | USER | GUEST_ONLY | INTERRUPT;
        write(unit.counter, (1 << 48) - period);
        write(unit.select, select | ENABLE);
        super::devices::enter_open();
        write(unit.select, 0);
        let (_, after) = noted();
        let expected = if is_nmi { AT_NMI } else { block::AT_INTR };
        line!("case counts.overflow.{name}.{period}.exit {:#x} {expected:#x}", block::get(EXIT));
        let rip = block::code() + if period % 2 == 1 { 3 } else { 0 };
        line!("case counts.overflow.{name}.{period}.rip {} {rip}", block::get(RIP));
        let left = 50_000 - period.div_ceil(2);
        line!("case counts.overflow.{name}.{period}.rcx {} {left}", block::register(0));
        line!("case counts.overflow.{name}.{period}.count {} 0", unit.read());
        line!("case counts.overflow.{name}.{period}.taken {} 1", after - before);
        if let Some((_, clear)) = unit.status {
            write(clear, 1);
        }
    }
    apic_write(LVTPC, 1 << 16);
}
