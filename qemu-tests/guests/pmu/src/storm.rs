//! NMIs that come faster than their handler ends: each one's handler arms the counter so that it overflows before IRET.

use crate::line;
use crate::machine::{apic, apic_write};
use crate::pmu::{INSTRUCTIONS, INTERRUPT, KERNEL, USER, Unit, call, write};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LVTPC: u64 = 0x340;
const NMI: u32 = 0x400;
/// Instructions up to the overflow: two of the four that the handler still has.
const PERIOD: u64 = 2;
/// NOPs of the interrupted code.
const NOPS: u64 = 300;

/// The handler's counter; 0: there is no storm.
pub static COUNTER: AtomicU64 = AtomicU64::new(0);
/// Its value, and the register that clears its status, if there is one.
static PRESET: AtomicU64 = AtomicU64::new(0);
static CLEAR: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);
/// Where the last one came.
pub static INTERRUPTED: AtomicU64 = AtomicU64::new(0);

/// Clears the status, unmasks the entry in the local APIC, and arms the counter again.
#[unsafe(naked)]
pub extern "C" fn on_nmi() {
    naked_asm!(
        "push rax", "push rcx", "push rdx",
        "inc qword ptr [rip + {seen}]",
        "mov rax, [rsp + 24]", "mov [rip + {interrupted}], rax",
        "mov ecx, [rip + {clear}]", "jrcxz 2f",
        "mov eax, 1", "xor edx, edx", "wrmsr",
        "2:",
        "movabs rax, {lvtpc}", "mov dword ptr [rax], {nmi}",
        "mov ecx, [rip + {counter}]", "mov eax, [rip + {preset}]", "mov edx, [rip + {preset} + 4]", "wrmsr",
        "pop rdx", "pop rcx", "pop rax", "iretq",
        seen = sym SEEN, interrupted = sym INTERRUPTED, clear = sym CLEAR, counter = sym COUNTER, preset = sym PRESET,
        lvtpc = const apic(LVTPC), nmi = const NMI,
    )
}

#[unsafe(naked)]
extern "C" fn nops() {
    naked_asm!(".rept {nops}", "nop", ".endr", "ret", nops = const NOPS)
}

/// On a processor such NMIs leave room for the interrupted code, so that it ends; here as well, after a few of them.
pub fn run(unit: &Unit) {
    let seen = over(unit, INSTRUCTIONS | USER | KERNEL | INTERRUPT, nops);
    line!("case storm.ended 1 1");
    // Several in a row before any room is left, and not one for each instruction.
    line!("case storm.many {} 1", u64::from(seen > 8));
    line!("case storm.not_each {} 1", u64::from(seen < 20 * NOPS));
    line!("storm: {seen} NMIs");
}

/// The NMIs while `code` runs, with an event of so many bits.
pub fn over(unit: &Unit, bits: u64, code: extern "C" fn()) -> u64 {
    let preset = 0u64.wrapping_sub(PERIOD) & (u64::MAX >> (64 - unit.width));
    unit.program(bits, preset);
    let clear = unit.status.map_or(0, |(_, clear)| clear);
    if clear != 0 {
        write(clear, 1);
    }
    CLEAR.store(clear.into(), Relaxed);
    PRESET.store(preset, Relaxed);
    COUNTER.store(unit.counter.into(), Relaxed);
    SEEN.store(0, Relaxed);
    apic_write(LVTPC, NMI);
    let (switch, on) = unit.switch(bits);
    call(switch, on, code as *const () as u64);
    COUNTER.store(0, Relaxed);
    SEEN.load(Relaxed)
}
