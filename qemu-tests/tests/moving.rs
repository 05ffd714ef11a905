//! Tasks that move between processors: their counts are exact wherever they were, and add up to each processor's.

use pmu_model::Model;
use protocol::record::{CountResult, CountedEvent, TaskEnd, TaskResult, TasksResult};
use qemu_tests::{Guest, Ran};
use xtask::cli::{Boot, Icount};
use xtask::machine::Given;
use xtask::machine::devices::Cpus;

/// Three of Intel's and two of AMD's: with and without a global control, with few counters and with many.
const MODELS: [Model; 5] =
    [Model::Core2, Model::Skylake, Model::SapphireRapids, Model::Zen2, Model::Zen4];

fn emulated(model: Model, cpus: u32, job: &str) -> Ran {
    let (pmu, cpus) = (Given::Emulated(model), Cpus::Many(cpus));
    let ran = Guest { pmu, cpus, ..Guest::new(Boot::Direct, job) }.run();
    ran.ends_with(0);
    ran
}

/// A task of ring 3 that keeps something of its own in each kind of register: a hash in RAX, which goes to memory, and a sum in XMM0,
/// which has to be the turns' number at the end.
fn task(kind: &str, name: &str, nops: usize, turns: u64, rest: &str) -> String {
    let nops = "nop; ".repeat(nops);
    format!(
        "[[{kind}.task]]\nname = \"{name}\"\nring = 3\nturns = {turns}\ninit = \"mov edx, 1; movq xmm1, rdx; pxor xmm0, xmm0\"\n\
         asm = \"{nops}paddq xmm0, xmm1; inc rcx; movq rdx, xmm0; cmp rdx, rcx; jne 9f; mov [r14], rcx; jmp 8f; 9: ud2; 8:\"\n{rest}\n"
    )
}

/// Instructions of such a task: its init, its turns with the loop's two, and the INT at the end. The JMP goes over UD2.
const fn instructions(nops: u64, turns: u64) -> u64 {
    3 + turns * (nops + 7 + 2) + 1
}

fn whole(tasks: &[TaskResult]) {
    for task in tasks {
        assert_eq!(task.end, TaskEnd::Exit, "{task:?}");
        assert_eq!(task.value.0, task.turns, "{task:?}");
    }
}

/// Of each processor: the count is what ran in its tasks and in the kernel there. `parents`: by task, as children are in them.
fn adds_up(count: &CountResult, event: &CountedEvent, parents: &[Option<usize>]) {
    let mut tasks = vec![0; event.tasks.len()];
    let mut kernel = 0;
    for (cpu, share) in event.cpus.iter().zip(&event.shares) {
        let each = share.tasks.iter().zip(parents);
        let roots: u64 = each.filter(|(_, parent)| parent.is_none()).map(|(one, _)| one.raw).sum();
        assert_eq!(cpu.raw, share.kernel.raw + roots, "{count:?}");
        tasks.iter_mut().zip(&share.tasks).for_each(|(sum, one)| *sum += one.raw);
        kernel += share.kernel.raw;
    }
    let all: Vec<u64> = event.tasks.iter().map(|task| task.raw).collect();
    assert_eq!((kernel, tasks), (event.kernel.raw, all), "{count:?}");
    assert_eq!(event.sum.raw, event.cpus.iter().map(|cpu| cpu.raw).sum::<u64>(), "{count:?}");
}

/// Moves, and the processors that a task was on.
fn moved(task: &TaskResult) -> (u64, Vec<u32>) {
    let cpus = task.shares.iter().map(|share| share.processor).collect();
    let switches: u64 = task.shares.iter().map(|share| share.switches).sum();
    let time: u64 = task.shares.iter().map(|share| share.time).sum();
    assert_eq!((switches, time), (task.switches, task.time), "{task:?}");
    (task.moves.expect("it may move"), cpus)
}

#[test]
fn i8_t9_c3_tasks_that_move_between_processors_are_exact_and_add_up_on_each() {
    let job = "[[count]]\nevents = [\"instructions:u\", \"instructions\"]\ntick-ns = 50000\n"
        .to_string()
        + &task("count", "parent", 1, 30_000, "cpus = \"any\"")
        + &task("count", "child", 4, 20_000, "parent = \"parent\"")
        + &task("count", "other", 0, 40_000, "cpus = [0, 1]")
        + &task("count", "alone", 2, 10_000, "cpu = 1")
        + "[[count]]\nname = \"one\"\nevents = [\"instructions:u\"]\nbind = { task = \"parent\" }\ntick-ns = 50000\n"
        + &task("count", "parent", 1, 30_000, "cpus = [1, 0]")
        + &task("count", "child", 4, 20_000, "parent = \"parent\"")
        + &task("count", "other", 0, 40_000, "cpus = [0, 1]");
    let [parent, child] = [instructions(1, 30_000), instructions(4, 20_000)];
    let [other, alone] = [instructions(0, 40_000), instructions(2, 10_000)];
    for model in MODELS {
        let ran = emulated(model, 2, &job);
        let counts: Vec<&CountResult> = ran.report.counts().collect();
        let [all, one] = counts[..] else { panic!("{model:?}: {:?}", ran.errors()) };
        whole(&all.tasks);
        let (user, both) = (&all.events[0], &all.events[1]);
        let tasks: Vec<u64> = user.tasks.iter().map(|task| task.raw).collect();
        assert_eq!(tasks, [parent + child, child, other, alone], "{model:?}");
        assert_eq!(
            (user.sum.raw, user.kernel.raw),
            (parent + child + other + alone, 0),
            "{model:?}"
        );
        let parents = [None, Some(0), None, None];
        adds_up(all, user, &parents);
        adds_up(all, both, &parents);
        // Each ran on both processors, and is counted on both.
        for (index, task) in all.tasks[..3].iter().enumerate() {
            let (moves, cpus) = moved(task);
            assert!(moves >= 1 && cpus == [0, 1], "{model:?}: {task:?}");
            assert!(user.shares.iter().all(|share| share.tasks[index].raw > 0), "{model:?}");
        }
        assert_eq!((all.tasks[3].moves, all.tasks[3].cpu), (None, 1));
        let moves: u64 = all.tasks.iter().filter_map(|task| task.moves).sum();
        let together = all.together.as_ref().expect("two processors");
        assert_eq!(
            together.shares.iter().map(|share| share.taken).sum::<u64>(),
            moves,
            "{model:?}"
        );
        println!("{model:?}: {moves} moves");
        assert!(moves >= 6, "{model:?}: {moves}");
        // A set follows its task and its child, and nothing else.
        whole(&one.tasks);
        let tasks: Vec<u64> = one.events[0].tasks.iter().map(|task| task.raw).collect();
        assert_eq!(tasks, [parent + child, child, 0], "{model:?}");
        let (moves, cpus) = moved(&one.tasks[0]);
        assert!(moves > 0 && cpus == [0, 1], "{model:?}: {:?}", one.tasks);
    }
}

/// Without ticks a task moves when it gives way, so the moves are known: and the same each time.
#[test]
fn i8_t9_tasks_move_where_processors_have_nothing_to_do_and_in_the_same_way_each_time() {
    let job = "[[run]]\ntick-ns = 0\n".to_string()
        + &task("run", "a", 0, 500, "cpus = [0, 1]")
        + &task("run", "b", 1, 400, "cpus = [0, 1]")
        + &task("run", "c", 2, 300, "cpus = [0]")
        + &task("run", "d", 3, 200, "cpus = [0, 2]");
    for model in [Model::Skylake, Model::Zen4] {
        let seen = [0, 1].map(|_| {
            let ran = emulated(model, 3, &job);
            let runs: Vec<&TasksResult> = ran.report.tasks().collect();
            let [run] = runs[..] else { panic!("{:?}", ran.errors()) };
            whole(&run.tasks);
            let user = |task: &TaskResult| {
                task.shares.iter().map(|share| share.user_instructions.unwrap()).sum::<u64>()
            };
            for (task, nops) in run.tasks.iter().zip(0..) {
                let expected = instructions(nops, task.turns);
                assert_eq!(task.user_instructions, Some(expected), "{task:?}");
                assert!(task.moves.is_none() || user(task) == expected, "{task:?}");
            }
            let shares = &run.together.as_ref().unwrap().shares;
            let sum: u64 = shares.iter().map(|share| share.user_instructions.unwrap()).sum();
            assert_eq!(Some(sum), run.user_instructions);
            run.tasks.iter().map(|task| (task.cpu, task.moves, task.time)).collect::<Vec<_>>()
        });
        // The first processor begins with `a`; the second one takes `b`, the third one `d`.
        let places: Vec<(u32, Option<u64>)> = seen[0].iter().map(|one| (one.0, one.1)).collect();
        assert_eq!(places, [(0, Some(0)), (1, Some(0)), (0, None), (2, Some(0))], "{model:?}");
        assert_eq!(seen[0], seen[1], "{model:?}");
    }
}

/// On processors that really run at once, without a PMU: each task is on one of them at a time, with its registers. Each
/// turn gives way, as ticks are the host's; how often they move is the host's as well: 218 and 334 times on two busy cores.
#[test]
fn i8_t9_tasks_on_processors_that_run_at_once_keep_their_registers_while_they_move() {
    let mut job = "[[run]]\nlimit-us = 600000000\n".to_string();
    for number in 0..7 {
        let ring = if number % 2 == 0 { "3" } else { "0" };
        let one = task("run", &format!("t{number}"), number, 30_000, "cpus = \"any\"");
        let one = one.replace("ring = 3", &format!("ring = {ring}"));
        job += &one.replace("asm = \"", "asm = \"int 0x83; ");
    }
    let guest = Guest { cpus: Cpus::Many(4), ..Guest::new(Boot::Direct, &job) };
    let ran = Guest { icount: Icount::Off, ..guest }.run();
    ran.ends_with(0);
    let runs: Vec<&TasksResult> = ran.report.tasks().collect();
    let [run] = runs[..] else { panic!("{:?}", ran.errors()) };
    whole(&run.tasks);
    let moves: u64 = run.tasks.iter().map(|task| moved(task).0).sum();
    println!("{moves} moves");
    assert!(moves >= 20, "{moves}");
    let together = run.together.as_ref().unwrap();
    assert_eq!((together.processors.len(), together.in_turn), (4, false));
    assert_eq!(together.shares.iter().map(|share| share.taken).sum::<u64>(), moves);
}

/// Tasks of both rings without extended registers, of which a switch keeps less.
#[test]
fn i8_t9_tasks_without_extended_registers_move_as_well() {
    let one = |(number, turns): (u32, u64)| {
        let ring = if number.is_multiple_of(2) { 3 } else { 0 };
        format!(
            "[[run.task]]\nname = \"t{number}\"\nring = {ring}\nturns = {turns}\ncpus = \"any\"\n\
             asm = \"inc rcx; mov [r14], rcx\"\n"
        )
    };
    let turns = [30_000, 2_000, 25_000, 3_000, 20_000];
    let tasks: String = (0..).zip(turns).map(one).collect();
    let ran = emulated(Model::Skylake, 2, &format!("[[run]]\ntick-ns = 10000\n{tasks}"));
    let runs: Vec<&TasksResult> = ran.report.tasks().collect();
    let [run] = runs[..] else { panic!("{:?}", ran.errors()) };
    whole(&run.tasks);
    let moves: Vec<u64> = run.tasks.iter().map(|task| moved(task).0).collect();
    println!("{moves:?} moves");
    assert!(moves.iter().filter(|moves| **moves > 0).count() >= 3, "{moves:?}");
}
