//! The scheduler on a made-up processor, whose tasks take what time the test says.

mod made;
mod random;

pub(super) use made::{Habits, Made, Seen, TURN, Watcher};

use super::*;
use proptest::prelude::*;
use protocol::job::LoopCounter;
use protocol::job::workload::{Ring, Task};
use protocol::record::TaskEnd;

pub(super) fn task(turns: u64, parent: Option<u16>) -> Task<'static> {
    Task {
        name: "x".into(),
        init: vec![0x90; 10].into(),
        body: vec![1, 2, 3, 4, 5, 6].into(),
        turns,
        loop_counter: LoopCounter::R15,
        extended_state: false,
        ring: Ring::Kernel,
        parent,
        cpu: None,
        core: None,
        cpus: None,
        outlives: false,
        program: None,
        bits: protocol::bits::Bits::SixtyFour,
    }
}

fn workload(tasks: &[(u64, Option<u16>)], tick_ns: u64, jitter: Option<u64>) -> Workload<'static> {
    let tasks = tasks.iter().map(|&(turns, parent)| task(turns, parent)).collect();
    Workload { tasks, tick_ns, jitter }
}

fn watched(workload: &Workload, limit_us: u64, habits: &[Habits]) -> (Summary, Vec<Seen>) {
    watched_on(Made::new(habits), workload, limit_us)
}

fn watched_on(mut made: Made, workload: &Workload, limit_us: u64) -> (Summary, Vec<Seen>) {
    let mut watched = [(0, Watcher::default())];
    let summary = run(workload, limit_us, &mut made, &mut watched).unwrap();
    let [(_, Watcher(mut seen))] = watched;
    // Around all the rest.
    let phases = [seen.remove(0), seen.remove(0), seen.pop().unwrap(), seen.pop().unwrap()];
    assert_eq!(phases, ["opened", "loaded", "closed", "ended"].map(Seen::Phase));
    (summary, seen)
}

#[test]
fn t9_two_tasks_take_turns_at_each_tick() {
    use Seen::{Created, Exited, Switched, Tick};
    let (summary, seen) =
        watched(&workload(&[(3, None), (1, None)], 200, None), 1_000, &[Habits::default(); 2]);
    let expected = [
        Created(0, None),
        Created(1, None),
        Switched(None, Some(0)),
        Tick,
        Switched(Some(0), Some(1)),
        Switched(Some(1), None),
        Exited(1, None),
        Switched(None, Some(0)),
        // Both tasks together took 400 by now.
        Tick,
        Switched(Some(0), None),
        Exited(0, None),
    ];
    assert_eq!(seen, expected);
    assert_eq!((summary.switches, summary.ticks.count, summary.ticks.median), (4, 2, 200));
    assert_eq!(summary.interrupts, [VectorCount { vector: 0xd0, count: 2 }]);
    assert_eq!(summary.tasks.iter().map(|task| task.turns).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(summary.tasks.iter().map(|task| task.time).collect::<Vec<_>>(), [300, 100]);
}

#[test]
fn i8_a_child_starts_with_its_parent_and_a_parent_exits_after_its_children() {
    use Seen::{Created, Exited};
    let tree = [(1, None), (5, Some(0)), (9, Some(1)), (1, Some(0))];
    let (_, seen) = watched(&workload(&tree, 0, None), 1_000, &[Habits::default(); 4]);
    let order: Vec<_> =
        seen.into_iter().filter(|seen| matches!(seen, Created(..) | Exited(..))).collect();
    let expected = [
        Created(0, None),
        Created(1, Some(0)),
        Created(3, Some(0)),
        Created(2, Some(1)),
        Exited(3, Some(0)),
        Exited(2, Some(1)),
        Exited(1, Some(0)),
        Exited(0, None),
    ];
    assert_eq!(order, expected);
}

/// The kernel takes longer than a tick: without longer ticks none of the tasks would ever execute anything.
#[test]
fn ticks_that_leave_no_time_are_lengthened_until_the_tasks_get_on() {
    for jitter in [None, Some(5)] {
        let mut machine = Made { cost: 1_000, ..Made::new(&[Habits::default(); 2]) };
        let workload = workload(&[(30, None), (30, None)], 200, jitter);
        let summary = run(&workload, 1_000_000, &mut machine, &mut [(0, ())]).unwrap();
        assert!(summary.tasks.iter().all(|task| task.turns == 30), "{summary:?}");
        let lengthened = summary.ticks.lengthened.expect("too short");
        // Twice as long each time, and not longer than needed.
        assert!([800, 1_600, 3_200].contains(&lengthened), "{jitter:?}: {lengthened}");
        let enough = Made { cost: 50, ..Made::new(&[Habits::default(); 2]) };
        let summary = run(&workload, 1_000_000, &mut { enough }, &mut [(0, ())]).unwrap();
        assert_eq!(summary.ticks.lengthened, None);
    }
}

#[test]
fn m15_a_fault_ends_its_task_alone_and_says_where() {
    let habits = [Habits { fault: Some(2), ..Habits::default() }, Habits::default()];
    let (summary, seen) = watched(&workload(&[(9, None), (9, None)], 300, Some(1)), 1_000, &habits);
    let [bad, good] = &summary.tasks[..] else { panic!("{summary:?}") };
    assert_eq!((bad.end, bad.turns, good.end, good.turns), (TaskEnd::Fault, 2, TaskEnd::Exit, 9));
    let fault = bad.fault.as_ref().unwrap();
    assert_eq!((fault.part.as_str(), fault.offset, fault.vector), ("body", Some(2), 6));
    assert_eq!(fault.bytes.as_deref(), Some("03040506"));
    assert_eq!(good.fault, None);
    assert!(seen.contains(&Seen::Exited(0, None)), "its counters have to be released");
}

#[test]
fn an_endless_task_is_ended_at_its_limit_with_and_without_ticks() {
    let habits = [Habits { endless: true, ..Habits::default() }, Habits::default()];
    for tick_ns in [0, 1_000] {
        let (summary, _) = watched(&workload(&[(0, None), (50, None)], tick_ns, None), 20, &habits);
        let [bad, good] = &summary.tasks[..] else { panic!("{summary:?}") };
        assert_eq!((bad.end, good.end, good.turns), (TaskEnd::Limit, TaskEnd::Exit, 50));
        // 20 us are 20,000 ticks of this clock; at most a tick of the timer more.
        assert!((20_000..=20_000 + tick_ns + TURN).contains(&bad.time), "{}", bad.time);
        assert_eq!(summary.ticks.count > 0, tick_ns > 0);
    }
    let yields = [Habits { endless: true, yields: 1, ..Habits::default() }; 2];
    let (summary, _) = watched(&workload(&[(0, None); 2], 0, None), 20, &yields);
    assert!(summary.tasks.iter().all(|task| task.end == TaskEnd::Limit));
}

#[test]
fn a_task_or_a_count_for_a_processor_that_is_not_there_is_refused_by_name() {
    let mut workload = workload(&[(1, None)], 0, None);
    let mut ran = |cpu, watched: &mut [(u16, ())]| {
        workload.tasks[0].cpu = Some(cpu);
        run(&workload, 1, &mut Made::new(&[Habits::default()]), watched).unwrap_err()
    };
    assert_eq!(ran(3, &mut []), "task `x` is to run on processor 3: there are 3");
    assert_eq!(ran(1, &mut [(4, ())]), "processor 4 is to be counted: there are 3");
}

/// Each processor has its own queue and its own ticks, and sees its own tasks alone; one without tasks is watched as well.
#[test]
fn t9_c3_each_processor_runs_its_own_tasks_under_its_own_observer() {
    use Seen::{Created, Exited, Phase, Switched, Tick};
    let mut work = workload(&[(3, None), (4, None), (1, None), (2, Some(1))], 200, Some(5));
    (work.tasks[1].cpu, work.tasks[2].cpu) = (Some(2), Some(0));
    let mut watched = [0, 1, 2].map(|cpu| (cpu, Watcher::default()));
    let summary = run(&work, 1_000, &mut Made::new(&[Habits::default(); 4]), &mut watched).unwrap();
    let told = |cpu: usize, tick: bool| {
        let seen: &[Seen] = &watched[cpu].1.0;
        seen.iter().filter(|one| matches!(one, Tick) == tick).copied().collect::<Vec<_>>()
    };
    let idle = ["opened", "loaded", "ended", "closed"].map(Phase);
    assert_eq!((told(1, false), told(1, true).len()), (idle.to_vec(), 0));
    for (cpu, own) in [(0, [0, 2]), (2, [1, 3])] {
        let seen = told(cpu, false);
        for one in &seen {
            let tasks = match *one {
                Created(task, _) | Exited(task, _) => vec![task],
                Switched(from, to) => from.into_iter().chain(to).collect(),
                Phase(_) | Tick => vec![],
            };
            assert!(tasks.iter().all(|task| own.contains(task)), "{cpu}: {one:?}");
        }
        assert_eq!(seen.iter().filter(|one| matches!(one, Exited(..))).count(), 2);
        assert!(!told(cpu, true).is_empty());
    }
    let ticks = told(0, true).len() + told(2, true).len();
    assert_eq!(summary.ticks.count, ticks as u64);
    let turns: Vec<_> = summary.tasks.iter().map(|task| (task.turns, task.cpu)).collect();
    assert_eq!(turns, [(3, 0), (4, 2), (1, 0), (2, 2)]);
    assert_eq!(summary.together.unwrap().processors, [0, 1, 2]);
}
