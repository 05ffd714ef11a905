//! Counting between addresses.

use super::*;

/// Between two addresses of a task: exactly the instructions between them times the turns, whenever the ticks come and
/// whoever else runs. The instruction at the first is counted, the one at the second is not.
#[test]
fn m14_m3_between_two_addresses_of_a_task_exactly_what_lies_between_is_counted() {
    const TURNS: u64 = 500;
    let mut job = String::from("allow-uncounted = true\n");
    for ticks in ["tick-ns = 0", "tick-ns = 50000\njitter = 3"] {
        job += &format!(
            r#"
[[count]]
events = ["r00c0:u", "r00c0", "instructions:u"]
{ticks}
start-at = ["gated:go"]
stop-at = ["gated:halt", "gated:never"]

[[count.task]]
name = "gated"
init = "nop; nop"
asm = '''
inc rax
go: add rbx, 1
mov ecx, 7
2: dec ecx
jnz 2b
push rax
cpuid
pop rax
halt: nop
jmp 3f
never: nop
3: nop
'''
turns = {TURNS}
ring = 3

[[count.task]]
name = "other"
asm = "go: nop; halt: nop"
turns = 20000
ring = 3
"#
        );
    }
    for model in MODELS {
        let ran = on(model, &job);
        let counts = counted(&ran);
        assert_eq!(counts.len(), 2, "{model:?}: {:?}", ran.errors());
        for count in counts {
            // ADD, MOV, seven times DEC and JNZ, PUSH, CPUID, POP.
            let expected = TURNS * (2 + 14 + 3);
            // The kernel's own part of what counts ring 0 as well is taken out.
            for event in 0..3 {
                assert_eq!(
                    raw(count, event),
                    (expected, 0, vec![expected, 0]),
                    "{model:?}: {count:?}"
                );
            }
            let [gate] = &count.gates[..] else { panic!("{model:?}: {count:?}") };
            let seen = (gate.task, gate.starts, gate.stops, gate.taken);
            assert_eq!(seen, (0, TURNS, TURNS, 2 * TURNS), "{model:?}");
            assert_eq!(count.events[0].taken_out, Some(0), "{model:?}");
            assert!(count.events[1].taken_out > Some(40), "{model:?}: {count:?}");
            assert!(count.uncounted.is_empty(), "{model:?}: {count:?}");
            assert_eq!(count.tasks[0].turns, TURNS, "{model:?}");
        }
        let ticked = counted(&ran)[1];
        assert!(ticked.ticks > 3, "{model:?}: {ticked:?}");
    }
}

/// What one address starts goes on to the end without another; events take turns while it does; and what is never reached
/// starts nothing and is said.
#[test]
fn m14_counting_that_is_started_and_not_stopped_goes_on_to_the_tasks_end() {
    let gated = |events: &str, more: &str| {
        format!(
            "[[count]]\nevents = [{events}]\n{more}\n[[count.task]]\nname = \"t\"\nturns = 3000\nring = 3\n\
             init = \"nop\"\nasm = \"nop; nop; jmp 2f; never: nop; 2: nop\"\n"
        )
    };
    let many = ["\"r00c0:u\""; 9].join(", ");
    let job = [
        gated("\"r00c0:u\"", "tick-ns = 0\nstart-at = [\"1\"]"),
        gated(&many, "tick-ns = 40000\nstart-at = [\"t:+1\"]"),
        gated("\"r00c0:u\"", "tick-ns = 0\nstart-at = [\"never\"]"),
    ];
    for model in MODELS {
        let ran = on(model, &job.concat());
        let [whole, turns, never] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        // From the second NOP of the first turn on, and INT.
        let expected = 3000 * 6 - 1 + 1;
        assert_eq!(raw(whole, 0), (expected, 0, vec![expected]), "{model:?}: {whole:?}");
        let gate = |count: &CountResult| count.gates.first().map(|gate| (gate.starts, gate.stops));
        assert_eq!(gate(whole), Some((1, 0)), "{model:?}");
        // Nobody counts twice, and each has its turn.
        let counts: Vec<u64> = (0..9).map(|event| raw(turns, event).0).collect();
        let shared = turns.groups > 1;
        assert_eq!(gate(turns), Some((1, 0)), "{model:?}");
        assert!(
            counts.iter().all(|&count| count > 0 && (count < expected) == shared),
            "{counts:?}"
        );
        if shared {
            assert!(turns.passes > 0, "{model:?}: {turns:?}");
        }
        assert_eq!((raw(never, 0).0, gate(never)), (0, Some((0, 0))), "{model:?}");
    }
}

/// Without a PMU the tasks run, and each event has the reason.
#[test]
fn m14_without_a_pmu_a_gate_counts_nothing_and_says_why() {
    let job = "[[count]]\nevents = [\"instructions:u\"]\nstart-at = [\"go\"]\n\
               [[count.task]]\nname = \"t\"\nasm = \"go: nop\"\nturns = 5\nring = 3\n";
    let ran = Guest { pmu: Given::None, ..Guest::new(Boot::Direct, job) }.run();
    let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
    assert!(count.events.is_empty() && count.gates.is_empty(), "{count:?}");
    assert!(count.uncounted[0].reason.starts_with("there is no PMU"), "{count:?}");
    assert_eq!(count.tasks[0].end, TaskEnd::Exit);
}
