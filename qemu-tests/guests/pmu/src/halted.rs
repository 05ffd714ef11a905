//! HLT while something is counted: it ends when what it waits for comes, and takes the guest as long as that.

use crate::handlers::DEVICE;
use crate::machine::{apic, apic_write};
use crate::pmu::{INSTRUCTIONS, INTERRUPT, KERNEL, USER, Unit, call};
use crate::{line, storm};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// LVT timer, in one-shot mode; LVT performance counters; divide configuration.
const LVT_TIMER: u64 = 0x320;
const LVTPC: u64 = 0x340;
const DIVIDE: u64 = 0x3e0;
const BY_1: u32 = 0b1011;
const MASKED: u32 = 1 << 16;
/// Nanoseconds, which are the ticks of QEMU's timer and TSC.
const WAITS: [u64; 3] = [3_000, 20_000, 1_000_000];
/// Nanoseconds of the guest's code around HLT, the handler and the hypervisor's way to it, at most.
const AROUND: u64 = 4_000;
/// Rounds of two instructions before HLT: enough for NMIs to be given room, and then each distance from the last one.
const ROUNDS: core::ops::Range<u64> = 100..132;

static COUNT: AtomicU64 = AtomicU64::new(0);
static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);

#[unsafe(naked)]
extern "C" fn until_the_timer_rings() {
    naked_asm!(
        "movabs rsi, {initial}", "mov ecx, [rip + {count}]",
        "rdtsc", "mov [rip + {begun}], eax", "mov [rip + {begun} + 4], edx",
        "mov [rsi], ecx",
        "sti", "hlt", "cli",
        "rdtsc", "mov [rip + {ended}], eax", "mov [rip + {ended} + 4], edx",
        "ret",
        initial = const apic(0x380), count = sym COUNT, begun = sym BEGUN, ended = sym ENDED,
    )
}

/// Where the last NMI came before the instruction after HLT was executed, and that instruction.
static CAME: AtomicU64 = AtomicU64::new(0);
static AFTER: AtomicU64 = AtomicU64::new(0);

#[unsafe(naked)]
extern "C" fn until_an_nmi_comes() {
    naked_asm!(
        "mov rcx, [rip + {count}]",
        "2:", "dec rcx", "jnz 2b",
        "hlt",
        "3:", "mov rcx, [rip + {interrupted}]",
        "mov [rip + {came}], rcx",
        "lea rcx, [rip + 3b]",
        "mov [rip + {after}], rcx",
        "ret",
        count = sym COUNT, interrupted = sym storm::INTERRUPTED, came = sym CAME, after = sym AFTER,
    )
}

const BITS: u64 = INSTRUCTIONS | USER | KERNEL;

/// The time is right where the guest's clock is its own.
pub fn timer(unit: &Unit) {
    apic_write(DIVIDE, BY_1);
    apic_write(LVT_TIMER, DEVICE.into());
    for wait in WAITS {
        COUNT.store(wait, Relaxed);
        unit.program(BITS, 0);
        let (switch, on) = unit.switch(BITS);
        call(switch, on, until_the_timer_rings as *const () as u64);
        let seen = ENDED.load(Relaxed) - BEGUN.load(Relaxed);
        line!("case timer.{wait}.early {} 0", wait.saturating_sub(seen));
        line!("case timer.{wait}.late {} 0", seen.saturating_sub(wait + AROUND));
    }
    apic_write(LVT_TIMER, MASKED);
}

pub fn nmis(unit: &Unit) {
    for rounds in ROUNDS {
        COUNT.store(rounds, Relaxed);
        let seen = storm::over(unit, BITS | INTERRUPT, until_an_nmi_comes);
        line!("case storm.{rounds}.came_at {} {}", CAME.load(Relaxed), AFTER.load(Relaxed));
        line!("case storm.{rounds}.many {} 1", u8::from(seen > 8));
    }
    apic_write(LVTPC, MASKED);
}
