//! Events that need the instruction itself: branches, loads, stores, misses, branch records.

use crate::line;
use crate::pmu::{KERNEL, USER, Unit, call, read, write};
use crate::strings::BUFFER;
use core::arch::naked_asm;

/// Ten times: a call, a return, a jump that is never taken, one that is but for the last time. Then a far return's kin.
#[unsafe(naked)]
extern "C" fn branches() {
    naked_asm!(
        "mov ecx, 10",
        "2: call 3f",
        "jrcxz 4f",
        "dec ecx",
        "jnz 2b",
        "int3",
        "4: ret",
        "3: ret",
    )
}

/// Three loads, two stores, one of both; and the pair of `branches`' stack accesses.
#[unsafe(naked)]
extern "C" fn accesses() {
    naked_asm!(
        "lea rsi, [rip + {buffer}]",
        "mov rax, [rsi]", "mov al, [rsi + 8]", "movups xmm0, [rsi]",
        "mov [rsi + 64], rax", "movups [rsi + 128], xmm0",
        "add [rsi], rax",
        "push rax", "pop rax",
        "ret",
        buffer = sym BUFFER,
    )
}

/// Ten lines, each flushed in front of its load.
#[unsafe(naked)]
extern "C" fn flushed() {
    naked_asm!(
        "lea rsi, [rip + {buffer}]", "mov ecx, 10",
        "2: clflush [rsi]", "mov al, [rsi]", "add rsi, 64", "dec ecx", "jnz 2b",
        "ret",
        buffer = sym BUFFER,
    )
}

/// The same ten lines, not flushed, over and over.
#[unsafe(naked)]
extern "C" fn warm() {
    naked_asm!(
        "mov r8d, 5",
        "3: lea rsi, [rip + {buffer}]", "mov ecx, 10",
        "2: mov al, [rsi]", "add rsi, 64", "dec ecx", "jnz 2b",
        "dec r8d", "jnz 3b",
        "ret",
        buffer = sym BUFFER,
    )
}

struct Event {
    name: &'static str,
    select: u64,
    /// What the CALL and the WRMSR around the code add.
    around: u64,
    code: extern "C" fn(),
    expected: u64,
}

const fn event(
    name: &'static str,
    select: u64,
    around: u64,
    code: extern "C" fn(),
    expected: u64,
) -> Event {
    Event { name, select, around, code, expected }
}

/// Skylake's names and codes.
const INTEL: [Event; 13] = [
    // Calls, returns and jumps, the handler's IRET and the final RET.
    event("br_inst_retired.all_branches", 0x00c4, 1, branches, 10 * 4 + 1 + 1 + 1),
    event("br_inst_retired.conditional", 0x01c4, 0, branches, 20),
    event("br_inst_retired.near_call", 0x02c4, 1, branches, 10),
    event("br_inst_retired.near_return", 0x08c4, 0, branches, 11),
    event("br_inst_retired.not_taken", 0x10c4, 0, branches, 11),
    event("br_inst_retired.near_taken", 0x20c4, 1, branches, 10 + 11 + 9),
    event("br_inst_retired.far_branch", 0x40c4, 0, branches, 2),
    // The pop and the return included; the call stores.
    event("mem_inst_retired.all_loads", 0x81d0, 0, accesses, 4 + 2),
    event("mem_inst_retired.all_stores", 0x82d0, 1, accesses, 3 + 1),
    event("longest_lat_cache.miss", 0x412e, 0, flushed, 10),
    event("mem_load_retired.l3_miss", 0x20d1, 0, flushed, 10),
    event("longest_lat_cache.miss.warm", 0x412e, 0, warm, 0),
    event("br_misp_retired.all_branches", 0x00c5, 0, plain_calls, 0),
];

/// Zen 2's.
const AMD: [Event; 6] = [
    event("ex_ret_brn", 0x00c2, 1, branches, 10 * 4 + 1 + 1 + 1),
    event("ex_ret_brn_tkn", 0x00c4, 1, branches, 10 + 11 + 9 + 2),
    event("ex_ret_brn_far", 0x00c6, 0, branches, 2),
    event("ex_ret_near_ret", 0x00c8, 0, branches, 11),
    event("ls_dispatch.ld_dispatch", 0x0129, 0, accesses, 3 + 2),
    event("ls_dispatch.store_dispatch", 0x0229, 1, accesses, 2 + 1),
];

pub fn run(unit: &Unit) {
    let events = if unit.intel { &INTEL[..] } else { &AMD[..] };
    for event in events {
        // Once before, so that everything has been seen.
        count(unit, event);
        let seen = count(unit, event).wrapping_sub(event.around);
        line!("case {} {seen} {}", event.name, event.expected);
    }
    if unit.intel && unit.version < 5 {
        records();
    }
}

fn count(unit: &Unit, event: &Event) -> u64 {
    let select = event.select | USER | KERNEL;
    unit.program(select, 0);
    let (switch, on) = unit.switch(select);
    call(switch, on, event.code as *const () as u64);
    unit.read()
}

/// The newest records of Skylake's stack: the last jump back, the final return.
fn records() {
    const DEBUGCTL: u32 = 0x1d9;
    const TOP: u32 = 0x1c9;
    const FROM: u32 = 0x680;
    const TO: u32 = 0x6c0;
    call(DEBUGCTL, 1, plain_calls as *const () as u64);
    let top = read(TOP) as u32;
    let address = |value: u64| (value as i64) << 16 >> 16;
    let start = plain_calls as *const () as i64;
    // From the newest backwards: RET to us, three times RET and CALL, and the CALL from us.
    let expected = [7, 8, 3, 8, 1, -1];
    for (age, from) in expected.into_iter().enumerate() {
        let seen = address(read(FROM + (top.wrapping_sub(age as u32) & 31))) - start;
        if from >= 0 {
            line!("record {age} from {seen}");
        }
    }
    let newest = address(read(FROM + top)) - start;
    line!("case lbr.newest_from {newest} 10");
    let before = address(read(TO + (top.wrapping_sub(1) & 31))) - start;
    line!("case lbr.before_to {before} 10");
    write(DEBUGCTL, 0);
}

/// Two calls of five bytes, then RET at 10.
#[unsafe(naked)]
extern "C" fn plain_calls() {
    naked_asm!("call 2f", "call 2f", "ret", "2: ret")
}
