//! A device interrupt that is handed on to the guest comes once, even if the machine's clock is due while its handler
//! runs: QEMU delivers an interrupt that a hypervisor injected again if it looks up before the next exit.

use crate::case;
use crate::handlers::SLOW;
use crate::machine::{apic, apic_write};
use crate::pmu::{INSTRUCTIONS, USER, Unit, write};
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use x86_64::instructions::port::Port;

static ENTERED: AtomicU64 = AtomicU64::new(0);
/// Interrupts that are sent.
const SENT: u64 = 100;
/// Instructions of the handler that cause no exit.
const NOPS: u64 = 2000;
/// The timer's period: 10 microseconds, so that it is due in one handler of five at one nanosecond an instruction.
const PIT_COUNT: u16 = 12;

#[unsafe(naked)]
pub extern "C" fn on_slow() {
    naked_asm!(
        "inc qword ptr [rip + {entered}]",
        ".rept {nops}", "nop", ".endr",
        "push rax",
        "movabs rax, {end}",
        "mov dword ptr [rax], 0",
        "pop rax",
        "iretq",
        entered = sym ENTERED, nops = const NOPS, end = const apic(0xb0),
    )
}

pub fn run(unit: &Unit) {
    keep_the_clock_busy();
    // One ring's count, so that each interrupt goes through the hypervisor.
    unit.program(INSTRUCTIONS | USER, 0);
    let (switch, on) = unit.switch(INSTRUCTIONS | USER);
    write(switch, on);
    for _ in 0..SENT {
        // To itself, fixed.
        apic_write(0x300, 0x4_0000 | u32::from(SLOW));
        // SAFETY: the handlers are in place and change no register.
        unsafe { asm!("sti", "nop", "nop", "cli") };
    }
    write(switch, 0);
    case("once", ENTERED.load(Relaxed), SENT);
    case("once.user", unit.read(), 0);
}

/// The interval timer, whose interrupt is masked: it makes QEMU look up.
fn keep_the_clock_busy() {
    let [low, high] = PIT_COUNT.to_le_bytes();
    // Both controllers masked; channel 0, both bytes, rate generator.
    for (port, value) in [(0x21, 0xff), (0xa1, 0xff), (0x43, 0x34), (0x40, low), (0x40, high)] {
        // SAFETY: ports that every PC has, and nothing here uses them otherwise.
        unsafe { Port::<u8>::new(port).write(value) };
    }
}
