//! Debug exceptions: breakpoints on instructions and on data, single steps, and what of them is counted.
//!
//! Each code runs with one counter, with one close to its overflow in the middle, and with branches counted beside, so
//! that the hypervisor runs it at full speed, in part step by step, and all of it step by step.

mod codes;

use crate::handlers::DEVICE_INSTRUCTIONS;
use crate::line;
use crate::machine::{RING_3_STACK, open_to_ring_3};
use crate::pmu::{AROUND, INSTRUCTIONS, KERNEL, USER, Unit, call, write};
use crate::rings;
use codes::*;
use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// DR6 without anything (SDM vol. 3, 17.2.3).
const IDLE: u64 = 0xffff_0ff0;
/// DR6.BS, DR6.BD.
const STEP: u64 = 1 << 14;
const ACCESS: u64 = 1 << 13;

/// An exception: DR6, and the frame's RIP and RFLAGS.
struct Exception([AtomicU64; 4]);
const CAPACITY: usize = 64;
static LOG: [Exception; CAPACITY] =
    [const { Exception([const { AtomicU64::new(0) }; 4]) }; CAPACITY];
static COUNT: AtomicU32 = AtomicU32::new(0);

/// 25: notes the exception, clears DR6, and goes on; after a fault, without the breakpoint.
#[unsafe(naked)]
pub extern "C" fn on_debug() {
    naked_asm!(
        "push rax", "push rcx", "push rdx",
        "lea rdx, [rip + {log}]", "mov ecx, [rip + {count}]", "and ecx, 63", "shl ecx, 5",
        "mov rax, dr6", "mov [rdx + rcx], rax",
        "mov rax, [rsp + 24]", "mov [rdx + rcx + 8], rax",
        "mov rax, [rsp + 40]", "mov [rdx + rcx + 16], rax",
        // BS in bit 14 to RF in bit 16, the other way round.
        "mov rax, [rdx + rcx]", "not eax", "and eax, 0x4000", "shl eax, 2",
        "or [rsp + 40], rax",
        "mov eax, 0xffff0ff0", "mov dr6, rax",
        "inc dword ptr [rip + {count}]",
        "pop rdx", "pop rcx", "pop rax", "iretq",
        log = sym LOG, count = sym COUNT,
    )
}
const HANDLER: u64 = 25;

/// An exception that is expected: at which address, with which bits of DR6, and whether the frame has RF.
pub type Expected = (u64, u64, bool);

/// A code, what it executes without the handler, and what it raises.
struct Case<'a> {
    name: &'static str,
    code: u64,
    instructions: u64,
    branches: u64,
    registers: [u64; 4],
    dr7: u64,
    expected: &'a [Expected],
}

/// How the counters are set.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Nothing is counted.
    Idle,
    Plain,
    /// The counter goes over its end in the middle, without an interrupt.
    Near,
    /// Branches are counted beside.
    Stepped,
}

fn debug_registers([a, b, c, d]: [u64; 4], dr7: u64) {
    // SAFETY: breakpoints have a handler.
    unsafe {
        asm!("mov dr0, {}", "mov dr1, {}", "mov dr2, {}", "mov dr3, {}", in(reg) a, in(reg) b, in(reg) c, in(reg) d);
        asm!("mov dr6, {}", "mov dr7, {}", in(reg) IDLE, in(reg) dr7);
    }
}

fn count(unit: &Unit, filter: u64, way: Way, code: u64, middle: u64) -> (u64, u64) {
    let select = INSTRUCTIONS | filter;
    let mask = u64::MAX >> (64 - unit.width);
    let start = if way == Way::Near { 0u64.wrapping_sub(middle) & mask } else { 0 };
    unit.program(select, start);
    let (select_1, counter_1, event) = unit.branches();
    let (switch, mut on) = unit.switch(select);
    if way == Way::Idle {
        on = 0;
    }
    if way == Way::Stepped {
        write(counter_1, 0);
        write(select_1, event | filter | 1 << 22);
        on |= u64::from(unit.intel) << 1;
    }
    call(switch, on, code);
    write(select_1, 0);
    let seen = unit.read().wrapping_sub(start) & mask;
    write(unit.select, 0);
    (seen, crate::pmu::read(counter_1))
}

fn run_case(unit: &Unit, case: &Case) {
    for (way_name, way) in
        [("idle", Way::Idle), ("plain", Way::Plain), ("near", Way::Near), ("stepped", Way::Stepped)]
    {
        // While nothing is counted, QEMU itself steps, and steps a repeated instruction once more after its last iteration.
        if way == Way::Idle && case.name.ends_with("_repeated") {
            continue;
        }
        COUNT.store(0, Relaxed);
        debug_registers(case.registers, case.dr7);
        let hits = case.expected.len() as u64;
        let all = case.instructions + hits * HANDLER;
        let (seen, branches) = count(unit, USER | KERNEL, way, case.code, all / 2);
        debug_registers([0; 4], 0);
        let name = case.name;
        if way != Way::Idle {
            line!("case {name}.{way_name}.count {} {all}", seen - AROUND);
        }
        if way == Way::Stepped && unit.intel {
            // The CALL, and each handler's IRET. AMD's counter does not stop with the other one.
            line!("case {name}.branches {branches} {}", 1 + case.branches + hits);
        }
        exceptions(name, way_name, case.expected);
    }
}

/// Holds what was noted against what is expected. The first that differs is shown by what it has.
fn exceptions(name: &str, way: &str, expected: &[Expected]) {
    line!("case {name}.{way}.exceptions {} {}", COUNT.load(Relaxed), expected.len());
    for (number, (entry, &(rip, bits, resume))) in LOG.iter().zip(expected).enumerate() {
        let [dr6, at, flags] = [0, 1, 2].map(|field| entry.0[field].load(Relaxed));
        line!("case {name}.{way}.{number}.dr6 {dr6} {}", IDLE | bits);
        line!("case {name}.{way}.{number}.rip {at:#x} {rip:#x}");
        line!("case {name}.{way}.{number}.resume {} {}", flags >> 16 & 1, u64::from(resume));
    }
}

macro_rules! at {
    ($label:ident) => {
        &raw const $label as u64
    };
}

/// The last so many bytes of `STEPS`' kin switch the flag off; each of their four boundaries is one step.
fn steps(rips: &[u64]) -> impl Iterator<Item = Expected> + '_ {
    rips.iter().map(|&rip| (rip, STEP, false))
}

/// Collects into an array, as there is no heap.
fn list<const N: usize>(items: impl Iterator<Item = Expected>) -> [Expected; N] {
    let mut all = [(0, 0, false); N];
    for (slot, item) in all.iter_mut().zip(items) {
        *slot = item;
    }
    all
}

pub fn run(unit: &Unit) {
    single_steps(unit);
    pushed_flags(unit);
    instruction_breakpoints(unit);
    data_breakpoints(unit);
    registers(unit);
    ring_3(unit);
}

fn single_steps(unit: &Unit) {
    let none = Case {
        name: "",
        code: 0,
        instructions: 0,
        branches: 1,
        registers: [0; 4],
        dr7: 0,
        expected: &[],
    };
    let expected: [_; 5] =
        list(steps(&[at!(steps_1), at!(steps_2), at!(steps_3), at!(steps_4), at!(steps_5)]));
    let case = |name, code, instructions, expected: &_| {
        run_case(unit, &Case { name, code, instructions, expected, ..none });
    };
    case("steps", at!(steps_code), 9, &expected as &[Expected]);
    // The first at a branch, which ends that: the others at each instruction.
    let expected: [_; 5] =
        list(steps(&[at!(block_1), at!(block_2), at!(block_3), at!(block_4), at!(block_5)]));
    let (code, expected) = (at!(block_code), &expected);
    let name = "steps_block";
    run_case(unit, &Case { name, code, instructions: 14, branches: 2, expected, ..none });
    // What the hypervisor emulates.
    let expected: [_; 8] = list(steps(&[
        at!(emulated_1),
        at!(emulated_2),
        at!(emulated_3),
        at!(emulated_4),
        at!(emulated_5),
        at!(emulated_6),
        at!(emulated_7),
        at!(emulated_8),
    ]));
    case("steps_emulated", at!(emulated_code), 16, &expected);
    // No step after INT, but after what comes then; none after MOV SS.
    let expected: [_; 4] =
        list(steps(&[at!(software_1), at!(software_2), at!(software_3), at!(software_4)]));
    let branches = 3;
    let code = at!(software_code);
    run_case(
        unit,
        &Case { name: "steps_int", code, instructions: 10, branches, expected: &expected, ..none },
    );
    let expected: [_; 7] = list(steps(&[
        at!(shadow_1),
        at!(shadow_2),
        at!(shadow_3),
        at!(shadow_4),
        at!(shadow_5),
        at!(shadow_6),
        at!(shadow_7),
    ]));
    case("steps_shadow", at!(shadow_code), 12, &expected);
    // One at each iteration of a repeated instruction, which counts once.
    let again = (at!(repeated), STEP, true);
    let rest: [_; 4] =
        list(steps(&[at!(repeated_1), at!(repeated_2), at!(repeated_3), at!(repeated_4)]));
    let expected = [again, again, rest[0], rest[1], rest[2], rest[3]];
    case("steps_repeated", at!(repeated_code), 11, &expected);
}

/// The flags that PUSHF stores have no trap flag of the hypervisor's, also where they lie in two pages.
fn pushed_flags(unit: &Unit) {
    let (code, instructions) = (at!(flags_code), 8);
    for bytes in [4, 7, 8] {
        STACK_AT.store((&raw const PAGES) as u64 + 4096 + bytes, Relaxed);
        for (name, way) in [("plain", Way::Plain), ("near", Way::Near), ("stepped", Way::Stepped)] {
            SEEN[0].store(!0, Relaxed);
            let (seen, _) = count(unit, USER | KERNEL, way, code, instructions / 2);
            let flag = SEEN[0].load(Relaxed) >> 8 & 1;
            line!("case pushed_flags.{bytes}.{name}.trap {flag} 0");
            line!("case pushed_flags.{bytes}.{name}.count {} {instructions}", seen - AROUND);
        }
    }
}

fn instruction_breakpoints(unit: &Unit) {
    let hit = [(at!(breaks_x), 1, false); 10];
    let one = Case {
        name: "breaks",
        code: at!(breaks_code),
        instructions: 2 + 40,
        branches: 11,
        registers: [at!(breaks_x), at!(breaks_x), 0, 0],
        // The first alone is enabled.
        dr7: 0x401,
        expected: &hit,
    };
    run_case(unit, &one);
    // Two at one address; enabled by the global bit.
    let two = hit.map(|(rip, ..)| (rip, 3, false));
    run_case(unit, &Case { name: "breaks_twice", dr7: 0x409, expected: &two, ..one });
    // On instructions that are stepped over in ways of their own.
    let places = [at!(special_0), at!(special_1), at!(special_2), at!(special_3)];
    let expected = [0, 1, 2, 3].map(|number| (places[number], 1 << number, false));
    let special = Case {
        name: "breaks_special",
        code: at!(special_code),
        instructions: 11,
        branches: 3,
        registers: places,
        dr7: 0x455,
        expected: &expected,
    };
    run_case(unit, &special);
    // A step to a breakpoint: first the one, then the other.
    let expected = [
        (at!(steps_1), STEP, false),
        (at!(steps_1), 1, false),
        (at!(steps_2), STEP, false),
        (at!(steps_3), STEP, false),
        (at!(steps_4), STEP, false),
        (at!(steps_5), STEP, false),
    ];
    let registers = [at!(steps_1), 0, 0, 0];
    let stepped = Case {
        name: "steps_to_break",
        code: at!(steps_code),
        instructions: 9,
        branches: 1,
        registers,
        dr7: 0x401,
        expected: &expected,
    };
    run_case(unit, &stepped);
    // An interrupt comes first, and the breakpoint is still met after it.
    let expected = [(at!(met), 1, false)];
    let case = Case {
        name: "break_met_by_interrupt",
        code: at!(met_code),
        instructions: 7 + DEVICE_INSTRUCTIONS,
        branches: 2,
        registers: [at!(met), 0, 0, 0],
        dr7: 0x401,
        expected: &expected,
    };
    run_case(unit, &case);
    let code = at!(met_repeated_code);
    let instructions = 8 + DEVICE_INSTRUCTIONS;
    let name = "repeated_met_by_interrupt";
    run_case(unit, &Case { name, code, instructions, dr7: 0, expected: &[], ..case });
    behind_ss(unit);
    // INT1 says nothing in DR6.
    let expected = [(at!(icebp_1), 0, false)];
    let icebp = Case {
        name: "int1",
        code: at!(icebp_code),
        instructions: 3,
        branches: 2,
        registers: [0; 4],
        dr7: 0,
        expected: &expected,
    };
    run_case(unit, &icebp);
}

/// Breakpoints on the instruction after a load of SS: suppressed on Intel (SDM vol. 3, 17.3.1.1), met on AMD. Those on
/// the load itself and one instruction further are met on both.
fn behind_ss(unit: &Unit) {
    let hits =
        [(at!(behind_ss_0), 1, false), (at!(behind_ss_1), 2, false), (at!(behind_ss_2), 4, false)];
    let intel = [hits[0], hits[2]];
    let expected: &[Expected] = if unit.intel { &intel } else { &hits };
    let registers = [at!(behind_ss_0), at!(behind_ss_1), at!(behind_ss_2), 0];
    let case = Case {
        name: "break_behind_ss",
        code: at!(behind_ss_code),
        instructions: 5,
        branches: 1,
        registers,
        dr7: 0x415,
        expected,
    };
    run_case(unit, &case);
}

fn data_breakpoints(unit: &Unit) {
    let variable = (&raw const VARIABLE) as u64;
    // Eight bytes written; four bytes after them read or written.
    let dr7 = 0x405 | 0b1001 << 16 | 0b1111 << 20;
    let pair = [(at!(watched_1), 1, false), (at!(watched_2), 2, false)];
    let mut expected = [pair[0]; 20];
    for (number, slot) in expected.iter_mut().enumerate() {
        *slot = pair[number % 2];
    }
    let case = Case {
        name: "watch",
        code: at!(watched_code),
        instructions: 3 + 60,
        branches: 11,
        registers: [variable, variable + 8, 0, 0],
        dr7,
        expected: &expected,
    };
    run_case(unit, &case);
    // One byte in the middle of what a repeated instruction writes, and its last byte.
    let expected = [(at!(stored), 1, true), (at!(stored_1), 2, false)];
    let case = Case {
        name: "watch_repeated",
        code: at!(stored_code),
        instructions: 6,
        branches: 1,
        registers: [variable + 3, variable + 7, 0, 0],
        dr7: 0x405 | 0b0001 << 16 | 0b0001 << 20,
        expected: &expected,
    };
    run_case(unit, &case);
    // A load of SS holds its breakpoint back.
    // SAFETY: nothing else runs; the data segment's selector.
    unsafe { (&raw mut VARIABLE).cast::<u64>().write_volatile(16) };
    let expected = [(at!(stack_segment_1), 1, false)];
    let case = Case {
        name: "watch_ss",
        code: at!(stack_segment_code),
        instructions: 5,
        branches: 1,
        registers: [variable, 0, 0, 0],
        dr7: 0x401 | 0b0111 << 16,
        expected: &expected,
    };
    run_case(unit, &case);
    // What an interrupt's delivery pushes: the frame's RFLAGS.
    let expected = [(crate::handlers::back_address(), 1, false)];
    let case = Case {
        name: "watch_frame",
        code: at!(pushed_code),
        instructions: 8,
        branches: 3,
        registers: [(&raw const FRAME) as u64 + 512 - 24, 0, 0, 0],
        dr7: 0x401 | 0b1001 << 16,
        expected: &expected,
    };
    run_case(unit, &case);
}

/// The registers themselves, while something is counted.
fn registers(unit: &Unit) {
    // General detection: a fault at the access, and its bit of DR7 is off in the handler and afterwards.
    let expected = [(at!(detected), ACCESS, false)];
    let case = Case {
        name: "general_detect",
        code: at!(detected_code),
        instructions: 8,
        branches: 1,
        registers: [0x1234, 0, 0, 0],
        dr7: 0,
        expected: &expected,
    };
    run_case(unit, &case);
    line!("case general_detect.dr0 {} {}", SEEN[0].load(Relaxed), 0x1234);
    line!("case general_detect.dr7 {} {}", SEEN[1].load(Relaxed), 0x400);
    let case = Case {
        name: "registers",
        code: at!(registers_code),
        instructions: registers_count(),
        branches: 1,
        registers: [0; 4],
        dr7: 0,
        expected: &[],
    };
    run_case(unit, &case);
    let expected = [0x1111, 0x2222, 0x3333, 0x4444, IDLE | 0x400f, 0x400, IDLE | 0x400f, 0x400];
    for (number, value) in expected.into_iter().enumerate() {
        line!("case registers.{number} {} {value}", SEEN[number].load(Relaxed));
    }
}

fn ring_3(unit: &Unit) {
    let (start, stack) = (at!(user_code), (&raw const RING_3_STACK) as u64);
    open_to_ring_3(start, 4096);
    open_to_ring_3(stack, 16 << 10);
    let break_x: [Expected; 10] = [(at!(user_break_x), 1, false); 10];
    let steps: [_; 2] = list(steps(&[at!(user_steps_1), at!(user_steps_2)]));
    let codes = [
        ("user_break", at!(user_break), 2 + 30, 0, at!(user_break_x), &break_x as &[Expected]),
        ("user_steps", at!(user_steps), 6, 1, 0, &steps),
    ];
    for (name, code, user, kernel, address, expected) in codes {
        rings::send_to(code, stack + (16 << 10));
        let kernel = kernel + rings::VISIT + HANDLER * expected.len() as u64;
        let filters = [
            ("user", USER, user),
            ("kernel", KERNEL, kernel),
            ("both", USER | KERNEL, user + kernel),
        ];
        for (filter_name, filter, all) in filters {
            for (way_name, way) in
                [("plain", Way::Plain), ("near", Way::Near), ("stepped", Way::Stepped)]
            {
                COUNT.store(0, Relaxed);
                debug_registers([address, 0, 0, 0], 0x400 | u64::from(address != 0));
                let visit = rings::visit as *const () as u64;
                let (seen, _) = count(unit, filter, way, visit, all / 2);
                debug_registers([0; 4], 0);
                let around = if filter & KERNEL != 0 { AROUND } else { 0 };
                line!("case {name}.{filter_name}.{way_name}.count {} {all}", seen - around);
                exceptions(name, way_name, expected);
            }
        }
    }
}
