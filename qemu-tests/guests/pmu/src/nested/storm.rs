//! NMIs of the guest's own counter that come faster than their handler ends: one that waits ends the nested guest before its first
//! instruction, however soon after the last one it runs.

use super::HOST_ONLY;
use super::block::{self, AT_NMI, EXIT, NMI, RIP, VECTORS};
use super::events;
use crate::line;
use crate::machine::apic_write;
use crate::pmu::{INSTRUCTIONS, INTERRUPT, KERNEL, USER, Unit};
use crate::storm;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LVTPC: u64 = 0x340;
const MASKED: u32 = 1 << 16;
/// NOP.
const NOPS: [u8; 100] = [0x90; 100];
/// Rounds of two instructions before VMRUN: enough for NMIs to be given room, and then each distance from the last one.
const ROUNDS: core::ops::Range<u64> = 100..132;

static LEFT: AtomicU64 = AtomicU64::new(0);

#[unsafe(naked)]
extern "C" fn enter() {
    naked_asm!(
        "mov rcx, [rip + {left}]",
        "2:", "dec rcx", "jnz 2b",
        "jmp {enter}",
        left = sym LEFT, enter = sym block::enter,
    )
}

pub fn run(unit: &Unit) {
    for rounds in ROUNDS {
        events::prepare(&NOPS);
        block::put(VECTORS, block::get(VECTORS) | NMI);
        LEFT.store(rounds, Relaxed);
        let bits = INSTRUCTIONS | USER | KERNEL | INTERRUPT | HOST_ONLY;
        let seen = storm::over(unit, bits, enter);
        line!("case storm.{rounds}.exit {:#x} {AT_NMI:#x}", block::get(EXIT));
        line!("case storm.{rounds}.rip {} {}", block::get(RIP), block::code());
        line!("case storm.{rounds}.nested {} 0", events::noted().2);
        line!("case storm.{rounds}.many {} 1", u64::from(seen > 8));
    }
    apic_write(LVTPC, MASKED);
}
