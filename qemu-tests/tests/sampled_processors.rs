//! Tasks that are sampled on several processors: each has counters, a control block and a log of its own, and an account that
//! holds. One timer of a processor serves the scheduler's ticks and samples.

use pmu_model::Model;
use protocol::record::{SampleResult, SampledCount, SampledProcessor, Samples, TaskEnd};
use qemu_tests::{Guest, Ran, xtask};
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Legacy freeze, streamlined freeze, architectural records of branches; no global registers, PerfMonV2.
const MODELS: [Model; 5] =
    [Model::Core2, Model::Skylake, Model::SapphireRapids, Model::Zen2, Model::Zen4];

/// Name, processor, NOPs of a turn, turns, ring. With the loop's two instructions, and the INT at the end.
const TASKS: [(&str, u16, u64, u64, u8); 4] =
    [("a", 1, 3, 3_000, 3), ("b", 0, 2, 2_500, 3), ("c", 2, 4, 2_000, 3), ("d", 1, 6, 1_000, 0)];

/// Instructions in ring 3 of the tasks of a processor.
fn instructions(cpu: u16) -> u64 {
    let own = TASKS.iter().filter(|task| task.1 == cpu && task.4 == 3);
    own.map(|(_, _, nops, turns, _)| (nops + 2) * turns + 1).sum()
}

fn item(rest: &str) -> String {
    let mut toml = format!("[[sample]]\n{rest}\n");
    for (name, cpu, nops, turns, ring) in TASKS {
        let asm = "nop; ".repeat(nops as usize);
        toml += &format!(
            "[[sample.task]]\nname = \"{name}\"\nasm = \"{asm}\"\nturns = {turns}\nring = {ring}\ncpu = {cpu}\n"
        );
    }
    toml
}

fn run(pmu: Given, cpus: u32, toml: &str) -> Ran {
    // Each switch of an emulated PMU's counters takes the host a while.
    let timeout = Duration::from_secs(240);
    Guest { pmu, cpus: Cpus::Many(cpus), timeout, ..Guest::new(Boot::Direct, toml) }.run()
}

fn sampled(ran: &Ran) -> Vec<&SampleResult> {
    ran.report.sampled().collect()
}

/// `(overflows + throttled) * period + rest`.
fn seen(one: &SampledCount) -> u64 {
    (one.overflows + one.throttled) * one.period + one.rest
}

/// Of each sample the processor and the task, which have to belong together, and whose code has to be where it lies.
fn places(ran: &Ran, result: &SampleResult) -> Vec<(u16, usize)> {
    let mut places = Vec::new();
    let mut one = |cpu: u16, task: u32, ring: u8, address: u64, count: u64| {
        let (task, code) = (task as usize, result.code[task as usize].function.map(|at| at.0));
        assert!((code[0]..code[1]).contains(&address), "{address:#x} of task {task}: {code:x?}");
        let schedule = result.schedule.as_ref().expect("a scheduler ran");
        assert_eq!(cpu, schedule.tasks[task].cpu as u16, "task {task}");
        assert_eq!(ring, TASKS[task].4, "ring of task {task} at {address:#x}");
        places.extend(std::iter::repeat_n((cpu, task), count as usize));
    };
    for row in &result.addresses {
        one(row.cpu, row.task, row.ring, row.address.0, row.count);
    }
    for chunk in ran.report.samples(result.item) {
        for (address, _, _, task) in Samples::iter(chunk) {
            one(chunk.cpu, task >> 2, (task & 3) as u8, address, 1);
        }
    }
    places
}

fn of(places: &[(u16, usize)], cpu: u16) -> u64 {
    places.iter().filter(|place| place.0 == cpu).count() as u64
}

/// Exact, for each processor and each event: samples + dropped = overflows, and (overflows + throttled) * period + rest is what
/// the tasks of the processor retired. The sums are the item's.
#[test]
fn i5_m11_m13_tasks_of_every_processor_are_sampled_with_an_account_for_each() {
    let common = "events = [{ event = \"r00c0:u\", period = 97 }, { event = \"r00c4:u\", period = 71 }]\ntick-ns = 300000";
    let toml =
        ["keep = \"histogram\"", "keep = \"samples\"\ncapacity = 160\nfreeze = \"software\""]
            .map(|keep| item(&format!("{common}\n{keep}")))
            .concat();
    for model in MODELS {
        let ran = run(Given::Emulated(model), 3, &toml);
        ran.ends_with(0);
        let [histogram, log] = sampled(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        for result in [histogram, log] {
            let cpus: Vec<u16> = result.processors.iter().map(|one| one.cpu).collect();
            assert_eq!(cpus, [0, 1, 2], "{model:?}");
            let schedule = result.schedule.as_ref().expect("a scheduler ran");
            assert!(schedule.tasks.iter().all(|task| task.end == TaskEnd::Exit), "{model:?}");
            for part in &result.processors {
                let [retired, branches] = &part.events[..] else { panic!("{part:?}") };
                let expected = instructions(part.cpu);
                assert_eq!(seen(retired), expected, "{model:?}: {part:?}");
                assert_eq!(retired.witness, Some(expected), "{model:?}: {part:?}");
                // A turn has one branch.
                let own = TASKS.iter().filter(|task| task.1 == part.cpu && task.4 == 3);
                let turns: u64 = own.map(|task| task.3).sum();
                // The INT is a branch on Intel's, and a far one that AMD's event does not leave out either.
                let ends = seen(branches) - turns;
                assert!(ends <= 1, "{model:?}: {branches:?} of {turns} turns");
                for one in [retired, branches] {
                    assert_eq!(one.samples + one.dropped, one.overflows, "{model:?}: {part:?}");
                }
            }
            for (event, all) in result.events.iter().enumerate() {
                let sum = |of: fn(&SampledCount) -> u64| {
                    result.processors.iter().map(|part| of(&part.events[event])).sum::<u64>()
                };
                assert_eq!(all.overflows, sum(|one| one.overflows), "{model:?}");
                assert_eq!(
                    [all.samples, all.dropped],
                    [sum(|one| one.samples), sum(|one| one.dropped)]
                );
                assert_eq!(seen(all), sum(seen), "{model:?}");
            }
            let retired: u64 = [0, 1, 2].map(instructions).iter().sum();
            assert_eq!(seen(&result.events[0]), retired, "{model:?}");
        }
        // Every overflow is in the histogram, where its processor's task is.
        let found = places(&ran, histogram);
        for part in &histogram.processors {
            let samples: u64 = part.events.iter().map(|one| one.samples).sum();
            assert_eq!((of(&found, part.cpu), part.elsewhere), (samples, 0), "{model:?}");
            assert!(samples > 90, "{model:?}: {part:?}");
        }
        // A log holds 160 samples, each of one interrupt or of two events at once; processor 1 has more, and drops them.
        let found = places(&ran, log);
        for part in &log.processors {
            assert_eq!(of(&found, part.cpu), part.logged, "{model:?}");
            assert_eq!(part.logged + part.dropped, part.interrupts, "{model:?}: {part:?}");
        }
        let [zero, one, two] = &log.processors[..] else { panic!() };
        assert_eq!((one.logged, one.dropped > 0), (160, true), "{model:?}: {one:?}");
        assert_eq!([zero.dropped, two.dropped], [0, 0], "{model:?}");
        assert_eq!(log.dropped, one.dropped, "{model:?}");
    }
}

/// The scheduler's ticks and the samples by time come from one timer of each processor. Neither takes the other's.
#[test]
fn m8_m13_a_timer_samples_beside_the_schedulers_ticks_on_each_processor() {
    let endless = "[[sample.task]]\nname = \"endless\"\nasm = \"2: jmp 2b\"\nring = 3\ncpu = 1\n";
    // A counter and the timer; then the timer alone, which leaves a task its limit.
    let toml = item("events = [\"r00c0:u\"]\nperiod = 97\ninterval-ns = 150000\ntick-ns = 400000")
        + &item("interval-ns = 100000\ntick-ns = 0\nlimit-us = 20000")
        + endless;
    for model in MODELS {
        let ran = run(Given::Emulated(model), 3, &toml);
        ran.ends_with(1);
        let [both, alone] = sampled(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let schedule = both.schedule.as_ref().expect("a scheduler ran");
        assert!(schedule.ticks.count > 0 && schedule.switches > 4, "{model:?}: {schedule:?}");
        let found = places(&ran, both);
        for part in &both.processors {
            let [retired, timer] = &part.events[..] else { panic!("{part:?}") };
            assert_eq!(seen(retired), instructions(part.cpu), "{model:?}: {part:?}");
            assert_eq!(retired.witness, Some(instructions(part.cpu)), "{model:?}: {part:?}");
            assert!(timer.overflows > 0 && timer.samples == timer.overflows, "{model:?}: {part:?}");
            assert_eq!(of(&found, part.cpu), retired.samples + timer.samples, "{model:?}");
        }
        let timer = both.timer.as_ref().expect("a timer sampled");
        // The interval is one of the TSC, to the nanosecond or to a tick of it.
        assert!(timer.set_ns.abs_diff(150_000) <= 1, "{model:?}: {timer:?}");
        let ends: Vec<_> =
            alone.schedule.as_ref().unwrap().tasks.iter().map(|one| one.end).collect();
        use TaskEnd::{Exit, Limit};
        assert_eq!(ends, [Exit, Exit, Exit, Exit, Limit], "{model:?}");
        assert_eq!(alone.schedule.as_ref().unwrap().ticks.count, 0, "{model:?}");
        let of = |task| alone.addresses.iter().filter(move |row| row.task == task);
        // 20 ms and a sample every 100 us, unless handlers take longer than that.
        let count: u64 = of(4).map(|row| row.count).sum();
        assert!(count >= 8, "{model:?}: {count} samples of the endless task, {alone:?}");
        assert!(of(4).all(|row| row.cpu == 1), "{model:?}");
    }
}

/// PEBS has a buffer for each processor, IBS a unit: no record is lost, or another's.
#[test]
fn s1_m13_precise_samples_are_taken_on_each_processor() {
    let amd = item("precise = true\nevents = [\"r00c1\"]\nperiod = 272\ntick-ns = 0");
    for (model, event) in [
        (Model::Core2, "inst_retired.any_p"),
        (Model::Skylake, "inst_retired.prec_dist"),
        (Model::SapphireRapids, "instructions"),
        (Model::CougarCove, "instructions"),
    ] {
        let toml =
            format!("precise = true\nevents = [\"{event}:u\"]\nperiod = 97\ntick-ns = 300000");
        let ran = run(Given::Emulated(model), 3, &item(&toml));
        ran.ends_with(0);
        let [result] = sampled(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let found = places(&ran, result);
        assert_eq!(result.processors.len(), 3, "{model:?}");
        for part in &result.processors {
            let one = &part.events[0];
            assert_eq!(seen(one), instructions(part.cpu), "{model:?}: {part:?}");
            assert_eq!((one.dropped, one.lost), (0, 0), "{model:?}: {part:?}");
            assert_eq!(of(&found, part.cpu), one.samples, "{model:?}: {part:?}");
        }
    }
    for model in [Model::Zen2, Model::Zen4] {
        let ran = run(Given::Emulated(model), 3, &amd);
        ran.ends_with(0);
        let [result] = sampled(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        for part in &result.processors {
            let one = &part.events[0];
            assert_eq!((one.samples, one.lost), (one.overflows, 0), "{model:?}: {part:?}");
            // Of every ring: at least the tasks' own.
            assert!(seen(one) >= instructions(part.cpu), "{model:?}: {part:?}");
            let rows = result.addresses.iter().filter(|row| row.cpu == part.cpu);
            assert_eq!(rows.map(|row| row.count).sum::<u64>(), one.samples, "{model:?}");
        }
    }
}

/// Without a PMU the processors run at the same time, each with its timer and its log.
#[test]
fn m8_m13_processors_that_run_at_the_same_time_are_sampled_by_their_timers() {
    let spin = |cpu| {
        format!(
            "[[sample.task]]\nname = \"t{cpu}\"\nasm = \"nop\"\nturns = 20000000\nring = 3\ncpu = {cpu}\n"
        )
    };
    let tasks: String = (0..4).map(spin).collect();
    let toml =
        format!("[[sample]]\ninterval-ns = 50000\nkeep = \"samples\"\ntick-ns = 200000\n{tasks}");
    let ran = run(Given::None, 4, &toml);
    ran.ends_with(0);
    let [result] = sampled(&ran)[..] else { panic!("{:?}", ran.errors()) };
    assert_eq!(result.processors.len(), 4);
    for part in &result.processors {
        let SampledProcessor { cpu, events, logged, dropped, .. } = part;
        let [timer] = &events[..] else { panic!("{part:?}") };
        assert!(timer.overflows > 0 && timer.overflows == logged + dropped, "{part:?}");
        let told: Vec<&Samples> =
            ran.report.samples(result.item).filter(|one| one.cpu == *cpu).collect();
        let tasks: Vec<u32> =
            told.iter().flat_map(|one| one.iter()).map(|(.., task)| task >> 2).collect();
        assert_eq!(tasks, vec![u32::from(*cpu); *logged as usize]);
        // In the order in which they came.
        let times: Vec<u64> =
            told.iter().flat_map(|one| one.iter()).map(|(_, tsc, ..)| tsc).collect();
        assert!(times.is_sorted(), "processor {cpu}");
    }
}

/// A full log stops the counters of its processor, and of no other: those that come after it lose nothing.
#[test]
fn m11_m13_a_full_log_stops_its_own_processor_alone() {
    let toml = item(
        "events = [\"r00c0:u\"]\nperiod = 97\ntick-ns = 0\nkeep = \"samples\"\ncapacity = 130\non-full = \"stop\"",
    );
    for model in MODELS {
        let ran = run(Given::Emulated(model), 3, &toml);
        ran.ends_with(0);
        let [result] = sampled(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let stopped: Vec<bool> = result.processors.iter().map(|one| one.stopped).collect();
        assert_eq!((stopped, result.stopped), (vec![false, true, false], true), "{model:?}");
        for part in &result.processors {
            let one = &part.events[0];
            assert_eq!((one.samples, one.dropped), (one.overflows, 0), "{model:?}: {part:?}");
            assert_eq!(Some(seen(one)), one.witness, "{model:?}: {part:?}");
            match part.stopped {
                // It stops at the sample that fills it.
                true => assert_eq!((one.overflows, part.logged), (130, 130), "{model:?}"),
                false => assert_eq!(seen(one), instructions(part.cpu), "{model:?}: {part:?}"),
            }
        }
    }
}

#[test]
fn c7_a_processor_that_is_not_there_cannot_be_sampled() {
    let ran = run(Given::Emulated(Model::Skylake), 2, &item("events = [\"r00c0:u\"]\nperiod = 97"));
    ran.ends_with(1);
    let said = format!("{:?}", ran.errors());
    let expected = "a task is to run on processor 2: there is no processor 2 in use; 2 are";
    assert!(said.contains(expected), "{said}");
}

/// Every form tells the processor and the task.
#[test]
fn i5_m13_every_form_of_a_profile_has_processor_and_task() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let toml = item("name = \"s\"\nevents = [\"r00c0:u\"]\nperiod = 97\ntick-ns = 300000");
    std::fs::write(path("job.toml"), toml).unwrap();
    let (job, folded, pprof, html) =
        (path("job.toml"), path("folded"), path("pprof"), path("html"));
    let files = [
        "--samples-folded",
        &folded,
        "--samples-pprof",
        &pprof,
        "--format",
        "html",
        "--out",
        &html,
    ];
    let common = ["run", &job, "--pmu", "skylake", "--cpus", "3"];
    let called = xtask(folder.path(), &[&common[..], &files].concat());
    assert_eq!(called.code, 0, "{called:?}");
    let folded = std::fs::read_to_string(folded).unwrap();
    for part in ["s;r00c0:u;processor 0;b;", "s;r00c0:u;processor 1;a;", "s;r00c0:u;processor 2;c;"]
    {
        assert!(folded.contains(part), "{part}: {folded}");
    }
    let html = std::fs::read_to_string(html).unwrap();
    for part in ["What became of the overflows, by processor", "r00c0:u by task", "processor 2"] {
        assert!(html.contains(part), "{part}");
    }
    // The magic number of gzip.
    assert_eq!(std::fs::read(pprof).unwrap()[..2], [0x1f, 0x8b]);
}
