//! History mode on the emulated models: one cycle an instruction, so the cycle of each branch and access is known.

use pmu_model::Model;
use protocol::record::{HistoryResult, StoppedBy};
use qemu_tests::{Guest, Ran, direct, xtask};
use std::fs;
use xtask::cli::Boot;
use xtask::machine::Given;

/// Legacy freeze, streamlined freeze, no freeze with six counters and with four, PerfMonV2; each with its loads.
const MODELS: [(Model, &str); 6] = [
    (Model::Core2, "r01c0"),
    (Model::Skylake, "mem_inst_retired.all_loads"),
    (Model::ArrowLake, "mem_inst_retired.all_loads"),
    (Model::K10, ""),
    (Model::Zen2, "ls_dispatch.ld_dispatch"),
    (Model::Zen4, "ls_dispatch.ld_dispatch"),
];

/// Jumps are the instructions 2, 6 and 9, loads 4 and 10.
const BODY: &str = "nop; jmp 2f; 2: nop; mov rax, [r14]; nop; jmp 3f; 3: mov [r14], rcx; test rcx, rcx; jnz 4f; \
                    mov rdx, [r14 + 8]; 4: nop; imul rax, rax";
const LENGTH: usize = 12;
const JUMPS: [usize; 3] = [2, 6, 9];
const LOADS: [usize; 2] = [4, 10];

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

fn histories(ran: &Ran) -> Vec<&HistoryResult> {
    ran.ends_with(0).report.histories().collect()
}

/// 1 in each of these cycles, 0 in the others.
fn ones(cycles: &[usize], length: usize) -> Vec<f64> {
    (1..=length).map(|cycle| f64::from(u8::from(cycles.contains(&cycle)))).collect()
}

/// What happened in each cycle of an event, all runs of which have to agree.
fn each<'a>(history: &'a HistoryResult, event: &str) -> &'a [f64] {
    let one = history.series.iter().find(|one| one.event == event).expect(event);
    assert_eq!((&one.min, &one.max), (&one.median, &one.median), "{one:?}");
    let mut sum = 0.0;
    for (each, median) in one.each.iter().zip(&one.median) {
        sum += each;
        assert_eq!(sum, *median, "{one:?}");
    }
    &one.each
}

#[test]
fn m16_n4_branches_and_loads_are_in_the_cycles_of_their_instructions_on_each_model() {
    for (model, loads) in MODELS {
        let more = if loads.is_empty() { String::new() } else { format!(", \"{loads}\"") };
        let ran = on(
            model,
            &format!(
                "[[snippet]]\nasm = \"{BODY}\"\nhistory = {LENGTH}\nruns = 3\nevents = [\"instructions\", \
                 \"branches\"{more}]"
            ),
        );
        let [history] = histories(&ran)[..] else { panic!("{model:?}") };
        assert_eq!(history.uncounted, [], "{model:?}");
        assert_eq!(each(history, "instructions"), [1.0; LENGTH], "{model:?}");
        assert_eq!(each(history, "branches"), ones(&JUMPS, LENGTH), "{model:?}");
        if !loads.is_empty() {
            assert_eq!(each(history, loads), ones(&LOADS, LENGTH), "{model:?}");
        }
        // Behind the switch: three registers and an LFENCE.
        let pass = &history.passes[0];
        assert_eq!((pass.front, pass.end), (4, Some(LENGTH as u64)), "{model:?}");
        let stopped_by = match model {
            // The handler's three pushes, and four instructions for each of its writes up to the clock's, the last.
            Model::K10 | Model::Zen2 => {
                let counters = history.series.len() as u64 + 1;
                assert_eq!(pass.skid, [3 + 4 * counters; 2], "{model:?}");
                StoppedBy::Handler
            }
            _ => {
                assert_eq!(pass.skid, [0; 2], "{model:?}");
                StoppedBy::Freeze
            }
        };
        assert_eq!((history.stopped_by, history.emulated), (stopped_by, true), "{model:?}");
        assert!(history.remarks.is_empty() && history.restored.is_empty(), "{model:?}");
    }
}

#[test]
fn m16_what_stands_in_front_is_subtracted_whatever_it_is() {
    for model in [Model::Skylake, Model::Zen2] {
        let options = [
            ("", 4),
            ("late-init = \"nop; mov rax, [r14]\"", 6),
            ("no-memory = true", 4),
            // An LFENCE and 256 NOPs.
            ("drain-frontend = true", 261),
            ("alignment-offset = 5", 4),
            ("machine = { page-size = \"2m\" }", 4),
        ];
        let snippets: String = options
            .iter()
            .map(|(option, _)| format!("[[snippet]]\nasm = \"{BODY}\"\n{option}\n"))
            .collect();
        let defaults = "[defaults]\nhistory = 12\nruns = 2\nevents = [\"branches\"]\n";
        let ran = on(model, &format!("{defaults}{snippets}"));
        let all = histories(&ran);
        assert_eq!(all.len(), options.len());
        for (history, (option, front)) in all.into_iter().zip(options) {
            assert_eq!(each(history, "branches"), ones(&JUMPS, LENGTH), "{model:?} {option}");
            assert_eq!(history.passes[0].front, front, "{model:?} {option}");
        }
    }
}

#[test]
fn m16_copies_loops_steps_and_other_clocks() {
    for model in [Model::Skylake, Model::Zen2, Model::Zen4] {
        let ran = on(
            model,
            r#"
            [defaults]
            runs = 2
            events = ["branches", "instructions"]
            [[snippet]]
            name = "copies"
            asm = "nop; jmp 2f; 2: nop"
            unroll = 20
            history = 60
            [[snippet]]
            name = "in steps"
            asm = "nop; jmp 2f; 2: nop"
            unroll = 20
            history = { cycles = 60, step = 6 }
            [[snippet]]
            name = "loop"
            asm = "nop; imul rax, rax"
            loop = 10
            history = { cycles = 24, event = "instructions" }
            [[snippet]]
            name = "by branches"
            late-init = "jmp 2f; 2:"
            asm = "nop; jmp 2f; 2: nop; nop; jmp 3f; 3: nop; nop; nop; jmp 4f; 4:"
            history = { cycles = 3, event = "branches" }
            "#,
        );
        let [copies, steps, loops, branches] = histories(&ran)[..] else { panic!("{model:?}") };
        assert_eq!(each(copies, "branches"), [0.0, 1.0, 0.0].repeat(20), "{model:?}");
        assert_eq!((copies.per, copies.passes[0].end), (20, Some(60)));
        assert_eq!(each(steps, "branches"), [2.0; 10]);
        // NOP, IMUL, DEC, JNZ.
        assert_eq!(each(loops, "branches"), [0.0, 0.0, 0.0, 1.0].repeat(6), "{model:?}");
        assert_eq!((loops.per, loops.passes[0].end), (10, None));
        assert_eq!(each(branches, "instructions"), [2.0, 3.0, 4.0], "{model:?}");
        assert_eq!(branches.passes[0].front, 1);
    }
}

#[test]
fn m16_more_events_than_counters_take_passes_with_the_same_cycles() {
    let events = ["branches", "r00c0", "branches", "r00c0", "branches", "r00c0", "branches"];
    let list = events.map(|event| format!("\"{event}\"")).join(", ");
    let ran = on(
        Model::Zen2,
        &format!("[[snippet]]\nasm = \"{BODY}\"\nhistory = 12\nruns = 2\nevents = [{list}]"),
    );
    let [history] = histories(&ran)[..] else { panic!() };
    assert_eq!((history.passes.len(), history.series.len()), (2, 7));
    for one in &history.series {
        let expected =
            if one.event == "branches" { ones(&JUMPS, LENGTH) } else { vec![1.0; LENGTH] };
        assert_eq!(one.each, expected, "{one:?}");
    }
    assert!(history.passes.iter().all(|pass| pass.front == 4 && pass.end == Some(12)));
}

#[test]
fn m16_faults_and_endless_loops_cost_only_their_own_item() {
    let ran = on(
        Model::Skylake,
        &format!(
            r#"
            [defaults]
            history = 12
            runs = 2
            events = ["branches"]
            [[snippet]]
            name = "fault"
            asm = "nop; ud2"
            [[snippet]]
            name = "endless"
            asm = "2: jmp 2b"
            machine = {{ time-limit = 20 }}
            [[snippet]]
            name = "counted without a history"
            asm = "nop; nop"
            history = false
            events = ["instructions"]
            unroll = 10
            [[snippet]]
            name = "last"
            asm = "{BODY}"
            "#
        ),
    );
    ran.ends_with(1);
    let errors = ran.errors();
    let texts: Vec<&str> = errors.iter().map(|error| error.text.as_str()).collect();
    let [fault, endless] = texts[..] else { panic!("{texts:?}") };
    assert!(fault.contains("#UD") && endless.contains("20 ms"), "{texts:?}");
    assert_eq!(ran.results()[0].metrics[1].value.median, 2.0);
    let last = ran.report.histories().next().unwrap();
    assert_eq!(each(last, "branches"), ones(&JUMPS, LENGTH));
}

#[test]
fn m16_two_boots_give_the_same_history() {
    let toml = format!(
        "[[snippet]]\nasm = \"{BODY}\"\nhistory = 12\nruns = 20\nevents = [\"branches\", \"loads\"]"
    );
    let seen = [(); 2].map(|()| {
        let ran = on(Model::Skylake, &toml);
        HistoryResult { tsc: [0; 2], ..histories(&ran)[0].clone() }
    });
    assert_eq!(seen[0], seen[1]);
    assert_eq!(each(&seen[0], "loads"), ones(&LOADS, LENGTH));
}

#[test]
fn m16_without_a_pmu_or_a_clock_the_reason_is_told() {
    let toml = "[[snippet]]\nasm = \"nop; nop; nop\"\nhistory = 3\nruns = 2\n";
    let ran = direct(toml);
    ran.ends_with(1);
    assert!(ran.errors()[0].text.contains("there is no PMU"), "{:?}", ran.errors());
    let clocks = ["branches", "no_such_event"]
        .map(|event| toml.replace("= 3", &format!("= {{ cycles = 3, event = \"{event}\" }}")));
    let ran = on(Model::Zen2, &clocks.concat());
    ran.ends_with(1);
    let texts: Vec<&str> = ran.errors().iter().map(|error| error.text.as_str()).collect();
    assert!(texts[0].contains("the clock `branches` counts nothing"), "{texts:?}");
    assert!(texts[1].contains("`no_such_event` cannot be counted"), "{texts:?}");
}

#[test]
fn n4_the_command_line_plots_a_history_and_refuses_bad_options() {
    let folder = tempfile::tempdir().unwrap();
    let plots = folder.path().join("some/plots");
    let path = plots.to_str().unwrap();
    let snippet = ["run", "--pmu", "zen4", "--asm", BODY, "--runs", "2", "--event", "branches"];
    let options = ["--history", "12", "--history-step", "1", "--plots", path];
    let called = xtask(folder.path(), &[&snippet[..], &options].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    assert!(called.out.contains("branches (emulated)      1 ·█···█··█···|"), "{}", called.out);
    let svg = fs::read_to_string(plots.join("history-0.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("branches"), "{svg}");
    for (options, part) in [
        (&["--history", "0"][..], "history.cycles is 0; it must be 1 to 1000000"),
        (&["--history", "9", "--history-step", "10"], "history.step is 10; it must be 1 to 9"),
        (&["--history", "9", "--history-event", "a,b"], "the clock `a,b` names 2 events"),
        (&["--history-step", "3"], "--history-step changes a history; give --history too"),
        (&["--end-to-end"], "--end-to-end changes a history"),
        (&["--history", "9", "--exact"], "give one of the two"),
        (&["--history", "9", "--machine", "ring=3"], "it measures ring 0 only"),
        (&["--history", "9", "--plots", "/proc/version/x"], "cannot create /proc/version/x"),
    ] {
        xtask(folder.path(), &[&snippet[..], options].concat()).fails_with(2, &[part]);
    }
}

#[test]
fn m16_the_example_runs() {
    let ran = on(Model::Skylake, include_str!("../../xtask/jobs/history.toml"));
    let [first, chain, branches] = histories(&ran)[..] else { panic!() };
    assert_eq!(each(first, "branches")[..9], ones(&[2, 8], 9));
    assert_eq!(each(chain, "instructions"), [3.0; 10]);
    assert_eq!(each(branches, "instructions"), [2.0, 3.0, 4.0]);
}
