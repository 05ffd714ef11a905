//! Gates of `count`: in ring 0, of several tasks at once, by data, and nested. Every turn of a task's loop is its body, a DEC and
//! a JNZ.

use pmu_model::Model;
use protocol::record::{CountGate, CountResult, TaskEnd};
use qemu_tests::{Guest, Ran};
use xtask::cli::{Boot, Icount};
use xtask::machine::Given;

/// Three of Intel's and two of AMD's, with and without a global control.
const MODELS: [Model; 5] =
    [Model::Core2, Model::Skylake, Model::SapphireRapids, Model::Zen2, Model::Zen4];
/// Instructions of both rings, of ring 0 and of ring 3: the last one by a fixed counter where there is one.
const EVENTS: &str = "events = [\"r00c0\", \"r00c0:k\", \"instructions:u\"]";

fn on(model: Model, toml: &str) -> Ran {
    let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run();
    ran.ends_with(0);
    ran
}

fn task(name: &str, ring: u8, turns: u64, asm: &str) -> String {
    format!(
        "[[count.task]]\nname = \"{name}\"\nring = {ring}\nturns = {turns}\nasm = '''{asm}'''\n"
    )
}

/// Each task's raw counts of all events, and that they are all there is.
fn by_task(model: Model, count: &CountResult) -> Vec<Vec<u64>> {
    assert!(count.uncounted.is_empty(), "{model:?}: {count:?}");
    for event in &count.events {
        let tasks: u64 = event.tasks.iter().map(|value| value.raw).sum();
        assert_eq!((event.sum.raw, event.kernel.raw), (tasks, 0), "{model:?}: {count:?}");
    }
    let of = |task: usize| count.events.iter().map(|event| event.tasks[task].raw).collect();
    (0..count.tasks.len()).map(of).collect()
}

fn shown(gates: &[CountGate]) -> Vec<(u16, u64, u64, u64, Option<u64>)> {
    gates
        .iter()
        .map(|gate| (gate.task, gate.starts, gate.stops, gate.taken, gate.deepest))
        .collect()
}

/// A task of ring 0 and one of ring 3 with gates of their own at once, by instructions and by data, beside one without: what lies
/// between is counted in its ring and nothing of the kernel's, whenever ticks come and tasks give way.
#[test]
fn m14_m3_t1_gates_of_ring_0_and_of_several_tasks_count_exactly_what_lies_between() {
    const LOW: u64 = 60;
    const HIGH: u64 = 80;
    let mut job = String::new();
    for ticks in ["tick-ns = 0", "tick-ns = 600000\njitter = 3"] {
        job += &format!(
            "[[count]]\n{EVENTS}\n{ticks}\nstart-at = [\"low:go\", {{ write = \"high:r14\", bytes = 4 }}]\n\
             stop-at = [\"low:halt\", {{ access = \"high:rdi-16\" }}]\n"
        );
        let low = "inc rax; go: add rbx, 1; mov ecx, 7; 2: dec ecx; jnz 2b; int 0x83; push rax; pop rax; halt: nop";
        job += &task("low", 0, LOW, low);
        // A read of what is watched for writes starts nothing.
        let high = "mov rbx, [r14]; mov [r14 + 3], bl; nop; int 0x83; nop; mov rbx, [rdi - 9]; nop";
        job += &task("high", 3, HIGH, high);
        job += &task("other", 0, 20_000, "go: nop; halt: mov [r14], rax");
    }
    for model in MODELS {
        let ran = on(model, &job);
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        assert_eq!(counts.len(), 2, "{model:?}: {:?}", ran.errors());
        for count in counts {
            // ADD, MOV, seven times DEC and JNZ, INT, PUSH, POP; NOP, INT, NOP and the MOV that stops.
            let [low, high] = [LOW * (2 + 14 + 3), HIGH * 4];
            let expected = [vec![low, low, 0], vec![high, 0, high], vec![0, 0, 0]];
            assert_eq!(by_task(model, count), expected, "{model:?}: {count:?}");
            let gates = [(0, LOW, LOW, 2 * LOW, None), (1, HIGH, HIGH, 2 * HIGH, None)];
            assert_eq!(shown(&count.gates), gates, "{model:?}");
            let taken_out: Vec<_> = count.events.iter().map(|event| event.taken_out).collect();
            assert!(
                taken_out[0] > Some(40) && taken_out[0] == taken_out[1],
                "{model:?}: {taken_out:?}"
            );
            assert_eq!(taken_out[2], Some(0), "{model:?}");
        }
        let ticked = ran.report.counts().nth(1).unwrap();
        assert!(ticked.ticks > 3, "{model:?}: {ticked:?}");
    }
}

/// A task that faults between its addresses, with an error code and without, has what it did before; one that goes on behind it
/// counts on.
#[test]
fn m14_a_fault_between_addresses_ends_its_task_and_its_count() {
    let mut job = format!(
        "[[count]]\n{EVENTS}\ntick-ns = 0\nstart-at = [\"low:go\", \"high:go\", \"goes on:go\"]\nstop-at = [\"goes on:halt\"]\n"
    );
    job += &task("goes on", 0, 2, "go: nop; int 0x83; nop; nop; halt: nop");
    job += &task("low", 0, 1, "go: nop; nop; xor eax, eax; mov rax, [rax]");
    job += &task("high", 3, 1, "go: nop; ud2");
    for model in MODELS {
        let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, &job) }.run();
        ran.ends_with(1);
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        let [count] = counts[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        // What faults does not retire.
        let expected = [[2 * 4, 2 * 4, 0], [3, 3, 0], [1, 0, 1]];
        assert_eq!(by_task(model, count), expected, "{model:?}: {count:?}");
        let ends: Vec<_> = count.tasks.iter().map(|task| task.end).collect();
        assert_eq!(ends, [TaskEnd::Exit, TaskEnd::Fault, TaskEnd::Fault], "{model:?}");
    }
}

/// A function that calls itself: with `nested` it is counted to the end of its first call, without to that of its last.
#[test]
fn m14_a_nested_gate_counts_to_the_end_of_the_outermost_call_in_both_rings() {
    const TURNS: u64 = 100;
    let mut job = String::new();
    for nested in [true, false] {
        job += &format!(
            "[[count]]\n{EVENTS}\ntick-ns = 40000\nnested = {nested}\nstart-at = [\"low:f\", \"high:f\"]\n\
             stop-at = [\"low:out\", \"high:out\"]\n"
        );
        let asm =
            "mov ecx, 3; call f; nop; jmp 9f; f: nop; dec ecx; jz out; call f; out: ret; 9: nop";
        job += &(task("low", 0, TURNS, asm) + &task("high", 3, TURNS, asm));
    }
    for model in MODELS {
        let ran = on(model, &job);
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        let [nested, flat] = counts[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        // NOP, DEC, JZ and CALL twice, the first three once more; then the RETs of the inner two.
        for (count, each, deepest) in [(nested, 4 + 4 + 3 + 2, Some(3)), (flat, 4 + 4 + 3, None)] {
            let all = TURNS * each;
            assert_eq!(
                by_task(model, count),
                [[all, all, 0], [all, 0, all]],
                "{model:?}: {count:?}"
            );
            let gate = |task| (task, TURNS, TURNS, 6 * TURNS, deepest);
            assert_eq!(shown(&count.gates), [gate(0), gate(1)], "{model:?}");
        }
    }
}

/// Behind a load of SS a data breakpoint waits for one more instruction, and if that is the call of the kernel it comes there;
/// an instruction breakpoint right behind a data breakpoint is met; one at the same instruction comes before it.
#[test]
fn m14_data_breakpoints_come_behind_their_instruction_and_behind_a_load_of_ss_one_later() {
    const TURNS: u64 = 50;
    // The data segment of ring 3.
    let ss = "jmp 2f; .balign 8; sel: .quad 0x1b; 2:";
    let of = |start: &str, stop: &str, asm: &str| {
        format!("[[count]]\n{EVENTS}\nstart-at = [{start}]\nstop-at = [{stop}]\n")
            + &task("t", 3, TURNS, asm)
    };
    let job = [
        of(
            "{ access = \"sel\" }",
            "\"halt\"",
            &format!("{ss} mov ss, [rip + sel]; nop; nop; nop; halt: nop"),
        ),
        of(
            "{ access = \"sel\", bytes = 2 }",
            "\"halt\"",
            &format!("{ss} mov ss, [rip + sel]; int 0x83; nop; halt: nop"),
        ),
        // The instruction that follows starts, and the one behind it stops.
        of("\"go\"", "{ write = \"r14\" }, \"2f\"", "nop; go: mov [r14], rax; 2f: nop")
            .replace("2f", "next"),
        // Counting starts before the instruction that writes, and ends behind it.
        of("{ write = \"rsp-8\" }", "\"halt\"", "push rax; halt: pop rax"),
        of("\"go\"", "{ write = \"rdi\", bytes = 1 }", "mov ecx, 4; go: mov [rdi], ecx; nop"),
    ];
    for model in MODELS {
        let ran = on(model, &job.concat());
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        assert_eq!(counts.len(), job.len(), "{model:?}: {:?}", ran.errors());
        for (count, each) in counts.into_iter().zip([2, 1, 1, 0, 1]) {
            let all = TURNS * each;
            assert_eq!(by_task(model, count), [[all, 0, all]], "{model:?}: {count:?}");
            let gate = &count.gates[0];
            assert_eq!((gate.starts, gate.stops), (TURNS, TURNS), "{model:?}: {count:?}");
        }
    }
}

/// What a breakpoint of a gate takes, in instructions of the kernel: the guest's clock counts them, and stands still while the
/// hypervisor runs. Two lengths of each loop, so that all else cancels.
#[test]
fn m14_a_breakpoint_of_a_gate_costs_a_bounded_number_of_instructions() {
    const TURNS: u64 = 30;
    let pair = "start-at = [\"go\"]\nstop-at = [\"halt\"]";
    let data = "start-at = [{ write = \"r14\" }]\nstop-at = [{ write = \"r14+8\" }]";
    let start = "start-at = [\"go\"]";
    // The events, the addresses, the ring, the body with its instructions, its breakpoints, and the bounds of one on processors
    // with a global control and without.
    let (user, both) = ("instructions:u", "instructions");
    let nops = ("go: nop; halt: nop", 2);
    let writes = ("mov [r14], rax; mov [r14 + 8], rax", 2);
    let cases = [
        ("start and stop", user, pair, 3, nops, 2, BOUNDS[0]),
        ("start and stop by data", user, data, 3, writes, 2, BOUNDS[0]),
        ("nothing changes", user, start, 3, nops, 1, BOUNDS[1]),
        ("start and stop, ring 0 counted", both, pair, 0, nops, 2, BOUNDS[2]),
        ("nothing changes, ring 0 counted", both, start, 0, nops, 1, BOUNDS[3]),
    ];
    let mut job = String::new();
    for (_, event, gate, ring, (asm, _), ..) in cases {
        for turns in [TURNS, 2 * TURNS] {
            // No tick comes so soon.
            job += &format!("[[count]]\nevents = [\"{event}\"]\ntick-ns = 10000000000\n{gate}\n");
            job += &task("t", ring, turns, asm);
        }
    }
    for (model, without) in [(Model::Skylake, 0), (Model::Zen2, 1)] {
        let ran = Guest {
            pmu: Given::Emulated(model),
            pmu_options: Some(format!("pmu={} clock=guest shift=0", model.spec().name)),
            icount: Icount::Shift(0),
            ..Guest::new(Boot::Direct, &job)
        }
        .run();
        ran.ends_with(0);
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        assert_eq!(counts.len(), 2 * cases.len(), "{model:?}: {:?}", ran.errors());
        for (both, (name, _, _, _, (_, body), breakpoints, bounds)) in counts.chunks(2).zip(cases) {
            let [short, long] = [0, 1].map(|at| both[at].tasks[0].time);
            let taken = both[1].gates[0].taken - both[0].gates[0].taken;
            assert_eq!(taken, TURNS * breakpoints, "{model:?}: {name}");
            let cost = (long - short - TURNS * (body + 2)) / taken;
            eprintln!("{model:?}: {name}: {cost} instructions a breakpoint");
            assert!((50..=bounds[without]).contains(&cost), "{model:?}: {name}: {cost}");
        }
    }
}

/// Measured, and rounded up: a start and a stop by one half each, and a breakpoint at which nothing changes, first with counters of
/// ring 3 alone.
const BOUNDS: [[u64; 2]; 4] = [[1_080, 1_200], [400, 500], [1_200, 1_900], [520, 700]];

/// A counter that wraps around between addresses of ring 0: it goes on counting, and the interrupt adds only its own way.
#[test]
fn m14_m12_a_counter_that_wraps_between_addresses_of_ring_0_counts_on() {
    const TURNS: u64 = 20_000;
    for (model, width) in [(Model::Core2, 40), (Model::Skylake, 48), (Model::Zen4, 48)] {
        let preset = (1_u64 << width) - 5_000;
        let toml =
            format!(
                "[[count]]\ntick-ns = 0\nstart-at = [\"t:go\"]\nstop-at = [\"t:halt\"]\n\
             events = [{{ event = \"r00c0\", preset = {preset} }}]\n"
            ) + &task("t", 3, 1, &format!("go: mov ecx, {TURNS}; 2: dec ecx; jnz 2b; halt: nop"));
        let ran = on(model, &toml);
        let count = ran.report.counts().next().expect("one item");
        let event = &count.events[0];
        let counted = event.sum.raw.wrapping_sub(preset);
        let beside = counted.wrapping_sub(2 * TURNS + 1);
        // The handler's way, if the counter counts there at all: less than a breakpoint's.
        assert!((0..1_500).contains(&beside), "{model:?}: {counted}, {beside}: {count:?}");
    }
}
