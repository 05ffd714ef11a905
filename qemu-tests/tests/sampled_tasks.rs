//! Sampling over tasks on the emulated models: each sample is of the task that ran, and none is lost at a switch.

use pmu_model::Model;
use protocol::record::{SampleResult, Samples, TaskEnd};
use qemu_tests::{Guest, Ran, xtask};
use xtask::cli::Boot;
use xtask::machine::Given;

/// Legacy freeze, streamlined freeze, no global registers, PerfMonV2.
const MODELS: [Model; 4] = [Model::Core2, Model::Skylake, Model::Zen2, Model::Zen4];

/// Tasks of 5, 4 and 6 instructions a turn, with the loop's two, the first two of ring 3; each ends in an INT.
const TASKS: [(&str, &str, u64, u64, u8); 3] = [
    ("a", "nop; imul rax, rax; nop", 5, 4_000, 3),
    ("b", "inc rbx; add rcx, rbx", 4, 3_000, 3),
    ("c", "nop; nop; nop; nop", 6, 2_000, 0),
];

fn item(rest: &str) -> String {
    let mut toml = format!("[[sample]]\n{rest}\n");
    for (name, asm, _, turns, ring) in TASKS {
        toml += &format!(
            "[[sample.task]]\nname = \"{name}\"\nasm = \"{asm}\"\nturns = {turns}\nring = {ring}\n"
        );
    }
    toml
}

fn on(model: Model, toml: &str) -> Ran {
    Guest { pmu: Given::Emulated(model), ..Guest::new(Boot::Direct, toml) }.run()
}

/// Address, task and ring of each sample, which have to lie in the code of the task that they name, and in its ring.
fn places(ran: &Ran, result: &SampleResult) -> Vec<(u64, usize)> {
    let single = ran.report.samples(result.item).flat_map(Samples::iter);
    let single = single.map(|(address, _, _, task)| (address, task >> 2, (task & 3) as u8, 1));
    let counted =
        result.addresses.iter().map(|row| (row.address.0, row.task, row.ring, row.count as usize));
    let all = single.chain(counted).flat_map(|(address, task, ring, count)| {
        let code = result.code[task as usize].function.map(|at| at.0);
        assert!((code[0]..code[1]).contains(&address), "{address:#x} of task {task}: {code:x?}");
        assert_eq!(ring, TASKS[task as usize].4, "ring of task {task} at {address:#x}");
        vec![(address, task as usize); count]
    });
    all.collect()
}

#[test]
fn i5_m9_i8_each_sample_lies_in_the_code_of_the_task_that_it_names() {
    for model in MODELS {
        for (timer, seed) in [("tick-ns = 300000\njitter = 1", "a"), ("tick-ns = 200000", "b")] {
            let toml = ["keep = \"histogram\"", "keep = \"samples\"\nfreeze = \"software\""]
                .map(|keep| item(&format!("events = [\"r00c0:u\"]\nperiod = 97\n{timer}\n{keep}")))
                .concat();
            let ran = on(model, &toml);
            ran.ends_with(0);
            for result in ran.report.sampled() {
                let one = &result.events[0];
                let schedule = result.schedule.as_ref().expect("a scheduler ran");
                assert!(schedule.tasks.iter().all(|task| task.end == TaskEnd::Exit));
                assert!(schedule.switches > 4, "{model:?} {seed}: {schedule:?}");
                let seen = places(&ran, result);
                let of = |task: usize| seen.iter().filter(|place| place.1 == task).count() as u64;
                // The tasks of ring 3, each with its INT; nothing of the scheduler or of the handler.
                let expected = 5 * 4_000 + 1 + 4 * 3_000 + 1;
                assert_eq!(one.witness, Some(expected), "{model:?} {seed}: {one:?}");
                assert_eq!(one.overflows * 97 + one.rest, expected, "{model:?} {seed}: {one:?}");
                assert_eq!(of(0) + of(1), one.overflows, "{model:?} {seed}: {one:?}");
                assert_eq!((of(2), one.dropped), (0, 0), "{model:?} {seed}");
                // In the long run each task has the share of its instructions.
                assert!(of(0).abs_diff(20_000 / 97) < 40, "{model:?} {seed}: {}", of(0));
            }
        }
    }
}

#[test]
fn i8_m15_m8_faults_limits_timers_and_rates_work_under_the_scheduler() {
    for model in [Model::Skylake, Model::Zen2] {
        let bad = "[[sample.task]]\nname = \"bad\"\nasm = \"nop; ud2\"\nring = 3\n\
                   [[sample.task]]\nname = \"endless\"\nasm = \"2: jmp 2b\"\nring = 3\n";
        let user = "events = [\"r00c0:u\"]\nperiod = 97";
        let toml = [
            item(&format!("{user}\ntick-ns = 300000\nlimit-us = 50000")) + bad,
            item("interval-ns = 10000\ntick-ns = 0"),
            item("events = [\"r00c0:u\"]\nfrequency = 5000\ntick-ns = 300000"),
            // Ring 0 as well: what the scheduler's way in and out adds is sampled where a task goes on.
            // Stepping through it takes the emulated PMU long: with shorter ticks nothing else would be done.
            item("events = [\"r00c0\"]\nperiod = 499\ntick-ns = 5000000"),
        ]
        .concat();
        let ran = on(model, &toml);
        ran.ends_with(1);
        let results: Vec<_> = ran.report.sampled().collect();
        let [faults, timer, rate, both] = results[..] else { panic!("{model:?}: {results:?}") };
        let ends = |result: &SampleResult| -> Vec<TaskEnd> {
            let schedule = result.schedule.as_ref().expect("a scheduler ran");
            schedule.tasks.iter().map(|task| task.end).collect()
        };
        use TaskEnd::{Exit, Fault, Limit};
        assert_eq!(ends(faults), [Exit, Exit, Exit, Fault, Limit], "{model:?}");
        let one = &faults.events[0];
        assert_eq!(
            (one.samples, Some(one.overflows * 97 + one.rest)),
            (one.overflows, one.witness)
        );
        let endless = faults.addresses.iter().find(|row| row.task == 4).expect("samples of it");
        assert_eq!(endless.address, faults.code[4].body[0], "{model:?}: {endless:?}");
        let ticks = &timer.events[0];
        assert!(ticks.overflows >= 3 && ticks.samples == ticks.overflows, "{model:?}: {ticks:?}");
        assert_eq!((ends(timer), timer.schedule.as_ref().unwrap().ticks.count), (vec![Exit; 3], 0));
        let one = &rate.events[0];
        assert!(one.period >= 64 && one.overflows > 0, "{model:?}: {one:?}");
        assert_eq!(one.overflows * one.period + one.rest, 32_002, "{model:?}: {one:?}");
        let one = &both.events[0];
        assert!(one.witness.unwrap() > 44_000, "{model:?}: {one:?}");
        assert_eq!(places(&ran, both).len() as u64, one.overflows, "{model:?}: {one:?}");
    }
}

#[test]
fn i5_i8_profiles_of_tasks_have_a_frame_for_each_task_and_its_own_labels() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let toml = item("name = \"s\"\nevents = [\"r00c0:u\"]\nperiod = 97\ntick-ns = 300000");
    std::fs::write(path("job.toml"), toml.replace("inc rbx; add", "inc rbx; sum: add")).unwrap();
    let (job, folded, pprof) = (path("job.toml"), path("folded"), path("pprof"));
    let files = ["--samples-folded", &folded, "--samples-pprof", &pprof];
    let called = xtask(folder.path(), &[&["run", &job, "--pmu", "skylake"][..], &files].concat());
    assert_eq!(called.code, 0, "{called:?}");
    for part in ["b:sum", "ring", "switches", "add rcx, rbx"] {
        assert!(called.out.contains(part), "{part}: {}", called.out);
    }
    let folded = std::fs::read_to_string(folded).unwrap();
    for part in ["s;r00c0:u;a;a;0x", "s;r00c0:u;b;b:sum;0x"] {
        assert!(folded.contains(part), "{part}: {folded}");
    }
    let sum: u64 =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 32_002 / 97, "{folded}");
    // The magic number of gzip.
    assert_eq!(std::fs::read(pprof).unwrap()[..2], [0x1f, 0x8b]);
}
