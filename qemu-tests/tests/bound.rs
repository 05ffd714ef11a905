//! Counts that are bound: to tasks, to processors, to the system; on one processor and on several. Every turn of a task's
//! loop is its body, a DEC and a JNZ.

use pmu_model::Model;
use protocol::record::{CountResult, CountedEvent, TaskEnd, TasksResult};
use qemu_tests::{Guest, Ran};
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Without a global control, Intel's and AMD's with one.
const MODELS: [Model; 3] = [Model::Core2, Model::Skylake, Model::Zen4];

fn run(pmu: Given, cpus: u32, toml: &str) -> Ran {
    // Each switch of an emulated PMU's counters takes the host a while.
    let timeout = Duration::from_secs(240);
    Guest { pmu, cpus: Cpus::Many(cpus), timeout, ..Guest::new(Boot::Direct, toml) }.run()
}

fn emulated(model: Model, cpus: u32, toml: &str) -> Ran {
    let ran = run(Given::Emulated(model), cpus, toml);
    ran.ends_with(0);
    ran
}

fn counted(ran: &Ran) -> Vec<&CountResult> {
    ran.report.counts().collect()
}

fn tasks(event: &CountedEvent) -> Vec<u64> {
    event.tasks.iter().map(|task| task.raw).collect()
}

fn cpus(event: &CountedEvent) -> Vec<u64> {
    event.cpus.iter().map(|cpu| cpu.raw).collect()
}

/// A task of ring 3 with so many turns of so many NOPs.
fn task(kind: &str, name: &str, turns: u64, nops: u64, rest: &str) -> String {
    let body = "nop; ".repeat(nops as usize);
    let head = format!("[[{kind}.task]]\nname = \"{name}\"\nasm = \"{body}\"\n");
    format!("{head}turns = {turns}\nring = 3\n{rest}\n")
}

/// Its instructions in ring 3, with the INT at the end.
fn instructions(turns: u64, nops: u64) -> u64 {
    turns * (nops + 2) + 1
}

/// By task: processor, turns, NOPs of a turn, parent.
type Known = (u16, u64, u64, Option<usize>);

fn known(kind: &str, all: &[Known]) -> String {
    let mut job = String::new();
    for (index, &(cpu, turns, nops, parent)) in all.iter().enumerate() {
        let parent = parent.map_or(String::new(), |parent| format!("parent = \"t{parent}\"\n"));
        job += &task(kind, &format!("t{index}"), turns, nops, &format!("{parent}cpu = {cpu}"));
    }
    job
}

/// Each task's instructions, its children's with them.
fn expected(all: &[Known]) -> Vec<u64> {
    let mut own: Vec<u64> = all.iter().map(|one| instructions(one.1, one.2)).collect();
    for (index, one) in all.iter().enumerate().rev() {
        if let Some(parent) = one.3 {
            own[parent] += own[index];
        }
    }
    own
}

/// Two tasks or more on every processor, one with a child.
fn spread(cpus: u16) -> Vec<Known> {
    let mut all = Vec::new();
    for cpu in 0..cpus {
        let at = all.len();
        let turns = 4_000 + 1_111 * u64::from(cpu);
        all.extend([(cpu, turns, 3, None), (cpu, 9_000, 1, None), (cpu, turns / 3, 11, Some(at))]);
    }
    all
}

/// Whenever each processor's own ticks come, nothing is lost and nothing counts twice: each task is exact, the parts add up
/// to each processor, and the processors to the sum.
#[test]
fn c3_i7_i8_m13_tasks_on_two_and_four_processors_are_exact_under_random_ticks() {
    for model in MODELS {
        for count in [2, 4] {
            let all = spread(count);
            // Another seed for each boot, and each processor has its own series of it.
            let head = format!("tick-ns = 60000\njitter = {}", 7 * count + model as u16);
            let head = format!("[[count]]\nevents = [\"r00c0:u\", \"r00c0\"]\n{head}\n");
            let ran = emulated(model, count.into(), &(head + &known("count", &all)));
            let results = counted(&ran);
            assert_eq!(results.len(), 1, "{model:?}: {:?}", ran.errors());
            for result in results {
                let [user, both] = &result.events[..] else { panic!("{model:?}: {result:?}") };
                assert_eq!(tasks(user), expected(&all), "{model:?}");
                let roots = |cpu: u16| {
                    let own = all.iter().zip(expected(&all));
                    let own = own.filter(|(one, _)| one.0 == cpu && one.3.is_none());
                    own.map(|(_, count)| count).sum::<u64>()
                };
                let by_cpu: Vec<u64> = (0..count).map(roots).collect();
                assert_eq!(cpus(user), by_cpu, "{model:?}");
                assert_eq!((user.sum.raw, user.kernel.raw), (by_cpu.iter().sum(), 0), "{model:?}");
                // Ring 0 has the schedulers: the parts are the whole there as well.
                let roots = all.iter().zip(tasks(both)).filter(|(one, _)| one.3.is_none());
                let in_tasks: u64 = roots.map(|(_, count)| count).sum();
                assert_eq!(both.sum.raw, in_tasks + both.kernel.raw, "{model:?}");
                assert_eq!(both.sum.raw, cpus(both).iter().sum::<u64>(), "{model:?}");
                // Ticks of its own on each processor, and tasks that did take turns.
                let places: Vec<u32> = result.tasks.iter().map(|task| task.cpu).collect();
                assert_eq!(places, all.iter().map(|one| one.0.into()).collect::<Vec<u32>>());
                assert_eq!(result.cpus.len(), usize::from(count));
                assert!(result.cpus.iter().all(|cpu| cpu.ticks > 1 && cpu.switches > 4));
                assert_eq!(result.ticks, result.cpus.iter().map(|cpu| cpu.ticks).sum::<u64>());
                let together = result.together.as_ref().unwrap();
                assert!(together.in_turn && together.begin_skew.is_none(), "{together:?}");
            }
        }
    }
}

/// The same workload for its own sake: at the same time without a PMU, one after the other with an emulated one.
#[test]
fn t9_m10_tasks_run_on_all_processors_at_the_same_time() {
    let all = spread(4);
    let job = "[[run]]\ntick-ns = 20000\njitter = 3\n".to_string() + &known("run", &all);
    let turns = |result: &TasksResult| -> Vec<u64> {
        assert!(result.tasks.iter().all(|task| task.end == TaskEnd::Exit), "{result:?}");
        result.tasks.iter().map(|task| task.turns).collect()
    };
    let whole: Vec<u64> = all.iter().map(|one| one.1).collect();
    let ran = run(Given::None, 4, &job);
    ran.ends_with(0);
    let result = ran.report.tasks().next().unwrap();
    assert_eq!(turns(result), whole);
    let together = result.together.as_ref().unwrap();
    assert_eq!((&together.processors[..], together.in_turn), (&[0, 1, 2, 3][..], false));
    // QEMU lets one processor run after the other, so nothing is at the same tick.
    assert!(together.begin_skew.unwrap() > 0 && together.end_skew.unwrap() > 0, "{together:?}");
    let taken = |vector| {
        result.interrupts.iter().find(|one| one.vector == vector).map_or(0, |one| one.count)
    };
    // The start of each processor, the end of each task, and ticks, of which one may come late on each.
    assert_eq!([taken(0x84), taken(0x82)], [4, 12]);
    assert!(result.ticks.count > 4 && taken(0xd0) - result.ticks.count <= 4, "{result:?}");

    let ran = emulated(Model::Skylake, 4, &job);
    let result = ran.report.tasks().next().unwrap();
    assert_eq!(turns(result), whole);
    let own: Vec<u64> = result.tasks.iter().map(|task| task.user_instructions.unwrap()).collect();
    let alone: Vec<u64> = all.iter().map(|one| instructions(one.1, one.2)).collect();
    assert_eq!(own, alone);
    assert_eq!(result.user_instructions, Some(alone.iter().sum()));
    assert!(result.together.as_ref().unwrap().in_turn);
}

/// A bad task costs its processor's others nothing, and the other processors neither.
#[test]
fn m15_m13_a_fault_on_another_processor_ends_its_task_alone() {
    for pmu in [Given::None, Given::Emulated(Model::Zen4)] {
        let all = spread(3);
        let bad = "[[run.task]]\nname = \"bad\"\nasm = \"ud2\"\ncpu = 2\nring = 3\n\
                   [[run.task]]\nname = \"worse\"\ninit = \"xor esp, esp; mov ds, esp; mov gs, esp\"\n\
                   asm = \"ud2\"\ncpu = 1\n";
        let job = format!("[[run]]\ntick-ns = 60000\njitter = 2\n{}{bad}", known("run", &all));
        let ran = run(pmu, 3, &job);
        ran.ends_with(1);
        let result = ran.report.tasks().next().unwrap();
        let (good, bad) = result.tasks.split_at(all.len());
        for (task, one) in good.iter().zip(&all) {
            assert_eq!((task.end, task.turns), (TaskEnd::Exit, one.1), "{task:?}");
        }
        let mnemonics: Vec<_> =
            bad.iter().map(|task| (task.cpu, task.fault.as_ref().unwrap().vector)).collect();
        assert_eq!(mnemonics, [(2, 6), (1, 6)]);
    }
}

/// Nothing but the tasks that are named, and their children: no other task, and not the kernel. Events beyond the counters
/// take turns within each task's own time.
#[test]
fn c3_t9_a_set_of_tasks_counts_nothing_else() {
    let tasks_of = |noise: u64| {
        let noise = task("count", "noise", noise, 5, "");
        let child = task("count", "child", 3_000, 2, "parent = \"one\"");
        let one = task("count", "one", 8_000, 4, "");
        let two = task("count", "two", 6_000, 3, "");
        format!("tick-ns = 60000\njitter = 5\n{noise}{one}{two}{child}")
    };
    let events = |text: &str| format!("events = [{text}]\n");
    let job = [
        format!(
            "[[count]]\n{}bind = {{ task = \"one\" }}\n{}",
            events("\"r00c0:u\", \"r00c0\""),
            tasks_of(20_000)
        ),
        format!(
            "[[count]]\n{}bind = {{ tasks = [\"two\", \"one\"] }}\n{}",
            events("\"r00c0:u\", \"r00c0\""),
            tasks_of(20_000)
        ),
        format!(
            "[[count]]\n{}bind = {{ task = \"noise\" }}\n{}",
            events(&["\"0xc0.0x00:c=1:u\""; 12].join(", ")),
            tasks_of(300_000)
        ),
    ]
    .concat();
    let [one, two, child] = [(8_000, 4), (6_000, 3), (3_000, 2)].map(|(t, n)| instructions(t, n));
    for model in MODELS {
        let ran = emulated(model, 1, &job);
        let [single, list, turns] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        assert_eq!(single.bind.as_deref(), Some("task one"));
        assert_eq!(list.bind.as_deref(), Some("tasks two, one"));
        for (result, counts) in
            [(single, [0, one + child, 0, child]), (list, [0, one + child, two, child])]
        {
            let [user, both] = &result.events[..] else { panic!("{model:?}: {result:?}") };
            assert_eq!(tasks(user), counts, "{model:?}");
            assert_eq!(user.sum.raw, counts[0] + counts[1] + counts[2], "{model:?}");
            for event in [user, both] {
                assert_eq!((event.kernel.raw, event.kernel.enabled), (0, 0), "{model:?}");
                assert_eq!((event.tasks[0].raw, event.tasks[0].enabled), (0, 0), "{model:?}");
                let parts = tasks(event)[..3].iter().sum::<u64>();
                assert_eq!(event.sum.raw, parts, "{model:?}");
            }
            assert!(result.ticks > 3 && result.switches > 8, "{result:?}");
        }
        assert!(turns.groups > 1 && turns.events.len() == 12, "{model:?}");
        for event in &turns.events {
            let noise = &event.tasks[0];
            assert!(noise.counted > 0 && noise.counted < noise.enabled, "{model:?}: {event:?}");
            assert_eq!((event.sum.raw, &tasks(event)[1..]), (noise.raw, &[0, 0, 0][..]));
        }
    }
}

/// One processor of several, and all of them, idle ones included.
#[test]
fn c3_i7_a_set_of_a_processor_counts_that_one_and_a_set_of_all_the_idle_ones_too() {
    let all = [(0, 5_000, 3, None), (1, 7_000, 2, None), (1, 900, 9, None)];
    let count = |bind: &str| {
        let head = format!("[[count]]\nevents = [\"r00c0:u\", \"r00c0\"]\nbind = {bind}\n");
        head + "tick-ns = 80000\njitter = 4\n" + &known("count", &all)
    };
    let job = [count("{ cpu = 1 }"), count("\"all-cpus\""), count("{ cpu = 2 }")].concat();
    let own = expected(&all);
    for model in MODELS {
        let ran = emulated(model, 3, &job);
        let [second, whole, idle] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        let user = &second.events[0];
        assert_eq!(second.bind.as_deref(), Some("processor 1"));
        assert_eq!((tasks(user), cpus(user)), (vec![0, own[1], own[2]], vec![own[1] + own[2]]));
        assert_eq!(user.sum.raw, own[1] + own[2], "{model:?}");
        assert_eq!(second.cpus.iter().map(|cpu| cpu.processor).collect::<Vec<_>>(), [1]);
        assert!(second.tasks.iter().all(|task| task.end == TaskEnd::Exit), "{second:?}");

        let [user, both] = &whole.events[..] else { panic!("{whole:?}") };
        assert_eq!((tasks(user), cpus(user)), (own.clone(), vec![own[0], own[1] + own[2], 0]));
        // The idle processor's kernel does a little between start and stop.
        let [.., idle_kernel] = cpus(both)[..] else { panic!("{both:?}") };
        assert!(idle_kernel > 0 && idle_kernel < 3_500, "{model:?}: {idle_kernel}");
        assert_eq!(both.sum.raw, tasks(both).iter().sum::<u64>() + both.kernel.raw, "{model:?}");
        assert_eq!(tasks(&idle.events[0]), [0, 0, 0], "{model:?}");
        assert_eq!(idle.events[0].sum.raw, 0);
    }
}

/// A set for the system and one for a task exclude each other, with the library's error; one that is forced evicts, and the
/// record has the set that was evicted and the generation.
#[test]
fn i6_c10_m13_sets_exclude_each_other_in_a_job_and_force_evicts() {
    let set = |name: &str, rest: &str| {
        format!("[[count.set]]\nname = \"{name}\"\nevents = [\"r00c0:u\"]\n{rest}\n")
    };
    let all = [(0, 5_000, 3, None), (1, 7_000, 2, None)];
    let tasks_here = known("count", &all);
    let count = |sets: &[String]| {
        format!("[[count]]\ntick-ns = 30000\njitter = 2\n{}{tasks_here}", sets.concat())
    };
    let (t0, t1) = ("bind = { task = \"t0\" }", "bind = { task = \"t1\" }");
    let job = [
        // The one that came first stays; the refused set does not hold processor 1 either.
        count(&[set("task", t0), set("machine", ""), set("other", t1), set("again", t1)]),
        count(&[
            set("task", t0),
            set("other", t1),
            set("machine", "force = true"),
            set("late", t0),
        ]),
        // Of processor 1 alone: the task on processor 0 is not in its way.
        count(&[set("task", t0), set("other", t1), set("cpu", "bind = { cpu = 1 }\nforce = true")]),
    ]
    .concat();
    // Sets that lose the counters fail their item, if that is not allowed.
    let job = format!("allow-uncounted = true\n{job}");
    let own = expected(&all);
    for model in MODELS {
        let ran = emulated(model, 2, &job);
        let results = counted(&ran);
        let [asked, forced, one] = results[..] else { panic!("{:?}", ran.errors()) };
        let sum = |result: &CountResult, set: usize| {
            result.sets[set].events.first().map(|event| (event.sum.raw, tasks(event)))
        };
        let refused = |result: &CountResult, set: usize| result.sets[set].refused.clone();
        let evicted = |result: &CountResult, set: usize| {
            let lost = result.sets[set].evicted.clone()?;
            Some((lost.by, lost.processor, lost.acquired, lost.generation))
        };
        assert_eq!(sum(asked, 0), Some((own[0], vec![own[0], 0])), "{model:?}");
        let busy = refused(asked, 1).unwrap();
        assert!(busy.starts_with("busy: 1 tasks count"), "{busy}");
        assert_eq!((sum(asked, 1), sum(asked, 2)), (None, Some((own[1], vec![0, own[1]]))));
        assert_eq!(refused(asked, 3).unwrap(), "on processor 1: busy: task 1 is counted already");

        assert_eq!(sum(forced, 2), Some((own[0] + own[1], own.clone())), "{model:?}");
        assert_eq!(evicted(forced, 0), Some(("machine".into(), 0, 0, 1)), "{model:?}");
        assert_eq!(evicted(forced, 1), Some(("machine".into(), 1, 0, 1)), "{model:?}");
        assert_eq!((sum(forced, 0), sum(forced, 1), sum(forced, 3)), (None, None, None));
        assert!(refused(forced, 3).unwrap().contains("the whole system is counted"));

        assert_eq!(sum(one, 0), Some((own[0], vec![own[0], 0])), "{model:?}");
        assert_eq!(evicted(one, 1), Some(("cpu".into(), 1, 0, 1)), "{model:?}");
        assert_eq!(sum(one, 2), Some((own[1], vec![0, own[1]])), "{model:?}");
    }
}

/// Overflows on several processors are acted on where they come.
#[test]
fn m13_overflows_of_each_processor_start_others_on_it() {
    let all = [(0, 40_000, 3, None), (1, 60_000, 3, None)];
    let job = "[[count]]\ntick-ns = 0\n\
               events = [{ event = \"r00c0:u\", every = 50000, starts = [\"0xc0.0x00:u\"] }, \"0xc0.0x00:u\"]\n"
        .to_string()
        + &known("count", &all);
    for model in MODELS {
        let ran = emulated(model, 2, &job);
        let [result] = counted(&ran)[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        let [first, second] = &result.events[..] else { panic!("{result:?}") };
        assert_eq!(tasks(first), expected(&all), "{model:?}");
        let periods: u64 = expected(&all).iter().map(|count| count / 50_000).sum();
        assert_eq!(first.overflows, Some(periods), "{model:?}");
        for (first, second) in cpus(first).iter().zip(cpus(second)) {
            // Nothing of the handler is in ring 3.
            assert!((50_000..50_010).contains(&(first - second)), "{model:?}: {first} {second}");
        }
    }
}

#[test]
fn c3_a_processor_that_is_not_there_is_named_and_the_next_item_runs() {
    let job = "[[count]]\nname = \"bound\"\nevents = [\"cycles\"]\nbind = { cpu = 5 }\n"
        .to_string()
        + &task("count", "t", 10, 1, "")
        + "[[count]]\nname = \"task\"\nevents = [\"cycles\"]\n"
        + &task("count", "t", 10, 1, "cpu = 2")
        + "[[run]]\nname = \"run\"\n"
        + &task("run", "r", 10, 1, "cpu = 3")
        + "[[count]]\nname = \"fine\"\nevents = [\"r00c0:u\"]\n"
        + &task("count", "t", 10, 1, "cpu = 1");
    let ran = run(Given::Emulated(Model::Skylake), 2, &job);
    ran.ends_with(1);
    let errors: Vec<_> = ran.errors().iter().map(|error| error.text.clone()).collect();
    for (error, number) in errors.iter().zip([3, 5, 2]) {
        let part = format!("there is no processor {number} in use; 2 are");
        assert!(error.contains(&part), "{errors:?}");
    }
    assert!(errors[0].starts_with("task `r` is to run on processor 3"), "{errors:?}");
    let [fine] = counted(&ran)[..] else { panic!("{errors:?}") };
    assert_eq!(tasks(&fine.events[0]), [instructions(10, 1)]);
}

/// Without a copy of the emulated PMU for them, the others run tasks but cannot be counted.
#[test]
fn p5_i7_a_processor_that_the_emulated_pmu_does_not_reach_is_named() {
    let all = [(0, 500, 3, None), (1, 700, 2, None)];
    let job = "[[count]]\nevents = [\"r00c0:u\"]\n".to_string()
        + &known("count", &all)
        + "[[count]]\nname = \"first\"\nevents = [\"r00c0:u\"]\nbind = { cpu = 0 }\n"
        + &known("count", &all)
        + "[[run]]\n"
        + &known("run", &all);
    let cpus = Cpus::As("sockets=2,cores=2".to_string());
    let pmu = Given::Emulated(Model::Skylake);
    let ran = Guest { pmu, cpus, ..Guest::new(Boot::Direct, &job) }.run();
    ran.ends_with(1);
    let errors: Vec<_> = ran.errors().iter().map(|error| error.text.clone()).collect();
    assert!(errors[0].contains("processor 1: the emulated PMU does not reach"), "{errors:?}");
    let [first] = counted(&ran)[..] else { panic!("{errors:?}") };
    assert_eq!(tasks(&first.events[0]), [expected(&all)[0], 0]);
    let alone = ran.report.tasks().next().unwrap();
    assert!(alone.tasks.iter().all(|task| task.end == TaskEnd::Exit), "{alone:?}");
    assert_eq!(alone.user_instructions, None);
}

/// Without a PMU the tasks of all processors run all the same, and each event of each set has its reason.
#[test]
fn p5_i7_without_a_pmu_tasks_on_two_processors_run_and_each_set_has_the_reason() {
    let all = [(0, 500, 3, None), (1, 700, 2, None)];
    let set = |name: &str| format!("[[count.set]]\nname = \"{name}\"\nevents = [\"cycles\"]\n");
    let job = "[[count]]\n".to_string() + &set("a") + &set("b") + &known("count", &all);
    let ran = run(Given::None, 2, &job);
    ran.ends_with(1);
    let [result] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
    assert!(result.tasks.iter().all(|task| task.end == TaskEnd::Exit), "{result:?}");
    for set in &result.sets {
        assert!(set.events.is_empty() && set.refused.is_none(), "{set:?}");
        assert!(set.uncounted[0].reason.contains("there is no PMU"), "{set:?}");
    }
}
