//! The job kind `count` on the emulated models. Every turn of a task's loop is its body, a DEC and a JNZ.

use pmu_model::Model;
use protocol::record::{CountResult, CountValue, TaskEnd};
use qemu_tests::{Guest, Ran, direct};
use xtask::cli::Boot;
use xtask::machine::Given;

/// With and without a global control, with few counters and with many, Intel's and AMD's.
const MODELS: [Model; 4] = [Model::Core2, Model::Skylake, Model::Zen2, Model::Zen4];

fn on(model: Model, toml: &str) -> Ran {
    let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run();
    ran.ends_with(0);
    ran
}

fn counted(ran: &Ran) -> Vec<&CountResult> {
    ran.report.counts().collect()
}

/// Raw counts of an event: the sum, the kernel, the tasks.
fn raw(count: &CountResult, event: usize) -> (u64, u64, Vec<u64>) {
    let one = &count.events[event];
    (one.sum.raw, one.kernel.raw, one.tasks.iter().map(|task| task.raw).collect())
}

/// Turns of a task in ring 3, NOPs of a turn and of its init.
const KNOWN: [(u64, u64, u64); 3] = [(20_001, 3, 2), (7_000, 11, 0), (1, 30, 7)];

fn known(index: usize, rest: &str) -> String {
    let (turns, body, init) = KNOWN[index];
    let nops = |count: u64| "nop; ".repeat(count as usize);
    let code = format!("asm = \"{}\"\ninit = \"{}\"", nops(body), nops(init));
    format!("[[count.task]]\nname = \"t{index}\"\n{code}\nturns = {turns}\nring = 3\n{rest}\n")
}

/// With the loop's two and the INT at the end, which counts in the ring that it leaves on the emulated models.
fn instructions(index: usize) -> u64 {
    let (turns, body, init) = KNOWN[index];
    init + turns * (body + 2) + 1
}

/// Nothing is lost and nothing counts twice, whenever the ticks come: each task's count in ring 3 is the computed one,
/// a child's is in its parent's as well, and the parts add up to the machine in both events.
#[test]
fn i8_t9_c3_m14_tasks_of_known_length_are_exact_under_random_ticks_and_add_up_to_the_machine() {
    let mut job = String::new();
    for ticks in ["tick-ns = 0", "tick-ns = 40000\njitter = 1", "tick-ns = 60000\njitter = 77"] {
        let noise =
            "[[count.task]]\nname = \"noise\"\nasm = \"imul rax, rcx; int 0x83\"\nturns = 30\n";
        let bad =
            "[[count.task]]\nname = \"bad\"\nasm = \"nop; nop; ud2\"\nring = 3\nparent = \"t0\"\n";
        job += &format!("[[count]]\nevents = [\"r00c0:u\", \"r00c0\"]\n{ticks}\n");
        job += &[
            &known(0, ""),
            &known(1, "parent = \"t0\""),
            &known(2, "parent = \"t1\""),
            noise,
            bad,
        ]
        .concat();
    }
    for model in MODELS {
        let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, &job) }.run();
        ran.ends_with(1);
        let [t0, t1, t2] = [0, 1, 2].map(instructions);
        let counts = counted(&ran);
        assert_eq!(counts.len(), 3, "{model:?}: {:?}", ran.errors());
        for count in counts {
            // Two NOPs of the bad one; UD2 does not retire.
            let expected = vec![t0 + t1 + t2 + 2, t1 + t2, t2, 0, 2];
            assert_eq!(raw(count, 0), (t0 + t1 + t2 + 2, 0, expected), "{model:?}: {count:?}");
            let (sum, kernel, all) = raw(count, 1);
            // The noise is in ring 0, and children are in their parents.
            assert_eq!(sum, kernel + all[0] + all[3], "{model:?}: {count:?}");
            assert!(kernel > 0 && all[3] > 120 && all[0] > t0 + t1 + t2 + 2, "{model:?}");
            let ends: Vec<TaskEnd> = count.tasks.iter().map(|task| task.end).collect();
            assert_eq!(ends[..4], [TaskEnd::Exit; 4], "{model:?}");
            let fault = count.tasks[4].fault.as_ref().expect("UD2");
            assert_eq!((ends[4], fault.mnemonic.as_str()), (TaskEnd::Fault, "#UD"), "{model:?}");
            assert!(count.ticks == 0 || count.ticks > 3, "{model:?}: {}", count.ticks);
            assert_eq!(count.tasks[3].turns, 30);
            assert!(count.emulated && count.uncounted.is_empty() && count.groups == 1);
        }
    }
}

/// What the machine itself counted beside: ticks and overflows as interrupts, the tasks' ends, their fault, the switches.
/// With ticks of 100 us core2 did not get on with one layout of the kernel, and did with another: time also passes in exits
/// to the emulated PMU.
#[test]
fn i10_p1_a_snapshot_has_interrupts_exceptions_switches_and_clocks_of_the_same_time() {
    let job = format!(
        "[[count]]\nevents = [{{ event = \"r00c0:u\", every = 20000 }}]\ntick-ns = 250000\n{}{}\
         [[count.task]]\nname = \"bad\"\nasm = \"ud2\"\nring = 3\n",
        known(0, ""),
        known(1, "")
    );
    for model in MODELS {
        let ran = Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, &job) }.run();
        ran.ends_with(1);
        let [count] = counted(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let seen = count.snapshot.as_ref().expect("a snapshot");
        let taken = |vector| {
            let found = seen.interrupts.iter().find(|taken| taken.vector == vector);
            found.map_or(0, |taken| taken.count)
        };
        // #UD; the kernel's start; an end of each good task.
        assert_eq!([taken(6), taken(0x84), taken(0x82)], [1, 1, 2], "{model:?}: {seen:?}");
        // A tick that was raised before the last task ended may be outside.
        assert!(taken(0xd0).abs_diff(count.ticks) <= 1 && count.ticks > 0, "{model:?}: {count:?}");
        let overflows = count.events[0].overflows.unwrap();
        assert_eq!(overflows, (instructions(0) + instructions(1)) / 20_000, "{model:?}");
        let pmis: u64 = seen
            .interrupts
            .iter()
            .filter(|taken| taken.vector > 0xd0)
            .map(|taken| taken.count)
            .sum();
        assert!(pmis >= overflows, "{model:?}: {pmis} of {overflows}: {seen:?}");
        assert_eq!((seen.switches, seen.retries), (count.switches, 0), "{model:?}: {count:?}");
        let (before, after) = (count.tsc, seen.tsc);
        assert!(
            after > instructions(0) + instructions(1) && after < before[1] - before[0],
            "{seen:?}"
        );
        // Neither QEMU's translator nor the emulated PMU has them.
        assert_eq!((seen.aperf, seen.mperf), (None, None), "{model:?}");
    }
}

/// A task that does not end is ended, with its counts; the other is whole.
#[test]
fn m15_a_task_that_takes_too_long_ends_at_its_limit_with_its_counts() {
    let ran = Guest {
        pmu: Given::Emulated(Model::Skylake),
        ..Guest::new(
            Boot::Direct,
            &format!(
                "[[count]]\nevents = [\"r00c0:u\"]\ntick-ns = 0\nlimit-us = 3000\n{}\
                 [[count.task]]\nname = \"endless\"\nasm = \"2: jmp 2b\"\nring = 3\n",
                known(1, "")
            ),
        )
    }
    .run();
    ran.ends_with(1);
    let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
    let ends: Vec<TaskEnd> = count.tasks.iter().map(|task| task.end).collect();
    assert_eq!(ends, [TaskEnd::Exit, TaskEnd::Limit], "{count:?}");
    let (sum, kernel, tasks) = raw(count, 0);
    assert_eq!((kernel, tasks[0], sum), (0, instructions(1), tasks[0] + tasks[1]));
    assert!(tasks[1] > 1000, "{tasks:?}");
}

/// Forty events on the counters that there are, in turns at each tick, against one of them alone; and the series.
///
/// Each event is counted in some of the time slices, and the task runs at one instruction a tick of the TSC but for the
/// exits to the emulated PMU, in which time passes and nothing is counted: hence a bound of 10 percent; 3.8 is
/// the most that was seen.
#[test]
fn i1_forty_events_in_turns_are_scaled_within_a_bound_of_each_alone() {
    let tasks = "[[count.task]]\nname = \"t\"\nasm = \"nop\"\nring = 3\nturns = 20000000\n";
    let many = vec!["r00c0:u"; 40];
    let job = format!(
        "[[count]]\nevents = {many:?}\ntick-ns = 2000000\n{tasks}
         [[count]]\nevents = [\"r00c0:u\"]\ntick-ns = 2000000\ninterval-ns = 10000000\n{tasks}"
    );
    for model in MODELS {
        let ran = on(model, &job);
        let [shared, alone] = counted(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let exact = alone.events[0].tasks[0].raw;
        assert_eq!(
            (exact, alone.events[0].tasks[0].scaled),
            (60_000_001, Some(exact)),
            "{model:?}"
        );
        assert!(shared.groups > 4 && shared.ticks > 25, "{model:?}: {} ticks", shared.ticks);
        let mut worst = 0;
        for one in &shared.events {
            let CountValue { scaled, counted, enabled, .. } = one.tasks[0];
            assert!(counted * 3 < enabled, "{model:?}");
            worst = worst.max(scaled.unwrap().abs_diff(exact));
        }
        eprintln!(
            "{model:?}: {worst} of {exact}, {} groups, {} ticks",
            shared.groups, shared.ticks
        );
        assert!(worst * 10 < exact, "{model:?}: {worst} of {exact}");
        let series: u64 = alone.intervals.iter().map(|row| row.raw[0]).sum();
        assert_eq!(series, exact, "{model:?}");
        let of_task: u64 = alone.intervals.iter().map(|row| row.tasks[0][0]).sum();
        assert_eq!(of_task, alone.events[0].tasks[0].raw, "{model:?}");
        assert!(alone.intervals.len() as u64 >= alone.ticks / 5, "{model:?}");
    }
}

#[test]
fn m3_m6_one_event_starts_another_and_counting_ends_after_so_many_passes() {
    for model in MODELS {
        let ran = on(
            model,
            r#"
            [[count]]
            name = "trigger"
            events = [{ event = "r00c0:u", every = 100000, starts = ["0xc0.0x00:u"] }, "0xc0.0x00:u"]
            tick-ns = 0
            [[count.task]]
            name = "t"
            asm = "nop"
            ring = 3
            turns = 300000
            [[count]]
            name = "passes"
            events = [{ event = "r00c0", every = 50000 }]
            at-overflow = "next"
            passes = 4
            tick-ns = 0
            [[count.task]]
            name = "t"
            asm = "nop"
            turns = 300000
            "#,
        );
        let [trigger, passes] = counted(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let (first, second) = (raw(trigger, 0).0, raw(trigger, 1).0);
        assert!(first > 900_000, "{model:?}");
        assert_eq!(trigger.events[0].overflows, Some(first / 100_000), "{model:?}");
        // Nothing of the handler is in ring 3.
        let missing = first - second;
        let CountValue { counted, enabled, .. } = trigger.events[1].sum;
        assert_eq!(counted, enabled, "{model:?}: it is not scaled to the time before its start");
        assert!((100_000..100_010).contains(&missing), "{model:?}: {missing}");
        assert_eq!((passes.passes, passes.events[0].overflows), (4, Some(4)), "{model:?}");
        let counted = raw(passes, 0).0;
        assert!((200_000..202_000).contains(&counted), "{model:?}: {counted}");
    }
}

#[test]
fn p5_without_a_pmu_every_event_has_its_reason_and_a_bad_task_is_named() {
    let ran = direct(
        r#"
        [[count]]
        events = ["cycles"]
        [[count.task]]
        name = "t"
        asm = "nop"
        "#,
    );
    ran.ends_with(1);
    let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
    assert_eq!(count.uncounted[0].event, "cycles");
    assert!(count.uncounted[0].reason.contains("there is no PMU"), "{count:?}");
    let ran = Guest {
        pmu: Given::Emulated(Model::Skylake),
        ..Guest::new(
            Boot::Direct,
            r#"
            [[count]]
            name = "fault"
            events = ["cycles"]
            [[count.task]]
            name = "t"
            asm = "ud2"
            [[count]]
            name = "after it"
            events = ["cycles"]
            [[count.task]]
            name = "t"
            asm = "nop"
            "#,
        )
    }
    .run();
    ran.ends_with(1);
    let [fault, after] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
    assert_eq!(fault.tasks[0].fault.as_ref().unwrap().mnemonic, "#UD");
    assert_eq!((after.name.as_str(), after.tasks[0].end), ("after it", TaskEnd::Exit));
    assert!(after.events[0].sum.raw > 0);
}

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

/// Under the emulated PMU each write to a counter's register is an exit, which takes time of the guest's clock: with ticks
/// of 1 us the next is due before the kernel has dealt with one. They are lengthened until the tasks get on, and that is said.
#[test]
fn t9_ticks_that_leave_the_tasks_no_time_are_lengthened_and_counts_stay_exact() {
    let tasks = [known(0, ""), known(1, "")].concat();
    let job = format!("[[count]]\nevents = [\"r00c0:u\", \"r00c0\"]\ntick-ns = 1000\n{tasks}");
    for model in MODELS {
        let ran = on(model, &job);
        let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        let each = [0, 1].map(instructions);
        assert_eq!(raw(count, 0), (each[0] + each[1], 0, each.to_vec()), "{model:?}: {count:?}");
        // The clock has a tick for each instruction, 10^9 a second, within the error of measuring that.
        let lengthened = count.lengthened.expect("too short");
        assert!(lengthened > 1_900, "{model:?}: {lengthened}");
    }
}

/// A parent reads what its descendants have come to while they run; they outlive it, and nothing is lost or counted twice.
#[test]
fn i8_c3_a_parent_reads_its_childrens_sum_while_they_run_and_they_outlive_it() {
    // Yields, so that others run; then the descendants' count goes where the record shows it.
    let reads = "int 0x83; xor eax, eax; int 0x85; mov [r14], rdx";
    let task = |name: &str, asm: &str, rest: &str| {
        format!("[[count.task]]\nname = \"{name}\"\nring = 3\nasm = \"{asm}\"\n{rest}\n")
    };
    let job = "[[count]]\nevents = [\"instructions:u\"]\ntick-ns = 0\n".to_string()
        + &task("parent", reads, "turns = 4")
        + &task("child", "nop; nop; int 0x83", "turns = 30\nparent = \"parent\"\noutlives = true")
        + &task("grandchild", "nop; int 0x83", "turns = 50\nparent = \"child\"")
        + &task("other", "nop; int 0x83", "turns = 9");
    for model in [Model::Skylake, Model::Core2, Model::SapphireRapids, Model::Zen2, Model::Zen4] {
        let ran = on(model, &job);
        let counts = counted(ran.ends_with(0));
        let [count] = counts[..] else { panic!("{counts:?}") };
        // Bodies with the loop's two, and the INT at the end.
        let [parent, child, grandchild, other] = [4 * 6 + 1, 30 * 5 + 1, 50 * 4 + 1, 9 * 4 + 1];
        let (all, _, tasks) = raw(count, 0);
        // The grandchild's are its parent's when it exits, as that waits for it.
        assert_eq!(tasks, [parent, child + grandchild, grandchild, other], "{model:?}");
        assert_eq!(all, parent + child + grandchild + other, "{model:?}");
        let reading: Vec<_> =
            count.readings.iter().map(|one| (one.task, one.own.raw, one.children.raw)).collect();
        // The child's first turn is over when the parent reads first; from then on each reading has a turn of the child and
        // one of the grandchild more, which begins after the parent's second.
        let own = [3, 9, 15, 21];
        let found: Vec<u64> = reading.iter().map(|&(_, _, children)| children).collect();
        assert_eq!(reading.len(), 4, "{model:?}: {reading:?}");
        for (turn, &(task, itself, _)) in reading.iter().enumerate() {
            assert_eq!((task, itself), (0, own[turn]), "{model:?}");
        }
        assert_eq!(found, [3, 3 + 5 + 2, 3 + 10 + 6, 3 + 15 + 10], "{model:?}");
        assert_eq!(count.tasks[0].value.0, found[3], "{model:?}: as it was told");
        assert_eq!(count.tasks[1].outlived, Some(0), "{model:?}");
        assert_eq!(
            (count.tasks[2].added_to, count.tasks[2].outlived),
            (Some(1), None),
            "{model:?}"
        );
    }
}
