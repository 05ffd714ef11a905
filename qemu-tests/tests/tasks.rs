//! Tasks on the target: what they compute, what they keep through preemption, what a bad one can do, and their counts.

mod hostile;

use pmu_model::Model;
use protocol::record::{ApicMode, TaskEnd, TaskResult, TasksResult};
use qemu_tests::{Guest, Ran, direct};
use std::fmt::Write;
use xtask::cli::{Boot, Icount};
use xtask::machine::Given;

fn task(name: &str, asm: &str, rest: &str) -> String {
    format!("[[run.task]]\nname = \"{name}\"\nasm = '''\n{asm}\n'''\n{rest}\n")
}

fn run(ticks: &str, tasks: &[String]) -> String {
    format!("[[run]]\n{ticks}\n{}", tasks.concat())
}

/// The runs of a job whose tasks all exit.
fn whole(ran: &Ran) -> Vec<&TasksResult> {
    ran.ends_with(0);
    ran.report.tasks().collect()
}

fn named<'a>(ran: &'a TasksResult, name: &str) -> &'a TaskResult {
    ran.tasks.iter().find(|task| task.name == name).expect(name)
}

/// A multiplicative hash over the turn's number, kept in registers and left in memory.
const HASH: &str =
    "inc rcx\nadd rax, rcx\nmov rdx, 0x9e3779b97f4a7c15\nimul rax, rdx\nmov [r14], rax";

/// What [`HASH`] leaves after so many turns.
fn hash(turns: u64) -> u64 {
    let step = |hash: u64, turn: u64| hash.wrapping_add(turn).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1..=turns).fold(0, step)
}

#[test]
fn t9_each_task_computes_what_it_does_alone_under_random_ticks() {
    let mut job = String::new();
    let timers = [
        "tick-ns = 0",
        "tick-ns = 20000",
        "tick-ns = 3000\njitter = 1",
        "tick-ns = 3000\njitter = 2",
        "tick-ns = 1000\njitter = 3",
    ];
    for timer in timers {
        let tasks = [
            task("short", HASH, "turns = 777"),
            task("long", HASH, "turns = 40000\nring = 3"),
            task("once", "lea rax, [rip]\nmov [r14], rax", ""),
            task("user", HASH, "turns = 12345\nring = 3"),
        ];
        job += &run(timer, &tasks);
    }
    let ran = direct(&job);
    let runs = whole(&ran);
    assert_eq!(runs.len(), timers.len());
    for (ran, timer) in runs.iter().zip(timers) {
        let seen = ran.tasks.iter().map(|task| (task.turns, task.value.0));
        let once = named(ran, "once");
        let expected = [
            (777, hash(777)),
            (40_000, hash(40_000)),
            // LEA's result is the address behind its seven bytes.
            (1, once.entry.0 + 7),
            (12_345, hash(12_345)),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected, "{timer}");
        let apart: u64 = ran.tasks.iter().map(|task| task.switches).sum();
        assert_eq!(ran.switches, apart + 1, "{timer}");
        let taken = |vector| {
            let of = ran.interrupts.iter().find(|taken| taken.vector == vector);
            of.map_or(0, |taken| taken.count)
        };
        assert_eq!([taken(0x84), taken(0x82)], [1, 4], "{timer}: the start, an exit of each task");
        // One that was raised before the last task ended can come after it.
        let late = taken(0xd0) - ran.ticks.count;
        assert!(late <= 1, "{timer}: {late}");
    }
    assert_eq!((runs[0].ticks.count, runs[0].switches), (0, 5), "one after the other");
    // Under icount a nanosecond is a tick of the TSC. QEMU's timer rounds, and the handler takes its time.
    let periodic = runs[1].ticks;
    assert!(periodic.count > 5 && periodic.median.abs_diff(20_000) < 200, "{periodic:?}");
    for (ran, base) in [(runs[2], 3_000), (runs[3], 3_000), (runs[4], 1_000)] {
        let ticks = ran.ticks;
        assert!(ticks.count > 40 && ticks.min >= base / 2, "{ticks:?}");
        assert!(ticks.median > base && ticks.max > ticks.min + base / 2, "{ticks:?}");
    }
    assert_ne!(runs[2].ticks, runs[3].ticks, "another seed, other ticks");
}

/// Without icount the timer follows the host's clock, and the APIC is in x2APIC mode.
#[test]
fn t9_tasks_take_turns_in_both_apic_modes_and_under_every_way_to_boot() {
    let tasks = [task("a", HASH, "turns = 2000000"), task("b", HASH, "turns = 3000000\nring = 3")];
    let job = run("tick-ns = 200000\njitter = 1", &tasks);
    for (boot, icount, mode) in [
        (Boot::Direct, Icount::Off, ApicMode::X2Apic),
        (Boot::Bios, Icount::Auto, ApicMode::XApic),
        (Boot::Uefi, Icount::Auto, ApicMode::XApic),
    ] {
        let ran = Guest { icount, ..Guest::new(boot, &job) }.run();
        let runs = whole(&ran);
        let values: Vec<u64> = runs[0].tasks.iter().map(|task| task.value.0).collect();
        assert_eq!(values, [hash(2_000_000), hash(3_000_000)], "{boot:?}");
        assert!(runs[0].switches > 4, "{boot:?}: {:?}", runs[0]);
        assert_eq!(ran.report.machine().unwrap().apic.mode, mode, "{boot:?}");
    }
}

#[test]
fn m15_a_bad_task_is_ended_with_a_record_and_the_others_go_on() {
    let bad = [
        // The others' memory, the kernel's, its own code: whatever ring 3 is not to touch.
        ("other", "mov eax, 0x800cf000\nmov rbx, [rax]", "#PF", Some(0x800c_f000), "body"),
        ("suite", "mov rax, 0x200000000000\nmov rbx, [rax]", "#PF", Some(0x2000_0000_0000), "body"),
        ("snippets", "mov eax, 0x40200000\nmov rbx, [rax]", "#PF", Some(0x4020_0000), "body"),
        ("stack", "mov eax, 0x800a4000\nmov [rax], rbx", "#PF", Some(0x800a_4000), "body"),
        ("jump", "mov eax, 0x80000000\njmp rax", "#PF", Some(0x8000_0000), "outside"),
        (
            "kernel",
            "mov rax, 0xffff800000100000\nmov rbx, [rax]",
            "#PF",
            Some(0xffff_8000_0010_0000),
            "body",
        ),
        ("image", "mov rax, -0x80000000\ncall rax", "#PF", Some(0xffff_ffff_8000_0000), "outside"),
        ("code", "lea rax, [rip]\nmov byte ptr [rax], 0", "#PF", None, "body"),
        ("data", "jmp r14", "#PF", None, "outside"),
        ("below", "add rsp, -0x5000\npush rax", "#PF", None, "body"),
        ("flags", "cli", "#GP", None, "body"),
        ("start", "int 0x84", "#GP", None, "body"),
        ("tick", "int 0xd0", "#GP", None, "body"),
        ("opcode", "nop\nud2", "#UD", None, "body"),
        ("divide", "xor ecx, ecx\ndiv ecx", "#DE", None, "body"),
        ("break", "nop\nint3", "#GP", None, "body"),
    ];
    let mut tasks = vec![task("first", HASH, "turns = 9000\nring = 3")];
    for (name, asm, ..) in bad {
        tasks.push(task(name, asm, "ring = 3"));
    }
    // In ring 0 a task can do more before it ends: CR0.TS (bit 3) makes the next use of a vector raise #NM.
    let zero =
        "cli\nmov eax, 0x18\nmov ds, eax\nmov rax, cr0\nor eax, 8\nmov cr0, rax\nxor esp, esp\nud2";
    tasks.push(task("zero", zero, "init = \"mov [r14], rdi\""));
    tasks.push(task("third turn", "inc rax\ncmp rax, 3\nje 2f\njmp 3f\n2: ud2\n3:", "turns = 9"));
    let vector = "paddq xmm0, xmm1\nmovq [r14], xmm0";
    tasks.push(task("vector", vector, "turns = 9000\ninit = \"mov eax, 1; movq xmm1, rax\""));
    tasks.push(task("last", HASH, "turns = 9000"));
    let good = task("alone", HASH, "turns = 5");
    let job = run("tick-ns = 2000\njitter = 1", &tasks) + &run("tick-ns = 2000", &[good]);
    let ran = direct(&job);
    ran.ends_with(1);
    let runs: Vec<_> = ran.report.tasks().collect();
    for good in ["first", "last"] {
        let task = named(runs[0], good);
        assert_eq!((task.end, task.turns, task.value.0), (TaskEnd::Exit, 9_000, hash(9_000)));
        assert_eq!(task.fault, None);
    }
    for (name, _, mnemonic, address, part) in bad {
        let task = named(runs[0], name);
        let fault = task.fault.as_ref().unwrap_or_else(|| panic!("{name}: {task:?}"));
        assert_eq!((task.end, fault.mnemonic.as_str()), (TaskEnd::Fault, mnemonic), "{name}");
        assert_eq!(fault.part, part, "{name}: {fault:?}");
        if let Some(address) = address {
            assert_eq!(fault.registers.cr2.0, address, "{name}");
        }
        // Error code bit 2: in ring 3.
        let user = fault.error_code.is_none_or(|code| mnemonic != "#PF" || code.0 & 4 != 0);
        assert!(user, "{name}: {fault:?}");
    }
    let vector = named(runs[0], "vector");
    assert_eq!((vector.end, vector.value.0), (TaskEnd::Exit, 9_000));
    let zero = named(runs[0], "zero").fault.as_ref().unwrap();
    assert_eq!((zero.mnemonic.as_str(), zero.registers.rsp.0), ("#UD", 0));
    assert_eq!(zero.bytes.as_deref(), Some("0f0b"));
    let third = named(runs[0], "third turn");
    assert_eq!((third.turns, third.end), (2, TaskEnd::Fault));
    assert_eq!(runs[1].tasks[0].value.0, hash(5), "the run behind it");
}

#[test]
fn an_endless_task_is_ended_at_its_limit() {
    for ticks in ["tick-ns = 5000\njitter = 9", "tick-ns = 0"] {
        let tasks = [
            task("endless", "2: jmp 2b", "ring = 3"),
            task("good", HASH, "turns = 1000"),
            task("turning", "nop", "turns = 1000000000"),
        ];
        let ran = direct(&run(&format!("{ticks}\nlimit-us = 300"), &tasks));
        ran.ends_with(1);
        let only = ran.report.tasks().next().unwrap();
        assert_eq!(only.tasks[1].value.0, hash(1_000));
        for (index, task) in only.tasks.iter().enumerate() {
            let end = if index == 1 { TaskEnd::Exit } else { TaskEnd::Limit };
            assert_eq!(task.end, end, "{ticks}: {task:?}");
            if end == TaskEnd::Limit {
                assert!((300_000..320_000).contains(&task.time), "{ticks}: {task:?}");
            }
        }
        assert!((1..1_000_000).contains(&only.tasks[2].turns), "{ticks}");
    }
}

/// SSE state on a processor with XSAVE and on one that has FXSAVE only.
#[test]
fn t9_vector_registers_are_the_tasks_own_with_either_way_to_save_them() {
    let sum = |name, step| {
        let rest = format!("turns = 20000\nring = 3\ninit = \"mov eax, {step}; movq xmm1, rax\"");
        task(name, "paddq xmm0, xmm1\nmovq [r14], xmm0", &rest)
    };
    let job = run("tick-ns = 2000\njitter = 4", &[sum("a", 3), sum("b", 5), sum("c", 7)]);
    for cpu in ["max", "qemu64,-xsave"] {
        let ran = Guest { cpu: Some(cpu.to_string()), ..Guest::new(Boot::Direct, &job) }.run();
        let runs = whole(&ran);
        let values: Vec<u64> = runs[0].tasks.iter().map(|task| task.value.0).collect();
        assert_eq!(values, [60_000, 100_000, 140_000], "{cpu}");
        assert!(runs[0].tasks.iter().all(|task| task.switches > 5), "{cpu}");
    }
}

/// Turns of a task, instructions of a turn and of its init: NOPs, with what the loop adds.
const COUNTED: [(u64, u64, u64); 3] = [(20_001, 3, 2), (7_000, 11, 0), (1, 30, 7)];

fn counted(index: usize, rest: &str) -> String {
    let (turns, body, init) = COUNTED[index];
    let nops = |count: u64| "nop; ".repeat(count as usize);
    let init = format!("init = \"{}\"\nturns = {turns}\nring = 3\n{rest}", nops(init));
    task(&format!("t{index}"), &nops(body), &init)
}

/// With the loop's two and the INT at the end, which counts in the ring that it leaves on the emulated models.
fn instructions(index: usize) -> u64 {
    let (turns, body, init) = COUNTED[index];
    init + turns * (body + 2) + 1
}

/// Each task's count in ring 3 is exact, whatever interrupts it and whoever runs meanwhile.
#[test]
fn i8_m14_counts_of_each_task_are_exact_under_random_ticks_and_go_to_its_parent() {
    let mut job = String::new();
    // On the emulated PMU a tick and its switch take thousands of instructions: with less, tasks hardly get on.
    for ticks in ["tick-ns = 0", "tick-ns = 20000\njitter = 1", "tick-ns = 12000\njitter = 77"] {
        let noise = task("noise", "imul rax, rcx\nint 0x83", "turns = 300");
        let bad = task("bad", "nop\nnop\nud2", "ring = 3\nparent = \"t0\"");
        let tasks = [
            counted(0, ""),
            counted(1, "parent = \"t0\""),
            counted(2, "parent = \"t1\""),
            noise,
            bad,
        ];
        let _ = write!(job, "{}", run(ticks, &tasks));
    }
    for model in [Model::Skylake, Model::Core2, Model::Zen4, Model::SapphireRapids] {
        let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, &job) }.run();
        ran.ends_with(1);
        assert_eq!(ran.report.tasks().count(), 3, "{model:?}");
        for one in ran.report.tasks() {
            let text = format!("{model:?}: {one:?}");
            let counts = |task: &TaskResult| (task.user_instructions, task.child_user_instructions);
            let [t0, t1, t2] = [0, 1, 2].map(instructions);
            // The two NOPs; UD2 does not retire.
            let expected = [(t0, t1 + t2 + 2), (t1, t2), (t2, 0), (0, 0), (2, 0)];
            let seen: Vec<_> = one.tasks.iter().map(counts).collect();
            assert_eq!(seen, expected.map(|(own, of)| (Some(own), Some(of))), "{text}");
            // A counter that nobody switched comes to the same.
            assert_eq!(one.user_instructions, Some(t0 + t1 + t2 + 2), "{text}");
            assert!(one.emulated && (one.ticks.count == 0 || one.ticks.count > 20), "{text}");
        }
    }
}

/// TSC ticks of all tasks of a run: instructions, under icount with shift 0.
fn time(ran: &TasksResult) -> u64 {
    ran.tasks.iter().map(|task| task.time).sum()
}

/// Instructions of a switch from task to task by a yield, from the INT on: what twice as many yields cost more, without
/// the loops. No tick comes so soon.
#[test]
fn t9_a_context_switch_costs_a_bounded_number_of_instructions() {
    let yields = |turns: u64, rest: &str| {
        let one = |name| task(name, "int 0x83", &format!("turns = {turns}\n{rest}"));
        run("tick-ns = 10000000000", &[one("a"), one("b")])
    };
    let kinds = [("ring = 0", 225.0), ("ring = 3", 212.0), ("ring = 3\nextended = true", 320.0)];
    let job: String = kinds.map(|(rest, _)| yields(1_000, rest) + &yields(2_000, rest)).concat();
    let ran = direct(&job);
    let runs = whole(&ran);
    for (pair, (kind, most)) in runs.chunks(2).zip(kinds) {
        let [short, long] = pair else { panic!("{pair:?}") };
        let switches = long.switches - short.switches;
        assert_eq!((switches, long.ticks.count), (2_000, 0), "each yield is a switch");
        // DEC and JNZ of each turn.
        let cost = (time(long) - time(short)) as f64 / switches as f64 - 2.0;
        eprintln!("{}: {cost} instructions a switch", kind.replace('\n', ", "));
        assert!((150.0..=most).contains(&cost), "{kind}: {cost}");
    }
}

/// The same by a tick, with the timer's next one: what the tasks took more than their own instructions.
#[test]
fn t9_a_tick_costs_a_bounded_number_of_instructions() {
    let turns = 200_000;
    let one = |name| task(name, "nop", &format!("turns = {turns}"));
    let timers = ["tick-ns = 5000", "tick-ns = 5000\njitter = 1"];
    let ran = direct(&timers.map(|timer| run(timer, &[one("a"), one("b")])).concat());
    for ((one, timer), most) in whole(&ran).into_iter().zip(timers).zip([345.0, 675.0]) {
        let own = 2 * 3 * turns;
        let cost = (time(one) - own) as f64 / one.ticks.count as f64;
        eprintln!("{}: {cost:.0} instructions a tick", timer.replace('\n', ", "));
        assert!((200.0..=most).contains(&cost), "{timer}: {cost}");
    }
}
