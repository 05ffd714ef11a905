//! Tasks that fill all registers with patterns and look whether they stay.

use super::{run, task, whole};
use qemu_tests::direct;
use std::fmt::Write;

/// General registers but R14, which points to the patterns. RSP as well: nothing needs a stack here.
const GENERAL: [&str; 15] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13",
    "r15",
];

/// Offsets from R14: the general patterns, those of x87 and MXCSR, the vectors.
const PATTERNS: u64 = 64;
const X87: u64 = PATTERNS + 8 * GENERAL.len() as u64;
const MXCSR: u64 = X87 + 8;
const SCRATCH: u64 = MXCSR + 8;
const VECTORS: u64 = 256;

/// Init code that writes the patterns of one task.
fn patterns(seed: u64) -> String {
    let mut init = String::new();
    let mut store = |at: u64, value: u64| {
        let _ = writeln!(init, "mov rax, {value:#x}\nmov [r14 + {at}], rax");
    };
    let pattern = |number: u64| {
        (seed + 1).wrapping_mul(0x0123_4567_89ab_cdef).rotate_left(number as u32 * 5) ^ number
    };
    for number in 0..GENERAL.len() as u64 {
        store(PATTERNS + 8 * number, pattern(number));
    }
    store(X87, pattern(20) >> 2);
    // All masked, with the rounding of the task: bits 14:13 (SDM vol. 1, 10.2.3).
    store(MXCSR, 0x1f80 | (seed & 3) << 13);
    for number in 0..16 * 4 {
        store(VECTORS + 8 * number, pattern(number + 30));
    }
    init
}

/// A turn: load all, wait, compare all; UD2 where something changed. `ring0` has a base of FS besides.
fn turn(seed: u64, ring0: bool) -> String {
    let mut code = String::new();
    let mut say = |line: String| code += &(line + "\n");
    if ring0 {
        // IA32_FS_BASE.
        say(format!("mov ecx, 0xc0000100; xor edx, edx; mov eax, {:#x}; wrmsr", 0x1000 + seed));
    }
    say(format!("fninit; fild qword ptr [r14 + {X87}]; ldmxcsr [r14 + {MXCSR}]"));
    for number in 0..16 {
        say(format!("vmovdqu ymm{number}, [r14 + {}]", VECTORS + 32 * number));
    }
    for (number, register) in (0..).zip(GENERAL) {
        say(format!("mov {register}, [r14 + {}]", PATTERNS + 8 * number));
    }
    // DF and CF have to stay as well.
    say("std; stc\n.rept 40\nnop\n.endr\njnc 9f".into());
    for (number, register) in (0..).zip(GENERAL) {
        say(format!("cmp {register}, [r14 + {}]; jne 9f", PATTERNS + 8 * number));
    }
    say("mov rsp, r14; pushfq; pop rax; test eax, 0x400; jz 9f; cld".into());
    for number in 0..16 {
        let at = VECTORS + 32 * number;
        // The one that was looked at last is free; at the beginning none is.
        let free = (number + 15) % 16;
        if number == 0 {
            say(format!("vmovdqu [r14 + {SCRATCH}], ymm15"));
        }
        say(format!(
            "vpxor ymm{free}, ymm{number}, [r14 + {at}]; vptest ymm{free}, ymm{free}; jnz 9f"
        ));
        if number == 0 {
            say(format!("vmovdqu ymm15, [r14 + {SCRATCH}]"));
        }
    }
    say(format!("fistp qword ptr [r14 + {SCRATCH}]; mov rax, [r14 + {SCRATCH}]"));
    say(format!("cmp rax, [r14 + {X87}]; jne 9f"));
    say(format!("stmxcsr [r14 + {SCRATCH}]; mov eax, [r14 + {SCRATCH}]"));
    say(format!("cmp eax, [r14 + {MXCSR}]; jne 9f"));
    if ring0 {
        say(format!("mov ecx, 0xc0000100; rdmsr; cmp eax, {:#x}; jne 9f", 0x1000 + seed));
    }
    say("inc qword ptr [r14]; jmp 8f\n9: ud2\n8:".into());
    code
}

const TURNS: u64 = 3_000;

#[test]
fn t9_all_registers_are_the_tasks_own_through_preemption() {
    let tasks: Vec<String> = (0..6)
        .map(|seed| {
            let ring = if seed % 2 == 0 { 0 } else { 3 };
            let init = patterns(seed);
            let rest = format!("turns = {TURNS}\nring = {ring}\ninit = '''\n{init}'''");
            task(&format!("t{seed}"), &turn(seed, ring == 0), &rest)
        })
        .collect();
    let ran = direct(&run("tick-ns = 1500\njitter = 5\nlimit-us = 20000000", &tasks));
    let runs = whole(&ran);
    for task in &runs[0].tasks {
        assert_eq!((task.turns, task.value.0), (TURNS, TURNS), "{task:?}");
        assert!(task.switches > 100, "{task:?}");
    }
}

/// Tasks of ring 0 without extended registers: some set the bases of FS and GS, then let others go first, and find what they
/// set; the others find 0. Between such tasks a switch has a short way, which must not be taken here.
#[test]
fn t9_bases_of_segments_are_the_tasks_own_at_yields_and_ticks() {
    // IA32_FS_BASE and IA32_GS_BASE.
    let each = |text: &dyn Fn(u32, u64) -> String| {
        [(0, 0xc000_0100_u64), (1, 0xc000_0101)].map(|(n, msr)| text(n, msr)).concat()
    };
    let find = |base: u64| {
        each(&|n, msr| {
            let base = if base == 0 { 0 } else { base + u64::from(n) };
            format!("mov ecx, {msr:#x}; rdmsr; or rdx, rdx; jnz 9f; cmp eax, {base:#x}; jne 9f\n")
        })
    };
    let wait = |how: &str| match how {
        "yield" => "int 0x83\n",
        _ => ".rept 60\nnop\n.endr\n",
    };
    let sets = |base: u64, how: &str| {
        let set = each(&|n, msr| {
            let base = base + u64::from(n);
            format!("mov ecx, {msr:#x}; mov eax, {base:#x}; xor edx, edx; wrmsr\n")
        });
        format!("{set}{}{}inc qword ptr [r14]; jmp 8f\n9: ud2\n8:", wait(how), find(base))
    };
    let keeps =
        |how: &str| format!("{}{}inc qword ptr [r14]; jmp 8f\n9: ud2\n8:", wait(how), find(0));
    let turns = 2_000;
    let job = [
        ("yield", "tick-ns = 10000000000"),
        ("tick", "tick-ns = 2000"),
        ("tick", "tick-ns = 2000\njitter = 7"),
    ]
    .map(|(how, ticks)| {
        let one = |name: &str, code: String| task(name, &code, &format!("turns = {turns}"));
        let tasks = [
            one("a", sets(0x1000, how)),
            one("plain", keeps(how)),
            one("b", sets(0x2000, how)),
            one("plain2", keeps(how)),
        ];
        run(ticks, &tasks)
    })
    .concat();
    let ran = direct(&job);
    for one in whole(&ran) {
        for task in &one.tasks {
            assert_eq!((task.turns, task.value.0), (turns, turns), "{task:?}");
            assert!(task.switches > 50, "{task:?}");
        }
    }
}
