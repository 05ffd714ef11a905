//! Interrupts of devices and NMIs, with the global interrupt flag clear and while the nested guest runs.

use super::block::{
    self, ADDRESS, AT_INTR, AT_NMI, AT_VMMCALL, EXIT, INTERRUPTS, INTR, NMI, REGISTERS_IN_USE,
    RFLAGS, RIP, VECTORS,
};
use super::{WAYS, Way, events};
use crate::handlers::DEVICE;
use crate::line;
use crate::machine::{apic, apic_read, apic_write, set_gate};
use crate::overflow;
use crate::pmu::Unit;
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Interrupt command: to itself.
const TO_SELF: u32 = 0x40000;
const COMMAND: u64 = 0x300;
const VIRTUAL_MASKING: u64 = 1 << 24;
/// Interrupt command that is given with the global flag clear; 0: none.
static SENT: AtomicU64 = AtomicU64::new(0);
/// RFLAGS.IF at VMRUN.
static OPEN: AtomicU64 = AtomicU64::new(0);
/// Interrupts of the guest's own, in all, and after the exit before STGI.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static BEFORE_STGI: AtomicU64 = AtomicU64::new(0);

#[unsafe(naked)]
extern "C" fn on_device() {
    naked_asm!(
        "inc qword ptr [rip + {taken}]",
        "push rax", "movabs rax, {end}", "mov dword ptr [rax], 0", "pop rax", "iretq",
        taken = sym TAKEN, end = const apic(0xb0),
    )
}

/// As [`block::enter`]: CLGI, the flag and the command as they are asked for, and NOPs in which nothing may come.
#[unsafe(naked)]
extern "C" fn enter() {
    naked_asm!(
        "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
        "clgi",
        "cmp qword ptr [rip + {open}], 0", "je 2f", "sti", "nop", "2:",
        "mov rax, [rip + {sent}]", "test rax, rax", "jz 2f",
        "movabs rcx, {command}", "mov [rcx], eax", "2:",
        "nop", "nop",
        "mov rcx, [rip + {registers}]",
        "mov rax, [rip + {address}]",
        "vmrun rax",
        "nop", "nop",
        "mov rax, [rip + {taken}]", "mov [rip + {before}], rax",
        "mov [rip + {registers}], rcx",
        "stgi", "nop", "sti", "nop", "nop", "cli",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
        "ret",
        open = sym OPEN, sent = sym SENT, address = sym ADDRESS, taken = sym TAKEN, before = sym BEFORE_STGI,
        registers = sym REGISTERS_IN_USE, command = const apic(COMMAND),
    )
}

/// The same with the guest's IF set, and nothing sent.
pub fn enter_open() {
    OPEN.store(1, Relaxed);
    SENT.store(0, Relaxed);
    enter();
}

/// NOP, NOP; NOP, STI, NOP, NOP.
const NOPS: [u8; 2] = [0x90, 0x90];
const OPENING: [u8; 4] = [0x90, 0xfb, 0x90, 0x90];

struct Case {
    name: &'static str,
    code: &'static [u8],
    /// The guest's IF and the nested guest's.
    open: bool,
    nested_open: bool,
    masking: bool,
    intercepted: bool,
    /// The exit, and the nested guest's instructions.
    expected: (u64, u64),
    /// It is the nested guest who handles it.
    nested_handles: bool,
}

const BASE: Case = Case {
    name: "",
    code: &NOPS,
    open: true,
    nested_open: false,
    masking: true,
    intercepted: true,
    expected: (AT_INTR, 0),
    nested_handles: false,
};

const CASES: [Case; 7] = [
    Case { name: "masking", ..BASE },
    Case { name: "masking_closed", open: false, expected: (AT_VMMCALL, 2), ..BASE },
    Case { name: "own_flag", masking: false, nested_open: true, ..BASE },
    Case { name: "own_flag_later", masking: false, code: &OPENING, expected: (AT_INTR, 3), ..BASE },
    Case {
        name: "not_intercepted",
        masking: false,
        intercepted: false,
        nested_open: true,
        expected: (AT_VMMCALL, 2),
        nested_handles: true,
        ..BASE
    },
    Case {
        name: "not_intercepted_later",
        masking: false,
        intercepted: false,
        code: &OPENING,
        expected: (AT_VMMCALL, 4),
        nested_handles: true,
        ..BASE
    },
    Case {
        name: "not_intercepted_closed",
        masking: false,
        intercepted: false,
        expected: (AT_VMMCALL, 2),
        ..BASE
    },
];

pub fn run(unit: &Unit) {
    set_gate(DEVICE, on_device);
    for way in WAYS {
        for case in &CASES {
            device(unit, way, case);
        }
        nmi(unit, way);
        global_flag(way);
    }
}

fn device(unit: &Unit, way: Way, case: &Case) {
    events::prepare(case.code);
    block::put(RFLAGS, if case.nested_open { 0x202 } else { 2 });
    block::put(INTERRUPTS, if case.masking { VIRTUAL_MASKING } else { 0 });
    block::put(VECTORS, block::get(VECTORS) | if case.intercepted { INTR } else { 0 });
    OPEN.store(case.open.into(), Relaxed);
    SENT.store((TO_SELF | u32::from(DEVICE)).into(), Relaxed);
    let before = TAKEN.load(Relaxed);
    let (code, retired) = case.expected;
    let expected = retired + if case.nested_handles { events::HANDLER } else { 0 };
    let counted = way.over(unit, expected, enter);
    let (way, name) = (way.name, case.name);
    let early = BEFORE_STGI.load(Relaxed) - before;
    let taken = TAKEN.load(Relaxed) - before;
    line!("case {way}.device.{name}.exit {:#x} {code:#x}", block::get(EXIT));
    line!("case {way}.device.{name}.counted {counted} {expected}");
    line!("case {way}.device.{name}.early {early} 0");
    let noted = events::noted();
    if case.nested_handles {
        // Its handler has not ended the interrupt.
        apic_write(0xb0, 0);
        line!("case {way}.device.{name}.nested {:#x}.{} {DEVICE:#x}.1", noted.0, noted.2);
        line!("case {way}.device.{name}.taken {taken} 0");
    } else {
        line!("case {way}.device.{name}.nested {} 0", noted.2);
        line!("case {way}.device.{name}.taken {taken} 1");
    }
}

/// An NMI that is sent with the global flag clear ends the nested guest, or goes to it.
fn nmi(unit: &Unit, way: Way) {
    for intercepted in [true, false] {
        events::prepare(&NOPS);
        block::put(VECTORS, block::get(VECTORS) | if intercepted { NMI } else { 0 });
        OPEN.store(0, Relaxed);
        // Physically to this processor.
        let own = apic_read(0x20);
        apic_write(0x310, own);
        SENT.store(0x400, Relaxed);
        overflow::set_going_on(0);
        let (_, before) = overflow::noted();
        let (code, expected) =
            if intercepted { (AT_NMI, 0) } else { (AT_VMMCALL, 2 + events::HANDLER) };
        let counted = way.over(unit, expected, enter);
        let (_, after) = overflow::noted();
        let name = if intercepted { "intercepted" } else { "nested" };
        let way = way.name;
        line!("case {way}.nmi.{name}.exit {:#x} {code:#x}", block::get(EXIT));
        line!(
            "case {way}.nmi.{name}.rip_moved {} {}",
            block::get(RIP) != block::code(),
            !intercepted
        );
        line!("case {way}.nmi.{name}.counted {counted} {expected}");
        line!("case {way}.nmi.{name}.taken {} {}", after - before, u8::from(intercepted));
        line!("case {way}.nmi.{name}.nested {} {}", events::noted().2, u8::from(!intercepted));
    }
}

/// With the global flag clear nothing comes, whatever IF is.
fn global_flag(way: Way) {
    let before = TAKEN.load(Relaxed);
    let held: u64;
    // SAFETY: the handler keeps all registers.
    unsafe {
        asm!(
            "clgi", "sti",
            "mov [{command}], {sent:e}",
            "nop", "nop", "nop",
            "mov {held}, [rip + {taken}]",
            "stgi", "nop", "cli",
            command = in(reg) apic(COMMAND), sent = in(reg) TO_SELF | u32::from(DEVICE),
            held = out(reg) held, taken = sym TAKEN,
        );
    }
    let way = way.name;
    line!("case {way}.gif.held {} 0", held - before);
    line!("case {way}.gif.taken {} 1", TAKEN.load(Relaxed) - before);
}
