//! Interrupts in the middle of a repeated string instruction, and beside it: of the local APIC's timer, which waits while the
//! emulated PMU steps, and of the PC's old timer, which does not.

use crate::case;
use crate::line;
use crate::machine::{PHYSICAL, apic, apic_write, set_gate};
use crate::pmu::{AROUND, INSTRUCTIONS, KERNEL, USER, Unit, call, write};
use core::arch::{asm, global_asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use x86_64::instructions::port::Port;

const VECTOR: u8 = 0x93;
/// The first of eight.
const OLD_VECTOR: u8 = 0x98;
const LVT_TIMER: u64 = 0x320;
const INITIAL_COUNT: u64 = 0x380;
const DIVIDE: u64 = 0x3e0;
/// Divides by 1 (SDM vol. 3, figure 11-10).
const BY_1: u32 = 0b1011;
const RESUME: u64 = 1 << 16;

/// Iterations.
const COUNT: u64 = 40;
/// Ticks up to which the timer is set, an instruction or an iteration each: it rings in front of the instruction, in it and
/// after it.
const TICKS: u32 = 64;

/// Of the last interrupt: RCX, and the frame's RIP and RFLAGS.
static SEEN: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static ENTERED: AtomicU64 = AtomicU64::new(0);

/// 11, as each `end` has two.
macro_rules! note {
    ($end:literal) => {
        naked_asm!(
            "mov [rip + {seen}], rcx",
            "push rax",
            "mov rax, [rsp + 8]", "mov [rip + {seen} + 8], rax",
            "mov rax, [rsp + 24]", "mov [rip + {seen} + 16], rax",
            "inc qword ptr [rip + {entered}]",
            $end,
            "pop rax", "iretq",
            seen = sym SEEN, entered = sym ENTERED, eoi = const apic(0xb0),
        )
    };
}
const HANDLER: u64 = 11;

#[unsafe(naked)]
extern "C" fn on_timer() {
    note!("movabs rax, {eoi}\n mov dword ptr [rax], 0")
}

#[unsafe(naked)]
extern "C" fn on_old_timer() {
    note!("mov al, 0x20\n out 0x20, al /* not {eoi} */")
}

global_asm!(
    ".pushsection .text.interrupted, \"ax\"",
    ".balign 4096",
    // 9 up to the NOPs, and more of these than the timer takes.
    "interrupted_code:",
    "lea rsi, [rip + {buffer}]", "mov ecx, {count}",
    "movabs rax, {initial}", "mov edx, [rip + {ticks}]", "mov dword ptr [rax], edx",
    "sti", "nop",
    "interrupted_string: rep lodsb",
    ".rept {nops}", "nop", ".endr",
    "cli", "ret",
    ".balign 4096",
    // 13. One shot of channel 0, low byte first.
    "external_code:",
    "movabs rsi, {memory}", "mov ecx, {bytes}",
    "mov al, 0x30", "out 0x43, al", "mov al, {old_ticks}", "out 0x40, al", "xor eax, eax", "out 0x40, al",
    "sti", "nop",
    "external_string: rep lodsb",
    "cli", "ret",
    ".balign 4096",
    ".popsection",
    memory = const PHYSICAL, bytes = const BYTES, old_ticks = const OLD_TICKS,
    buffer = sym BUFFER, count = const COUNT, initial = const apic(INITIAL_COUNT), ticks = sym SET,
    nops = const 2 * TICKS,
);
/// Without the handler.
const INSTRUCTIONS_OF_CODE: u64 = 10 + 2 * TICKS as u64;

/// Ticks of the old timer, 84 us in all: after the steps up to the instruction, and before it ends at 1 ns an iteration.
const OLD_TICKS: u8 = 100;
const BYTES: u64 = 500_000;
const INSTRUCTIONS_OF_EXTERNAL: u64 = 13;

static SET: AtomicU64 = AtomicU64::new(0);
#[repr(C, align(64))]
struct Buffer([u8; COUNT as usize]);
static BUFFER: Buffer = Buffer([7; COUNT as usize]);

unsafe extern "C" {
    static interrupted_code: u8;
    static interrupted_string: u8;
    static external_code: u8;
    static external_string: u8;
}

/// Whether the emulated PMU's plugin counts (CPUID leaf 0x40000101): then the timer runs while the string does.
fn by_plugin() -> bool {
    core::arch::x86_64::__cpuid(0x4000_0101).edx & 1 != 0
}

pub fn run(unit: &Unit) {
    for (name, is_beside) in [("alone", false), ("branches", true)] {
        timer(unit, name, is_beside, by_plugin());
        external(unit, name, is_beside);
    }
    let nowhere = &raw const BUFFER as u64;
    breakpoint(nowhere, true);
    timer(unit, "breakpoint", false, false);
    external(unit, "breakpoint", false);
    breakpoint(nowhere, false);
}

/// Sets a breakpoint at `linear`, on execution (SDM vol. 3, 17.2.4: L0 in DR7, whose bit 10 is always 1), or takes it away.
fn breakpoint(linear: u64, set: bool) {
    let control = 1 << 10 | u64::from(set);
    // SAFETY: nothing is executed there.
    unsafe { asm!("mov dr0, {}", "mov dr7, {}", in(reg) linear, in(reg) control) };
}

/// Counts instructions over `code`, with branches beside.
fn count(unit: &Unit, code: u64, is_beside: bool) -> u64 {
    let select = INSTRUCTIONS | USER | KERNEL;
    let (select_1, counter_1, branches) = unit.branches();
    ENTERED.store(0, Relaxed);
    unit.program(select, 0);
    let (switch, mut on) = unit.switch(select);
    if is_beside {
        write(counter_1, 0);
        write(select_1, branches | USER | KERNEL | 1 << 22);
        on |= u64::from(unit.intel) << 1;
    }
    call(switch, on, code);
    write(select_1, 0);
    let seen = unit.read();
    write(unit.select, 0);
    seen
}

/// `qemus`: QEMU delivers the interrupts by itself, without an exit. It sets RF in all frames, and finds a string instruction at its end
/// not yet done.
fn timer(unit: &Unit, name: &str, is_beside: bool, qemus: bool) {
    set_gate(VECTOR, on_timer);
    apic_write(DIVIDE, BY_1);
    apic_write(LVT_TIMER, VECTOR.into());
    let string = &raw const interrupted_string as u64;
    // Before it, in it, after it; in it without RF, elsewhere with RF; after its last iteration and not after it.
    let (mut places, mut wrong) = ([0; 3], [0; 3]);
    for ticks in 1..=TICKS {
        SET.store(ticks.into(), Relaxed);
        let seen = count(unit, &raw const interrupted_code as u64, is_beside);
        let all = AROUND + INSTRUCTIONS_OF_CODE + HANDLER;
        if seen != all || ENTERED.load(Relaxed) != 1 {
            line!("case {name}.{ticks}.count {seen} {all}");
            line!("case {name}.{ticks}.entered {} 1", ENTERED.load(Relaxed));
        }
        let [rcx, rip, flags] = SEEN.each_ref().map(|word| word.load(Relaxed));
        let resumes = flags & RESUME != 0;
        let place = match rip {
            _ if rip == string && rcx == COUNT => 0,
            _ if rip == string => 1,
            _ => 2,
        };
        places[place] += 1;
        wrong[0] += u64::from(place == 1 && !resumes);
        wrong[1] += u64::from(place != 1 && resumes);
        wrong[2] += u64::from(place == 1 && rcx == 0);
    }
    line!("seen {name} {places:?}");
    case(name, u64::from(places[1] >= COUNT / 2), u64::from(by_plugin()));
    line!("case {name}.without_rf {} 0", wrong[0]);
    // What QEMU does by itself is not held against the emulated PMU.
    let expected = if qemus { [wrong[1], wrong[2]] } else { [0; 2] };
    line!("case {name}.with_rf {} {}", wrong[1], expected[0]);
    line!("case {name}.ended {} {}", wrong[2], expected[1]);
}

fn external(unit: &Unit, name: &str, is_beside: bool) {
    set_gate(OLD_VECTOR, on_old_timer);
    // The controller's four words of initialization, and all but the timer masked (Intel 8259A).
    for (port, value) in [(0x20, 0x11), (0x21, OLD_VECTOR), (0x21, 4), (0x21, 1), (0x21, 0xfe)] {
        // SAFETY: ports that every PC has; its interrupts have a handler.
        unsafe { Port::<u8>::new(port).write(value) };
    }
    let seen = count(unit, &raw const external_code as u64, is_beside);
    // SAFETY: as above; none comes any more.
    unsafe { Port::<u8>::new(0x21).write(0xff) };
    let [rcx, rip, flags] = SEEN.each_ref().map(|word| word.load(Relaxed));
    line!("case {name}.external.count {seen} {}", AROUND + INSTRUCTIONS_OF_EXTERNAL + HANDLER);
    line!("case {name}.external.entered {} 1", ENTERED.load(Relaxed));
    line!("case {name}.external.rip {rip:#x} {:#x}", &raw const external_string as u64);
    line!("case {name}.external.within {} 1", u64::from(rcx > 0 && rcx < BYTES));
    line!("case {name}.external.rf {} 1", flags >> 16 & 1);
}
