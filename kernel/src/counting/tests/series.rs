//! Series of several sets and processors.

use super::sets_of_jobs::{item, task};
use super::*;
use crate::counting::job::{CountRun, Part, Sets, whole};
use protocol::job::count::{self, Bind};
use protocol::record::CountInterval;

/// Runs the tasks of processor `cpu` in turn for some ticks, each with its own number of instructions, and lets the last exit.
fn part(
    job: &count::Count,
    sets: &Sets,
    cpu: u16,
    tasks: &[u16],
    (bench, driver): (&mut FakeMachine, &Driver),
) -> Part {
    let mut run = CountRun::begin(job, sets.shares(cpu), driver, bench).unwrap();
    run.start(bench).unwrap();
    let parent = |task: u16| job.workload.tasks[usize::from(task)].parent;
    tasks.iter().for_each(|&task| run.created(task, parent(task)));
    for turn in 0..10 {
        let task = tasks[turn % tasks.len()];
        run.switched(None, Some(task), bench).unwrap();
        bench.run(Ring::User, 100 + 10 * u64::from(task));
        run.switched(Some(task), None, bench).unwrap();
        if turn == 7
            && let Some(&last) = tasks.last()
        {
            run.exited(last, parent(last), bench).unwrap();
        }
        run.tick(Some(task), bench).unwrap();
    }
    run.finish(bench).unwrap()
}

/// Each set has its own rows on each processor that counts it, and what they come to is what it counted there: also of a
/// set of two tasks, which has two claims, and of a child whose counts its parent inherits in the middle.
#[test]
fn m6_c3_each_set_has_a_series_on_each_processor() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = item(&[
            ("of two", Bind::Tasks(vec![0, 1]), false),
            ("of one", Bind::Tasks(vec![4]), false),
            ("there", Bind::Processor(2), false),
        ]);
        job.interval_ns = 2 * job.workload.tick_ns;
        job.sets[0].requests.push(super::jobs::event("r00c0"));
        job.sets[2].requests[0].preset = 5;
        let child = task("c", None, Some(0));
        job.workload.tasks = vec![task("a", None, None), task("b", None, None), child];
        job.workload.tasks.extend([task("d", Some(2), None), task("e", None, None)]);
        let sets = Sets::new(&job, &known, &[0, 2]);
        let here = part(&job, &sets, 0, &[0, 1, 4, 2], (&mut bench, &driver));
        let there = part(&job, &sets, 2, &[3], (&mut bench, &driver));
        let result = whole(&job, sets, vec![(0, here), (2, there)]);
        let rows = |set: u32, cpu: u32| -> Vec<&CountInterval> {
            result.intervals.iter().filter(|row| (row.set, row.processor) == (set, cpu)).collect()
        };
        let places = [(0, 0), (1, 0), (2, 2)];
        let all: usize = places.iter().map(|&(set, cpu)| rows(set, cpu).len()).sum();
        // Ten ticks are five rows, and one is for what came behind them.
        assert_eq!((all, result.intervals.len(), result.dropped), (18, 18, 0), "{model:?}");
        for (set, cpu) in places {
            let counted = &result.sets[set as usize];
            for (number, event) in counted.events.iter().enumerate() {
                let sum: u64 = rows(set, cpu).iter().map(|row| row.raw[number]).sum();
                let preset = if set == 2 { 5 } else { 0 };
                assert_eq!(sum, event.sum.raw - preset, "{model:?}: {}", counted.name);
            }
        }
        // The child's two turns of 120 are in its own column, though its parent has them in the end.
        let of = |set, cpu, task: usize| {
            rows(set, cpu).iter().map(|row| row.tasks[task][0]).sum::<u64>()
        };
        assert_eq!([0, 1, 2, 3, 4].map(|task| of(0, 0, task)), [300, 330, 240, 0, 0], "{model:?}");
        assert_eq!([0, 1, 2, 3, 4].map(|task| of(1, 0, task)), [0, 0, 0, 0, 280], "{model:?}");
        assert_eq!(of(2, 2, 3), 1_300, "{model:?}");
        assert_eq!(result.sets[0].events[0].tasks[0].raw, 540, "{model:?}");
        // The first row ends with the second tick: `a` and `b` had a turn each.
        assert_eq!((rows(0, 0)[0].raw[0], rows(1, 0)[0].raw[0]), (210, 0), "{model:?}");
    }
}

/// The rows of a record have room together, however many sets there are.
#[test]
fn m6_rows_of_many_sets_share_the_room() {
    let (_, mut bench, driver, known) = machines().nth(3).unwrap();
    let mut job = item(&[("a", Bind::Tasks(vec![0]), false), ("b", Bind::Tasks(vec![2]), false)]);
    job.interval_ns = 1;
    job.workload.tasks[1].cpu = None;
    for set in &mut job.sets {
        set.requests = vec![super::jobs::event("0xc0.0x00:c=1:u"); 250];
    }
    let sets = Sets::new(&job, &known, &[0]);
    let result = part(&job, &sets, 0, &[0, 1, 2], (&mut bench, &driver));
    // 5,000 figures are two rows of 250 for all and for each of three tasks, of both sets.
    assert_eq!((result.intervals.len(), result.dropped), (4, 18));
    assert_eq!(result.intervals.iter().map(|row| row.set).collect::<Vec<_>>(), [0, 0, 1, 1]);
}

/// A child's counts are in its own column where they were counted, and not in its heir's, whichever task that is.
#[test]
fn m6_what_a_child_leaves_to_the_second_task_is_in_no_row_of_that_one() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = super::jobs::item(vec![super::jobs::event("r00c0:u"); 2], 1_000_000);
        job.workload.tasks[2].parent = Some(1);
        let sets = Sets::new(&job, &known, &[0]);
        let here = part(&job, &sets, 0, &[0, 1, 2], (&mut bench, &driver));
        let result = whole(&job, sets, vec![(0, here)]);
        let of = |task: usize, event: usize| {
            result.intervals.iter().map(|row| row.tasks[task][event]).sum::<u64>()
        };
        // Ten turns; the third task exits behind the eighth one, which was its second but last.
        let ran = [4 * 100, 3 * 110, 3 * 120];
        assert_eq!(
            [0, 1, 2].map(|task| [of(task, 0), of(task, 1)]),
            ran.map(|n| [n; 2]),
            "{model:?}"
        );
    }
}
