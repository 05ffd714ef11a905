//! Overflow: where the interrupt comes, and whether each comes.

use crate::handlers::PMI;
use crate::line;
use crate::machine::{apic, apic_write};
use crate::pmu::{INSTRUCTIONS, INTERRUPT, KERNEL, USER, Unit, call, read, write};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const LVTPC: u64 = 0x340;
const NMI: u32 = 0x400;

static SEEN_RIP: AtomicU64 = AtomicU64::new(0);
static SEEN_RCX: AtomicU64 = AtomicU64::new(0);
static SEEN_COUNT: AtomicU64 = AtomicU64::new(0);
/// Where the handler goes on; 0: where it was.
static GO_ON: AtomicU64 = AtomicU64::new(0);

// What `on_many` writes.
static SWITCH: AtomicU64 = AtomicU64::new(0);
static ON: AtomicU64 = AtomicU64::new(0);
static COUNTER: AtomicU64 = AtomicU64::new(0);
static PRESET: AtomicU64 = AtomicU64::new(0);
static CLEAR: AtomicU64 = AtomicU64::new(0);
static STATUS: AtomicU64 = AtomicU64::new(0);
/// PMIs with the status bit set.
static WITH_STATUS: AtomicU64 = AtomicU64::new(0);

/// Where the last interrupt was noted, and how many were.
pub fn noted() -> (u64, u64) {
    (SEEN_RIP.load(Relaxed), SEEN_COUNT.load(Relaxed))
}

/// Where the handler goes on; 0: where it was.
pub fn set_going_on(rip: u64) {
    GO_ON.store(rip, Relaxed);
}

macro_rules! note {
    ($end:literal) => {
        naked_asm!(
            "mov [rip + {rcx}], rcx",
            "push rax",
            "mov rax, [rsp + 8]",
            "mov [rip + {rip}], rax",
            "inc qword ptr [rip + {count}]",
            "mov rax, [rip + {go_on}]",
            "test rax, rax",
            "jz 2f",
            "mov [rsp + 8], rax",
            "2:",
            $end,
            "pop rax",
            "iretq",
            rcx = sym SEEN_RCX, rip = sym SEEN_RIP, count = sym SEEN_COUNT, go_on = sym GO_ON,
            eoi = const apic(0xb0),
        )
    };
}

#[unsafe(naked)]
pub extern "C" fn on_pmi() {
    naked_asm!(
        "cmp qword ptr [rip + {preset}], 0",
        "jne {many}",
        "jmp {once}",
        preset = sym PRESET, many = sym on_many, once = sym on_once,
    )
}

#[unsafe(naked)]
extern "C" fn on_once() {
    note!("movabs rax, {eoi}\n mov dword ptr [rax], 0")
}

#[unsafe(naked)]
pub extern "C" fn on_nmi() {
    naked_asm!(
        "cmp qword ptr [rip + {preset}], 0",
        "jne {storm}",
        "jmp {once}",
        preset = sym crate::storm::COUNTER, storm = sym crate::storm::on_nmi, once = sym on_nmi_once,
    )
}

#[unsafe(naked)]
extern "C" fn on_nmi_once() {
    note!("/* no end of interrupt: {eoi} */")
}

/// Stops, looks at the status and clears it, arms again, and starts. Behind the start it executes [`TAIL`] instructions.
#[unsafe(naked)]
extern "C" fn on_many() {
    naked_asm!(
        "push rax", "push rcx", "push rdx",
        "mov ecx, [rip + {switch}]", "xor eax, eax", "xor edx, edx", "wrmsr",
        "mov ecx, [rip + {status}]", "jrcxz 2f",
        "rdmsr", "and eax, 1", "add [rip + {with_status}], rax",
        "mov ecx, [rip + {clear}]", "mov eax, 1", "xor edx, edx", "wrmsr",
        "2:",
        "mov ecx, [rip + {counter}]", "mov eax, [rip + {preset}]", "mov edx, [rip + {preset} + 4]", "wrmsr",
        "movabs rax, {lvtpc}", "mov dword ptr [rax], {vector}",
        "movabs rax, {eoi}", "mov dword ptr [rax], 0",
        "inc qword ptr [rip + {count}]",
        "mov ecx, [rip + {switch}]", "mov eax, [rip + {on}]", "mov edx, [rip + {on} + 4]", "wrmsr",
        "pop rdx", "pop rcx", "pop rax", "iretq",
        switch = sym SWITCH, status = sym STATUS, with_status = sym WITH_STATUS, clear = sym CLEAR,
        counter = sym COUNTER, preset = sym PRESET, on = sym ON, count = sym SEEN_COUNT,
        lvtpc = const apic(LVTPC), eoi = const apic(0xb0), vector = const PMI as u32,
    )
}
const TAIL: u64 = 4;

/// Two instructions an iteration, until the handler ends it.
#[unsafe(naked)]
extern "C" fn endless() {
    naked_asm!(
        "lea rax, [rip + 4f]", "mov [rip + {go_on}], rax",
        "lea rax, [rip + 3f]", "mov [rip + {rip}], rax",
        "xor ecx, ecx", "sti",
        "2: inc rcx", "3: jmp 2b",
        "4: cli", "ret",
        go_on = sym GO_ON, rip = sym SEEN_RIP,
    )
}
/// CALL, and what `endless` executes before its loop.
const BEFORE: u64 = 1 + 6;

fn bits() -> u64 {
    INSTRUCTIONS | USER | KERNEL | INTERRUPT
}

fn arm(unit: &Unit, period: u64, lvtpc: u32) {
    unit.program(bits(), 0u64.wrapping_sub(period) & (u64::MAX >> (64 - unit.width)));
    if let Some((_, clear)) = unit.status {
        write(clear, 1);
    }
    SEEN_COUNT.store(0, Relaxed);
    apic_write(LVTPC, lvtpc);
}

/// Where the interrupt came, in instructions after the one that overflowed the counter.
fn skid(unit: &Unit, period: u64, lvtpc: u32) -> i64 {
    arm(unit, period, lvtpc);
    let (switch, on) = unit.switch(bits());
    call(switch, on, endless as *const () as u64);
    let jump = endless_jump();
    let at_jump = SEEN_RIP.load(Relaxed) == jump;
    let executed = BEFORE + 2 * SEEN_RCX.load(Relaxed) - u64::from(at_jump);
    executed as i64 - period as i64
}

/// The address of the JMP: INC is the instruction of three bytes in front of it, RIP is at one of the two.
fn endless_jump() -> u64 {
    // SAFETY: reads code.
    let byte = unsafe { *(SEEN_RIP.load(Relaxed) as *const u8) };
    if byte == 0xeb { SEEN_RIP.load(Relaxed) } else { 0 }
}

pub fn run(unit: &Unit) {
    for period in [1_000, 1_001, 1_017, 5_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000]
    {
        let seen = skid(unit, period, u32::from(PMI));
        line!("case skid.fixed.{period} {seen} 0");
    }
    for period in [1_000, 1_003, 100_000] {
        let seen = skid(unit, period, NMI);
        line!("case skid.nmi.{period} {seen} 0");
        line!("case count.nmi.{period} {} 1", SEEN_COUNT.load(Relaxed));
    }
    if let Some((status, _)) = unit.status {
        line!("case status {} 1", read(status) & 1);
    }
    let masked = crate::machine::apic_read(LVTPC) >> 16 & 1;
    line!("case masked_on_delivery {masked} {}", u64::from(unit.intel));
    GO_ON.store(0, Relaxed);
    held_back(unit);
    frozen(unit);
    elsewhere(unit);
}

/// 100 NOPs with interrupts off, then on: the PMI waits, and comes once.
#[unsafe(naked)]
extern "C" fn with_interrupts_off() {
    naked_asm!(
        ".rept 100",
        "nop",
        ".endr",
        "xor ecx, ecx",
        "sti",
        "inc ecx",
        "inc ecx",
        "cli",
        "ret",
    )
}

/// HLT: the PMI of the instruction itself wakes it.
#[unsafe(naked)]
extern "C" fn halted() {
    naked_asm!("nop", "nop", "nop", "sti", "hlt", "cli", "ret")
}

/// An NMI to itself, whose handler counts on.
#[unsafe(naked)]
extern "C" fn nmi_to_self() {
    naked_asm!(
        "movabs rax, {command}", "mov dword ptr [rax], {to_self}",
        ".rept 4", "nop", ".endr", "ret",
        command = const apic(0x300), to_self = const 0x40000 | NMI,
    )
}

/// STI covers the next instruction, MOV SS as well: an overflow within waits.
#[unsafe(naked)]
extern "C" fn in_shadow() {
    naked_asm!(
        "xor ecx, ecx",
        "sti",
        "mov eax, ss",
        ".rept 40",
        "mov ss, eax",
        "inc ecx",
        ".endr",
        "cli",
        "ret",
    )
}

fn held_back(unit: &Unit) {
    let (switch, on) = unit.switch(bits());
    arm(unit, 50, u32::from(PMI));
    call(switch, on, with_interrupts_off as *const () as u64);
    line!("case pending.count {} 1", SEEN_COUNT.load(Relaxed));
    // Behind STI and the instruction that its shadow covers.
    line!("case pending.where {} 1", SEEN_RCX.load(Relaxed));
    // CALL, three, then pairs: an overflow on MOV SS waits for the INC after it.
    for (period, expected) in [(20, 8), (21, 9)] {
        for (name, lvtpc) in [("fixed", u32::from(PMI)), ("nmi", NMI)] {
            arm(unit, period, lvtpc);
            call(switch, on, in_shadow as *const () as u64);
            line!("case shadow.{name}.{period}.count {} 1", SEEN_COUNT.load(Relaxed));
            line!("case shadow.{name}.{period}.where {} {expected}", SEEN_RCX.load(Relaxed));
        }
    }
}

/// Freezing: nothing of the handler is counted.
fn frozen(unit: &Unit) {
    const DEBUGCTL: u32 = 0x1d9;
    const FREEZE: u64 = 1 << 12;
    if !unit.intel || unit.version < 2 {
        return;
    }
    let (switch, on) = unit.switch(bits());
    arm(unit, 50, u32::from(PMI));
    write(DEBUGCTL, FREEZE);
    call(switch, on, with_interrupts_off as *const () as u64);
    line!("case frozen.count {} 0", unit.read());
    let status = read(0x38e);
    // Version 4 says so in bit 59, earlier ones by an empty global control.
    line!("case frozen.status {} {}", status >> 59 & 1, u64::from(unit.version >= 4));
    write(DEBUGCTL, 0);
    write(0x390, status);
    line!("case frozen.pmis {} 1", SEEN_COUNT.load(Relaxed));
}

/// Masked, in HLT, and while an NMI is being handled.
fn elsewhere(unit: &Unit) {
    let (switch, on) = unit.switch(bits());
    arm(unit, 20, 1 << 16 | u32::from(PMI));
    call(switch, on, with_interrupts_off as *const () as u64);
    line!("case masked.count {} 0", SEEN_COUNT.load(Relaxed));
    // CALL, three NOPs, STI, HLT.
    for (name, lvtpc) in [("fixed", u32::from(PMI)), ("nmi", NMI)] {
        arm(unit, 6, lvtpc);
        call(switch, on, halted as *const () as u64);
        line!("case halted.{name}.count {} 1", SEEN_COUNT.load(Relaxed));
    }
    // CALL, two, then the handler: an overflow within it waits for its IRET.
    for period in 4..12 {
        arm(unit, period, NMI);
        call(switch, on, nmi_to_self as *const () as u64);
        line!("case nmi_in_nmi.{period} {} 2", SEEN_COUNT.load(Relaxed));
    }
    arm(unit, 1_000_000, NMI);
    call(switch, on, nmi_to_self as *const () as u64);
    line!("case nmi_alone {} 1", SEEN_COUNT.load(Relaxed));
}

/// Turns of [`long_loop`], of two instructions each.
static TURNS: AtomicU32 = AtomicU32::new(0);

/// The loop, with two instructions before it, and CLI.
#[unsafe(naked)]
extern "C" fn long_loop() {
    naked_asm!("mov ecx, [rip + {turns}]", "sti", "2: dec ecx", "jnz 2b", "cli", "ret", turns = sym TURNS)
}

/// 10^5 overflows and more.
pub fn many(unit: &Unit) {
    each_thousandth(unit, 50_000_000);
}

/// A fifth of them.
pub fn some(unit: &Unit) {
    each_thousandth(unit, 10_000_000);
}

fn each_thousandth(unit: &Unit, turns: u32) {
    const PERIOD: u64 = 1_000;
    arm(unit, PERIOD, u32::from(PMI));
    let (switch, on) = unit.switch(bits());
    SWITCH.store(switch.into(), Relaxed);
    ON.store(on, Relaxed);
    COUNTER.store(unit.counter.into(), Relaxed);
    let (status, clear) = unit.status.unwrap_or((0, 0));
    STATUS.store(status.into(), Relaxed);
    CLEAR.store(clear.into(), Relaxed);
    WITH_STATUS.store(0, Relaxed);
    PRESET.store(0u64.wrapping_sub(PERIOD) & (u64::MAX >> (64 - unit.width)), Relaxed);
    TURNS.store(turns, Relaxed);
    call(switch, on, long_loop as *const () as u64);
    PRESET.store(0, Relaxed);
    let executed = 1 + 2 + 2 * u64::from(turns);
    let expected = 1 + (executed - PERIOD) / (PERIOD - TAIL);
    line!("case many.count {} {expected}", SEEN_COUNT.load(Relaxed));
    let with_status = if unit.status.is_some() { expected } else { 0 };
    line!("case many.status {} {with_status}", WITH_STATUS.load(Relaxed));
    line!(
        "case many.left {} {}",
        unit.read(),
        (1 << unit.width) - PERIOD + TAIL + (executed - PERIOD) % (PERIOD - TAIL) + 6
    );
}
