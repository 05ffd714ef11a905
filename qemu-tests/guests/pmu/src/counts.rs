//! Instructions in ring 0.

use crate::case;
use crate::code::*;
use crate::handlers::DEVICE;
use crate::machine::apic_write;
use crate::pmu::{INSTRUCTIONS, KERNEL, USER, Unit, read, write};
use core::arch::naked_asm;

macro_rules! cases {
    ($unit:ident, $($name:ident),*) => {
        $(case(stringify!($name), $unit.over(INSTRUCTIONS | USER | KERNEL, $name::run), $name::COUNT);)*
    };
}

pub fn run(unit: &Unit) {
    cases!(
        unit,
        nothing,
        straight,
        mixed,
        calls,
        undefined,
        division,
        page_fault,
        protection,
        software_interrupt,
        breakpoint,
        interrupts,
        cpuid,
        clock,
        flags,
        shadow
    );
    // Bus clock by 1.
    apic_write(0x3e0, 0b1011);
    apic_write(0x320, u32::from(DEVICE));
    cases!(unit, halted);
    if core::arch::x86_64::__cpuid(1).ecx & 1 << 3 != 0 {
        cases!(unit, monitored);
    }
    cases!(unit, loop_1_000, loop_10_000, loop_100_000, loop_1_000_000);
    // Kernel alone counts the same here, user alone nothing.
    case("kernel_alone", unit.over(INSTRUCTIONS | KERNEL, straight::run), straight::COUNT);
    case("user_alone", unit.over(INSTRUCTIONS | USER, interrupts::run), 0);
    case(
        "kernel_alone_interrupts",
        unit.over(INSTRUCTIONS | KERNEL, interrupts::run),
        interrupts::COUNT,
    );
    counter_reads(unit);
}

/// The loops that take long.
pub fn long(unit: &Unit) {
    cases!(unit, loop_10_000_000, loop_100_000_000);
}

/// RDPMC and RDMSR of the running counter: what lies between two reads.
fn counter_reads(unit: &Unit) {
    unit.program(INSTRUCTIONS | KERNEL, 0);
    let (switch, on) = unit.switch(INSTRUCTIONS | KERNEL);
    write(switch, on);
    let reads = rdpmc_twice();
    let (first, second) = (read(unit.counter), read(unit.counter));
    write(switch, 0);
    // The first RDPMC, MOV and NOP.
    case("rdpmc", reads, 3);
    case("rdmsr_advances", u64::from(second > first), 1);
}

/// The difference of two RDPMC with two instructions in between.
#[unsafe(naked)]
extern "sysv64" fn rdpmc_twice() -> u64 {
    naked_asm!("xor ecx, ecx", "rdpmc", "mov esi, eax", "nop", "rdpmc", "sub eax, esi", "ret")
}
