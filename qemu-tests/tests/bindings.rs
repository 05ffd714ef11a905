//! Sets of counts that are bound, evicted and released while tasks run.

use pmu_model::Model;
use protocol::record::{BindMoment, CountBinding, CountResult, CountedSet};
use qemu_tests::{Guest, Ran};
use std::time::Duration;
use xtask::cli::Boot;
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Without a global control, Intel's and AMD's with one and without.
const MODELS: [Model; 5] =
    [Model::Core2, Model::Skylake, Model::SapphireRapids, Model::Zen2, Model::Zen4];

fn run(model: Model, cpus: u32, toml: &str) -> Ran {
    let (pmu, timeout) = (Given::Emulated(model), Duration::from_secs(240));
    let ran =
        Guest { pmu, cpus: Cpus::Many(cpus), timeout, ..Guest::new(Boot::Direct, toml) }.run();
    ran.ends_with(0);
    ran
}

fn counted(ran: &Ran) -> Vec<&CountResult> {
    ran.report.counts().collect()
}

fn task(name: &str, asm: &str, rest: &str) -> String {
    format!("[[count.task]]\nname = \"{name}\"\nasm = \"{asm}\"\nring = 3\n{rest}\n")
}

fn set(name: &str, rest: &str) -> String {
    format!("[[count.set]]\nname = \"{name}\"\nevents = [\"r00c0:u\"]\n{rest}\n")
}

/// What a set came to, and in each of its times.
fn sums(set: &CountedSet) -> (Option<u64>, Vec<u64>) {
    let sum = set.events.first().map(|event| event.sum.raw);
    (sum, set.bindings.iter().map(|binding| binding.raw[0]).collect())
}

/// Markers alone, of those that tasks reached.
fn markers(binding: &CountBinding) -> [Option<u32>; 3] {
    let marker = |moment: Option<BindMoment>| moment.and_then(|moment| moment.marker);
    [marker(Some(binding.since)), marker(binding.waited), marker(binding.until)]
}

/// Up to a marker, from there to the next one, and what is left: to the instruction, a set's and its successor's. The one that was
/// evicted has its counts up to then, gets the counters back, and a task that had read it is told.
#[test]
fn i6_c10_a_set_that_is_evicted_in_mid_run_has_its_counts_and_gets_the_counters_back() {
    let reads = "xor eax, eax; int 0x85";
    let keeps = "pushfq; pop rcx; and ecx, 0x41; shl rdx, 32; or rdx, rcx; shl rax, 48; or rdx, rax; mov [r14], rdx";
    let code = [
        &format!("nop; nop; {reads}; mov eax, 1; int 0x86"),
        &format!("nop; nop; nop; {reads}; {keeps}; {reads}; mov eax, 2; int 0x86"),
        &format!("{reads}; nop; mov eax, 3; int 0x86"),
    ];
    // With the loop's two and the INT at the end.
    let phases = [6, 3 + 2 + 8 + 2 + 2, 5 + 3];
    let code = task("loop", &code.map(String::as_str).join("; "), "turns = 1");
    let sets = set("own", "bind = { task = \"loop\" }\nwait = true")
        + &set("machine", "at-marker = 1\nuntil-marker = 2\nforce = true");
    let expect = "expect = { \"own: r00c0:u, binding 2\" = 8, \"machine: r00c0:u\" = 17 }\n";
    let whole = "[[count]]\nevents = [\"r00c0:u\"]\nbind = { task = \"loop\" }\ntick-ns = 0\n";
    let job = format!("[[count]]\ntick-ns = 0\n{expect}{code}{sets}{whole}{code}");
    for model in MODELS {
        let ran = run(model, 1, &job);
        let [count, whole] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        let [own, machine] = &count.sets[..] else { panic!("{count:?}") };
        assert_eq!(sums(own), (Some(phases[0] + phases[2]), vec![phases[0], phases[2]]), "{own:?}");
        assert_eq!(sums(machine), (Some(phases[1]), vec![phases[1]]), "{model:?}");
        // One set over the whole time has as much as both.
        assert_eq!(whole.events[0].sum.raw, phases.iter().sum::<u64>(), "{model:?}");
        let [first, second] = &own.bindings[..] else { panic!("{own:?}") };
        assert_eq!(first.evicted_by.as_deref(), Some("machine"), "{model:?}");
        assert_eq!((first.generation, first.evicted, second.generation), (0, Some(1), 1));
        assert_eq!([first, second].map(markers), [[None, None, Some(1)], [Some(2), Some(1), None]]);
        assert_eq!(markers(&machine.bindings[0]), [Some(1), None, Some(2)], "{model:?}");
        assert_eq!((second.until, &second.evicted_by, own.waiting), (None, &None, None));
        assert_eq!((own.evicted.is_some(), own.refused.is_some()), (false, false), "{own:?}");
        // In the kernel, which no set of a task counts in between.
        assert!(second.since.tsc > first.until.unwrap().tsc, "{model:?}: {own:?}");
        assert_eq!(second.waited, first.until, "{model:?}");

        let read: Vec<_> = count.readings.iter().map(|one| (one.set, one.own.raw)).collect();
        assert_eq!(read, [(0, 4), (1, 15)], "{model:?}");
        let stale = count.stale.iter().map(|one| (one.task, one.set, one.acquired, one.generation));
        // The second was given back: the generation is the same.
        assert_eq!(stale.collect::<Vec<_>>(), [(0, 0, 0, 1), (0, 1, 1, 1)], "{model:?}");
        // CF and ZF, the generation of its eviction, and that of its acquisition.
        assert_eq!(count.tasks[0].value.0, 1 << 32 | 0x41, "{model:?}: as it was told");
    }
}

/// A set is bound and released in each turn of a loop.
#[test]
fn i6_a_set_is_bound_and_released_at_each_of_its_markers() {
    let code =
        task("loop", "mov eax, 7; int 0x86; nop; nop; mov eax, 9; int 0x86; nop", "turns = 5");
    let other = task("other", "nop; int 0x83", "turns = 3");
    let job = "[[count]]\ntick-ns = 0\n".to_string()
        + &code
        + &other
        + &set("in", "bind = { task = \"loop\" }\nat-marker = 7\nuntil-marker = 9")
        + &set("out", "bind = { task = \"loop\" }\nat-marker = 9\nuntil-marker = 7\nwait = true")
        + &set("other", "bind = { task = \"other\" }");
    for model in MODELS {
        let ran = run(model, 1, &job);
        let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        assert_eq!(sums(&count.sets[0]), (Some(20), vec![4; 5]), "{model:?}");
        // NOP, DEC, JNZ, and the marker itself; at the end the INT.
        assert_eq!(sums(&count.sets[1]), (Some(24), vec![5, 5, 5, 5, 4]), "{model:?}");
        assert_eq!(sums(&count.sets[2]), (Some(3 * 4 + 1), vec![3 * 4 + 1]), "{model:?}");
        assert!(count.sets.iter().all(|set| set.bindings.iter().all(|one| one.generation == 0)));
    }
}

/// By time, at ticks: nothing is lost between sets, and the run repeats to the instruction.
#[test]
fn i6_c10_by_time_sets_and_their_successors_have_all_that_one_counts_and_it_repeats() {
    let tasks = task("a", "nop; nop; nop", "turns = 40000") + &task("b", "nop", "turns = 50000");
    let total = 40_000 * 5 + 1 + 50_000 * 3 + 1;
    let sets = set("first", "until-us = 90")
        + &set("second", "at-us = 90\nwait = true")
        + &set("third", "at-us = 161\nuntil-us = 211\nforce = true");
    let job = format!("[[count]]\ntick-ns = 20000\njitter = 3\n{tasks}{sets}");
    for model in MODELS {
        let [one, again] = [(); 2].map(|()| {
            let ran = run(model, 1, &job);
            let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
            count.clone()
        });
        let all: Vec<_> = one.sets.iter().map(sums).collect();
        assert_eq!(all.iter().map(|(sum, _)| sum.unwrap()).sum::<u64>(), total, "{model:?}");
        for (sum, times) in &all {
            assert_eq!(times.iter().sum::<u64>(), sum.unwrap(), "{model:?}: {all:?}");
            assert!(times.iter().all(|&time| time > 0), "{model:?}: {all:?}");
        }
        let ticks = |set: &CountedSet| {
            let until = |one: &CountBinding| one.until.map(|moment| moment.tick);
            set.bindings.iter().map(|one| (one.since.tick, until(one))).collect::<Vec<_>>()
        };
        let ticks: Vec<_> = one.sets.iter().map(ticks).collect();
        let expected = [vec![(0, Some(5))], vec![(5, Some(9)), (11, None)], vec![(9, Some(11))]];
        assert_eq!(ticks, expected, "{model:?}");
        assert_eq!(one.sets, again.sets, "{model:?}");
    }
}

/// Who is in the way stays, who waits in vain says so, and a moment that never comes is told: none of them has counts.
#[test]
fn i6_who_is_refused_waits_in_vain_or_never_asks_has_no_counts_and_says_why() {
    let code = task("loop", "mov eax, 1; int 0x86; nop", "turns = 2");
    let job = "allow-uncounted = true\n[[count]]\ntick-ns = 0\n".to_string()
        + &code
        + &set("own", "bind = { task = \"loop\" }")
        + &set("asks", "at-marker = 1")
        + &set("waits", "wait = true")
        + &set("never", "at-marker = 2\nforce = true");
    for model in MODELS {
        let ran = run(model, 1, &job);
        let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        assert_eq!(sums(&count.sets[0]), (Some(11), vec![11]), "{model:?}");
        let why = [1, 2, 3].map(|set| {
            let set: &CountedSet = &count.sets[set];
            assert_eq!(sums(set), (None, vec![]), "{model:?}");
            set.refused.clone().unwrap()
        });
        assert!(why[0].starts_with("busy: 1 tasks count"), "{why:?}");
        assert!(why[1].starts_with("it waited to the end; busy: 1 tasks count"), "{why:?}");
        assert!(why[2].starts_with("its time or marker never came"), "{why:?}");
        assert_eq!(count.sets[2].waiting, Some(BindMoment::default()), "{model:?}");
        // Without leave the item fails.
        let job = job.replace("allow-uncounted = true\n", "");
        let pmu = Given::Emulated(model);
        Guest { pmu, ..Guest::new(Boot::Direct, &job) }.run().ends_with(1);
    }
}

/// A set of all processors is bound on all at the same tick, or on none; tasks' sets get theirs back.
#[test]
fn i6_c10_m13_a_set_of_all_processors_is_bound_on_all_at_one_tick_or_on_none() {
    // The exchange of two sets takes an emulated processor some 150 us of the guest's clock.
    let tasks = task("a", "nop; nop; nop", "turns = 600000\ncpu = 0")
        + &task("b", "nop; nop", "turns = 750000\ncpu = 1");
    let totals = [600_000 * 5 + 1, 750_000 * 4 + 1];
    let count = |sets: &[String]| format!("[[count]]\ntick-ns = 400000\n{tasks}{}", sets.concat());
    let job = [
        count(&[
            set("task a", "bind = { task = \"a\" }\nwait = true"),
            set("task b", "bind = { task = \"b\" }"),
            set("all", "bind = \"all-cpus\"\nat-us = 1000\nuntil-us = 1800\nforce = true"),
        ]),
        // One of the tasks is in the way: it gets neither processor, until that one gives its own back.
        count(&[
            set("task b", "bind = { task = \"b\" }\nuntil-us = 1500"),
            set("all", "bind = \"all-cpus\"\nat-us = 400\nwait = true"),
        ]),
    ]
    .concat();
    for model in [Model::Core2, Model::Skylake, Model::Zen4] {
        let ran = run(model, 2, &job);
        let [forced, waits] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
        let rows = |set: &CountedSet| {
            let row = |one: &CountBinding| {
                let until = one.until.map(|moment| moment.tick);
                (one.processor, one.since.tick, until, one.evicted_by.is_some())
            };
            set.bindings.iter().map(row).collect::<Vec<_>>()
        };
        let [a, b, all] = &forced.sets[..] else { panic!("{forced:?}") };
        assert_eq!(rows(a), [(0, 0, Some(3), true), (0, 5, None, false)], "{model:?}");
        assert_eq!(rows(b), [(1, 0, Some(3), true)], "{model:?}");
        assert_eq!(rows(all), [(0, 3, Some(5), false), (1, 3, Some(5), false)], "{model:?}");
        assert_eq!(b.evicted.as_ref().map(|lost| (lost.processor, lost.generation)), Some((1, 1)));
        let cpus =
            |set: &CountedSet| set.events[0].cpus.iter().map(|cpu| cpu.raw).collect::<Vec<_>>();
        // The first has all of its processor, between them; of the second the rest was counted by nobody.
        assert_eq!(cpus(a)[0] + cpus(all)[0], totals[0], "{model:?}: {forced:?}");
        let [own, others] = [cpus(b)[1], cpus(all)[1]];
        assert!(own > 0 && others > 0 && own + others < totals[1], "{model:?}");

        let [b, all] = &waits.sets[..] else { panic!("{waits:?}") };
        assert_eq!(rows(b), [(1, 0, Some(4), false)], "{model:?}");
        assert_eq!(rows(all), [(0, 4, None, false), (1, 4, None, false)], "{model:?}");
        assert!(all.bindings.iter().all(|one| one.waited.map(|moment| moment.tick) == Some(1)));
        assert_eq!(cpus(b)[1] + cpus(all)[1], totals[1], "{model:?}");
    }
}

/// A processor without tasks has nothing that would tell it of a moment.
#[test]
fn i6_a_set_of_an_idle_processor_is_refused_where_sets_come_and_go() {
    let job = "allow-uncounted = true\n[[count]]\ntick-ns = 20000\n".to_string()
        + &task("a", "nop", "turns = 20000")
        + &set("all", "bind = \"all-cpus\"\nat-us = 20")
        + &set("own", "bind = { task = \"a\" }");
    let ran = run(Model::Skylake, 2, &job);
    let [count] = counted(&ran)[..] else { panic!("{:?}", ran.errors()) };
    let why = count.sets[0].refused.clone().unwrap();
    assert!(why.starts_with("processor 1 has no tasks"), "{why}");
    assert_eq!(sums(&count.sets[1]).0, Some(20_000 * 3 + 1));
}
