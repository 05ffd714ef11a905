//! Gates of `count`: in ring 0, of several tasks at once, by data, and nested. Every turn of a task's loop is its body, a DEC and
//! a JNZ.

use pmu_model::Model;
use protocol::record::{CountGate, CountResult};
use qemu_tests::{Guest, Ran};
use xtask::cli::Boot;
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
    format!("[[count.task]]\nname = \"{name}\"\nring = {ring}\nturns = {turns}\nasm = '''{asm}'''\n")
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
    gates.iter().map(|gate| (gate.task, gate.starts, gate.stops, gate.taken, gate.deepest)).collect()
}

/// A task of ring 0 and one of ring 3 with gates of their own at once, by instructions and by data, beside one without: what lies
/// between is counted in its ring and nothing of the kernel's, whenever ticks come and tasks give way.
#[test]
fn m14_m3_t1_gates_of_ring_0_and_of_several_tasks_count_exactly_what_lies_between() {
    const LOW: u64 = 300;
    const HIGH: u64 = 400;
    let mut job = String::new();
    for ticks in ["tick-ns = 0", "tick-ns = 50000\njitter = 3"] {
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
            assert!(taken_out[0] > Some(40) && taken_out[0] == taken_out[1], "{model:?}: {taken_out:?}");
            assert_eq!(taken_out[2], Some(0), "{model:?}");
        }
        let ticked = ran.report.counts().nth(1).unwrap();
        assert!(ticked.ticks > 3, "{model:?}: {ticked:?}");
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
        let asm = "mov ecx, 3; call f; nop; jmp 9f; f: nop; dec ecx; jz out; call f; out: ret; 9: nop";
        job += &(task("low", 0, TURNS, asm) + &task("high", 3, TURNS, asm));
    }
    for model in MODELS {
        let ran = on(model, &job);
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        let [nested, flat] = counts[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        // NOP, DEC, JZ and CALL twice, the first three once more; then the RETs of the inner two.
        for (count, each, deepest) in [(nested, 4 + 4 + 3 + 2, Some(3)), (flat, 4 + 4 + 3, None)] {
            let all = TURNS * each;
            assert_eq!(by_task(model, count), [[all, all, 0], [all, 0, all]], "{model:?}: {count:?}");
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
        of("{ access = \"sel\" }", "\"halt\"", &format!("{ss} mov ss, [rip + sel]; nop; nop; nop; halt: nop")),
        of("{ access = \"sel\", bytes = 2 }", "\"halt\"", &format!("{ss} mov ss, [rip + sel]; int 0x83; nop; halt: nop")),
        // The instruction that follows starts, and the one behind it stops.
        of("\"go\"", "{ write = \"r14\" }, \"2f\"", "nop; go: mov [r14], rax; 2f: nop").replace("2f", "next"),
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
