//! Events that the guest injects, and virtual interrupts.

use super::block::{
    self, AT_VIRTUAL, AT_VMMCALL, CS, DELIVERING, EXCEPTIONS, EXIT, IDTR, INJECT, INTERRUPTS,
    NEXT_RIP, Page, RFLAGS, RIP, VECTORS, VIRTUAL,
};
use super::{WAYS, Way};
use crate::line;
use crate::machine::KERNEL_CODE;
use crate::pmu::Unit;
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

static AT: AtomicU64 = AtomicU64::new(0);
static ERROR: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
static VECTOR: AtomicU64 = AtomicU64::new(0);

/// 7, and the JMP to it and the PUSH in front. Notes vector and RIP.
#[unsafe(naked)]
extern "C" fn note() {
    naked_asm!(
        "pop qword ptr [rip + {vector}]",
        "push rax", "mov rax, [rsp + 8]", "mov [rip + {at}], rax",
        "inc qword ptr [rip + {count}]", "pop rax", "iretq",
        vector = sym VECTOR, at = sym AT, count = sym COUNT,
    )
}
const NOTE: u64 = 9;

/// 10, and the same. Notes the error code as well.
#[unsafe(naked)]
extern "C" fn note_with_error() {
    naked_asm!(
        "pop qword ptr [rip + {vector}]", "pop qword ptr [rip + {error}]",
        "push rax", "mov rax, [rsp + 8]", "mov [rip + {at}], rax",
        "inc qword ptr [rip + {count}]", "pop rax", "iretq",
        vector = sym VECTOR, error = sym ERROR, at = sym AT, count = sym COUNT,
    )
}
const NOTE_WITH_ERROR: u64 = 10;

static mut TABLE: Page = Page([0; 4096]);
/// Seven bytes each: PUSH imm8 (sign-extended), JMP rel32.
static mut STUBS: Page = Page([0; 4096]);
const STUB: u64 = 8;

/// An interrupt table of its own for the nested guest, in which each vector is noted.
pub fn set_up() {
    let stubs = &raw const STUBS as u64;
    crate::machine::open_to_execution(stubs, 4096);
    for vector in 0..256u64 {
        let has_error = matches!(vector, 8 | 10..=14 | 17);
        let handler = if has_error { note_with_error as *const () } else { note as *const () };
        let stub = stubs + vector * STUB;
        let distance = (handler as u64).wrapping_sub(stub + 7) as u32;
        let code = [0x6a, vector as u8, 0xe9].into_iter().chain(distance.to_le_bytes());
        let low = stub & 0xffff | KERNEL_CODE << 16 | 0x8e00 << 32 | (stub & 0xffff_0000) << 32;
        // SAFETY: within the pages, which nobody else uses.
        unsafe {
            for (index, byte) in code.enumerate() {
                *((stub + index as u64) as *mut u8) = byte;
            }
            let gate = (&raw mut TABLE).cast::<u64>().add(2 * vector as usize);
            gate.write(low);
            gate.add(1).write(stub >> 32);
        }
    }
}

/// The nested guest of `code` with that table.
pub fn prepare(code: &[u8]) {
    block::prepare(&[code]);
    block::segment(IDTR, 0, 0, 0xfff, &raw const TABLE as u64);
    for of in [&AT, &ERROR, &COUNT, &VECTOR] {
        of.store(0, Relaxed);
    }
}

/// Vector, RIP and number of what was noted.
pub fn noted() -> (u64, u64, u64) {
    (VECTOR.load(Relaxed) & 0xff, AT.load(Relaxed), COUNT.load(Relaxed))
}
pub const HANDLER: u64 = NOTE;

struct Injected {
    name: &'static str,
    /// EVENTINJ.
    event: u64,
    error: Option<u32>,
    /// Behind an instruction of so many bytes.
    soft: u64,
    interrupts: bool,
}

const VALID: u64 = 1 << 31;
const INTERRUPT: u64 = VALID;
const NMI: u64 = VALID | 2 << 8;
const EXCEPTION: u64 = VALID | 3 << 8;
const SOFTWARE: u64 = VALID | 4 << 8;
const HAS_ERROR: u64 = 1 << 11;

const fn of(name: &'static str, event: u64) -> Injected {
    Injected { name, event, error: None, soft: 0, interrupts: false }
}

const INJECTED: [Injected; 8] = [
    Injected { interrupts: true, ..of("interrupt", INTERRUPT | 0x60) },
    // Whatever the flag is.
    of("interrupt_closed", INTERRUPT | 0x61),
    of("nmi", NMI | 2),
    of("undefined", EXCEPTION | 6),
    Injected { error: Some(0x1234), ..of("protection", EXCEPTION | HAS_ERROR | 13) },
    Injected { soft: 2, ..of("software", SOFTWARE | 0x62) },
    Injected { soft: 1, ..of("breakpoint", EXCEPTION | 3) },
    Injected { soft: 1, ..of("breakpoint_soft", SOFTWARE | 3) },
];

pub fn run(unit: &Unit) {
    set_up();
    for way in WAYS {
        for injected in &INJECTED {
            injection(unit, way, injected);
        }
        undelivered(unit, way);
        virtual_interrupts(unit, way);
        both(unit, way);
        shadow(unit, way);
    }
}

/// NOP, NOP.
const NOPS: [u8; 2] = [0x90, 0x90];

fn injection(unit: &Unit, way: Way, injected: &Injected) {
    prepare(&NOPS);
    let &Injected { name, event, error, soft, interrupts } = injected;
    block::put(INJECT, event | u64::from(error.unwrap_or(0)) << 32);
    block::put(NEXT_RIP, if soft == 0 { 0 } else { block::code() + soft });
    block::put(RFLAGS, if interrupts { 0x202 } else { 2 });
    // What is injected is not intercepted.
    block::add(EXCEPTIONS, 1 << 3 | 1 << 6 | 1 << 13);
    let handler = if error.is_some() { NOTE_WITH_ERROR } else { NOTE };
    let expected = handler + 2 - soft;
    let counted = way.run(unit, expected);
    let (vector, at, count) = noted();
    let way = way.name;
    line!("case {way}.inject.{name}.exit {:#x} {AT_VMMCALL:#x}", block::get(EXIT));
    line!("case {way}.inject.{name}.vector {vector:#x} {:#x}", event & 0xff);
    line!("case {way}.inject.{name}.rip {at} {}", block::code() + soft);
    line!("case {way}.inject.{name}.count {count} 1");
    line!("case {way}.inject.{name}.error {:#x} {:#x}", ERROR.load(Relaxed), error.unwrap_or(0));
    line!("case {way}.inject.{name}.gone {} 0", block::get(INJECT) & VALID);
    line!("case {way}.inject.{name}.delivering {} 0", block::get(DELIVERING) & VALID);
    line!("case {way}.inject.{name}.counted {counted} {expected}");
}

/// Through a gate that there is not: the exception is intercepted, and tells what was being delivered.
fn undelivered(unit: &Unit, way: Way) {
    for (name, event, soft) in
        [("interrupt", INTERRUPT | 0x60, 0), ("nmi", NMI | 2, 0), ("software", SOFTWARE | 0x62, 2)]
    {
        prepare(&NOPS);
        block::segment(IDTR, 0, 0, 0, 0);
        block::put(INJECT, event);
        block::put(NEXT_RIP, if soft == 0 { 0 } else { block::code() + soft });
        block::put(RFLAGS, 0x202);
        block::add(EXCEPTIONS, 1 << 13);
        let counted = way.run(unit, 0);
        let way = way.name;
        line!("case {way}.undelivered.{name}.exit {:#x} 0x4d", block::get(EXIT));
        let delivering = block::get(DELIVERING) & 0xffff_ffff;
        line!("case {way}.undelivered.{name}.event {delivering:#x} {event:#x}");
        line!("case {way}.undelivered.{name}.rip {} {}", block::get(RIP), block::code());
        line!("case {way}.undelivered.{name}.counted {counted} 0");
    }
}

/// STI in the middle: a virtual interrupt can be taken after the instruction that follows it.
const OPENING: [u8; 4] = [0x90, 0xfb, 0x90, 0x90];
const WAITS: u64 = 1 << 8;
const WHATEVER: u64 = 1 << 20;

fn virtual_interrupts(unit: &Unit, way: Way) {
    let open = block::code() + 3;
    for (name, control, intercepted) in [
        ("taken", WAITS | WHATEVER | 0x63 << 32, false),
        ("priority", WAITS | 5 << 16 | 4 | 0x64 << 32, false),
        ("window", WAITS | WHATEVER | 0x65 << 32, true),
        // The task priority is higher. QEMU takes what has the same.
        ("held", WAITS | 5 << 16 | 6 | 0x66 << 32, false),
    ] {
        prepare(&OPENING);
        block::put(INTERRUPTS, control);
        let taken = name != "held";
        if intercepted {
            block::put(VECTORS, block::get(VECTORS) | VIRTUAL);
        }
        let (code, expected) = match (intercepted, taken) {
            (true, _) => (AT_VIRTUAL, 3),
            (false, true) => (AT_VMMCALL, 4 + NOTE),
            (false, false) => (AT_VMMCALL, 4),
        };
        let counted = way.run(unit, expected);
        let (vector, at, count) = noted();
        let left = block::get(INTERRUPTS) & WAITS;
        let way = way.name;
        line!("case {way}.virtual.{name}.exit {:#x} {code:#x}", block::get(EXIT));
        line!("case {way}.virtual.{name}.counted {counted} {expected}");
        if intercepted {
            line!("case {way}.virtual.{name}.rip {} {open}", block::get(RIP));
            line!("case {way}.virtual.{name}.left {left:#x} {WAITS:#x}");
        } else if taken {
            line!(
                "case {way}.virtual.{name}.noted {vector:#x}.{at}.{count} {:#x}.{open}.1",
                control >> 32
            );
            line!("case {way}.virtual.{name}.left {left} 0");
        } else {
            line!("case {way}.virtual.{name}.noted {count} 0");
            line!("case {way}.virtual.{name}.left {left:#x} {WAITS:#x}");
        }
    }
}

/// An injected interrupt, and a virtual one that waits after it.
fn both(unit: &Unit, way: Way) {
    for intercepted in [false, true] {
        prepare(&NOPS);
        block::put(INJECT, INTERRUPT | 0x67);
        block::put(INTERRUPTS, WAITS | WHATEVER | 0x68 << 32);
        block::put(RFLAGS, 0x202);
        if intercepted {
            block::put(VECTORS, block::get(VECTORS) | VIRTUAL);
        }
        let (code, expected) =
            if intercepted { (AT_VIRTUAL, NOTE) } else { (AT_VMMCALL, 2 * NOTE + 2) };
        let counted = way.run(unit, expected);
        let (vector, at, count) = noted();
        let (last, times) = if intercepted { (0x67, 1) } else { (0x68, 2) };
        let name = if intercepted { "window" } else { "taken" };
        let way = way.name;
        line!("case {way}.both.{name}.exit {:#x} {code:#x}", block::get(EXIT));
        line!(
            "case {way}.both.{name}.noted {vector:#x}.{at}.{count} {last:#x}.{}.{times}",
            block::code()
        );
        line!("case {way}.both.{name}.counted {counted} {expected}");
    }
}

/// The interrupt shadow that the guest asks for, and one that an exit leaves.
fn shadow(unit: &Unit, way: Way) {
    prepare(&NOPS);
    block::put(block::SHADOW, 1);
    block::put(INTERRUPTS, WAITS | WHATEVER | 0x69 << 32);
    block::put(RFLAGS, 0x202);
    let counted = way.run(unit, 2 + NOTE);
    let name = way.name;
    line!("case {name}.shadow.rip {} {}", noted().1, block::code() + 1);
    line!("case {name}.shadow.counted {counted} {}", 2 + NOTE);
    // STI, VMMCALL.
    prepare(&[0xfb]);
    let counted = way.run(unit, 1);
    line!("case {name}.shadow.left {} 1", block::get(block::SHADOW) & 1);
    line!("case {name}.shadow.left.counted {counted} 1");
    line!("case {name}.shadow.cs {:#x} {KERNEL_CODE:#x}", block::get(CS) & 0xffff);
}
