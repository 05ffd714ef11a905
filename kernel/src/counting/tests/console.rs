//! What lines of the console do with the sets of a job.

use super::sets_of_jobs::{item, task};
use super::*;
use crate::counting::job::{CountRun, Sets, whole};
use protocol::console::{Change, Command, parse};
use protocol::job::count::{self, Bind};
use protocol::record::{ConsoleSet, ConsoleState};

/// Two sets on one processor, of a task each.
pub(super) fn two_sets() -> count::Count<'static> {
    let mut job = item(&[("a", Bind::Tasks(vec![0]), false), ("b", Bind::Tasks(vec![2]), false)]);
    job.workload.tasks = vec![task("x", None, None), task("y", None, None), task("z", None, None)];
    job.console = true;
    job
}

pub(super) fn begun(
    job: &count::Count,
    (bench, driver): (&mut FakeMachine, &Driver),
    known: &Known,
) -> (Sets, CountRun) {
    let sets = Sets::new(job, known, &[0]);
    let mut run = CountRun::begin(job, sets.shares(0), driver, bench).unwrap();
    run.start(bench).unwrap();
    (0..3).for_each(|task| run.created(task, None));
    (sets, run)
}

pub(super) fn turn(run: &mut CountRun, bench: &mut FakeMachine, task: u16, instructions: u64) {
    run.switched(None, Some(task), bench).unwrap();
    bench.run(Ring::User, instructions);
    run.switched(Some(task), None, bench).unwrap();
}

/// The state, the generation and the count of the one set that `line` is about.
fn one(told: Result<Vec<ConsoleSet>, String>) -> (ConsoleState, u64, u64) {
    let told = told.unwrap();
    let [set] = &told[..] else { panic!("{told:?}") };
    (set.state, set.generation, set.events[0].now.unwrap().raw)
}

#[test]
fn m7_what_was_read_before_a_change_has_the_name_that_the_event_had() {
    for (model, mut bench, driver, known) in machines() {
        let job = two_sets();
        let (sets, mut run) = begun(&job, (&mut bench, &driver), &known);
        let event = run.obey(&Command::List, (&job, &known), &mut bench).unwrap()[0].events[0]
            .event
            .clone();
        let read = |run: &mut CountRun, bench: &mut FakeMachine, task: u16| {
            run.switched(None, Some(task), bench).unwrap();
            bench.run(Ring::User, 100);
            run.reads(task, 0, bench).unwrap();
            run.switched(Some(task), None, bench).unwrap();
        };
        for (line, task) in
            [("list", 0), ("modify a 1 event=r00c2:u", 0), ("list", 2), ("modify a 1 every=9", 0)]
        {
            run.obey(&parse(line).unwrap(), (&job, &known), &mut bench).unwrap();
            read(&mut run, &mut bench, task);
        }
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        let names: Vec<String> =
            result.named_readings().into_iter().map(|(name, _)| name).step_by(2).collect();
        let expected = [
            format!("a: {event}, task , reading 1"),
            "a: r00c2:u, task , reading 1".to_string(),
            format!("b: {event}, task , reading 1"),
            "a: r00c2:u, task , reading 2".to_string(),
        ];
        assert_eq!(names, expected, "{model:?}");
    }
}

#[test]
fn m7_a_set_is_stopped_changed_started_turned_and_ended_and_the_others_go_on() {
    use ConsoleState::{Counts, Ended, Stopped};
    for (model, mut bench, driver, known) in machines() {
        let job = two_sets();
        let (sets, mut run) = begun(&job, (&mut bench, &driver), &known);
        let mut say = |line: &str, turns: u64| {
            let command = parse(line).unwrap();
            let told = run.obey(&command, (&job, &known), &mut bench);
            for task in [0, 2].into_iter().cycle().take(2 * turns as usize) {
                turn(&mut run, &mut bench, task, 100);
            }
            told
        };
        assert_eq!(one(say("read a", 1)), (Counts, 0, 0), "{model:?}");
        assert_eq!(one(say("stop a", 3)), (Stopped, 0, 100), "{model:?}");
        assert_eq!(one(say("read 1", 0)), (Stopped, 0, 100), "{model:?}");
        let told = say("modify a 1 preset=7", 0).unwrap();
        let was = told[0].events[0].was.clone().unwrap();
        assert_eq!((was.count.raw, was.event.as_str()), (100, "r00c0:u"), "{model:?}");
        assert_eq!(one(Ok(told)), (Stopped, 1, 7), "{model:?}");
        assert_eq!(one(say("start a", 2)), (Counts, 1, 7), "{model:?}");
        assert_eq!(one(say("read a", 0)), (Counts, 1, 207), "{model:?}");
        assert_eq!(say("next a", 1).unwrap()[0].passes, 1, "{model:?}");
        assert_eq!(one(say("terminate a", 1)), (Ended, 1, 307), "{model:?}");
        for line in ["start a", "next a", "modify a 1 every=9"] {
            let why = say(line, 0).unwrap_err();
            assert!(why.contains("has ended"), "{model:?}: {why}");
        }
        let all = say("list", 0).unwrap();
        let states: Vec<_> = all.iter().map(|set| (set.set, set.state, set.task)).collect();
        assert_eq!(states, [(1, Ended, Some(0)), (2, Counts, Some(2))], "{model:?}");
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        let [a, b] = [0, 1].map(|set| &result.sets[set].events[0]);
        assert_eq!((a.sum.raw, a.tasks[0].raw), (307, 300), "{model:?}");
        assert_eq!((b.sum.raw, b.tasks[2].raw), (800, 800), "{model:?}");
    }
}

#[test]
fn m7_lines_that_cannot_be_obeyed_say_why_and_change_nothing() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = two_sets();
        job.sets[1].requests.push(super::jobs::event("r00c0"));
        job.sets[0].requests = vec![super::jobs::event("r00c0:u"); 2];
        job.interval_ns = job.workload.tick_ns;
        let (sets, mut run) = begun(&job, (&mut bench, &driver), &known);
        turn(&mut run, &mut bench, 0, 50);
        for (line, part) in [
            ("start c", "there is no set `c`: there is `a`, `b`"),
            ("read 3", "there is no set `3`"),
            ("read 0", "there is no set `0`"),
            ("modify a r00c0:u every=5", "several events are `r00c0:u`: name one by its number"),
            ("modify b x every=5", "the set has no event `x`: it has `r00c0:u`, `r00c0`"),
            ("modify b 3 every=5", "the set has no event `3`"),
            ("modify b 2 every=499", "every is 499, and in ring 0"),
            ("modify b 1 event=nonsense", "request 0 (nonsense)"),
            ("modify b 1 every=18446744073709551615", "request 0"),
        ] {
            let told = run.obey(&parse(line).unwrap(), (&job, &known), &mut bench);
            let why = told.unwrap_err();
            assert!(why.contains(part), "{model:?}: {line}: {why}");
        }
        turn(&mut run, &mut bench, 0, 50);
        turn(&mut run, &mut bench, 2, 60);
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        let raw = |set: usize, event: usize| result.sets[set].events[event].sum.raw;
        assert_eq!((raw(0, 0), raw(0, 1), raw(1, 0), raw(1, 1)), (100, 100, 60, 60), "{model:?}");
        // A row for each set, with all of its count.
        let rows: Vec<_> = result.intervals.iter().map(|row| (row.set, row.raw[0])).collect();
        assert_eq!(rows, [(0, 100), (1, 60)], "{model:?}");
    }
}

/// What was counted before a request is changed is in a row of the series.
#[test]
fn m6_m7_the_series_has_what_a_changed_request_counted_before() {
    for (model, mut bench, driver, known) in machines() {
        let mut job = two_sets();
        job.interval_ns = job.workload.tick_ns;
        let (sets, mut run) = begun(&job, (&mut bench, &driver), &known);
        turn(&mut run, &mut bench, 0, 30);
        let change = parse("modify a 1 preset=1000").unwrap();
        run.obey(&change, (&job, &known), &mut bench).unwrap();
        turn(&mut run, &mut bench, 0, 12);
        run.tick(Some(0), &mut bench).unwrap();
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        let rows: Vec<_> = result.intervals.iter().filter(|row| row.set == 0).collect();
        let raw: Vec<_> = rows.iter().map(|row| (row.raw[0], row.tasks[0][0])).collect();
        assert_eq!(raw, [(30, 30), (12, 12), (0, 0)], "{model:?}");
        assert_eq!(result.sets[0].events[0].sum.raw, 1012, "{model:?}");
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Runs(u16, u64),
    Ticks,
    Stops(bool),
    Starts(bool),
    Turns(bool),
    Changes(bool, u64),
    /// A task waits, and goes on after so many instructions of the kernel.
    Waits(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u16..3, 1u64..300).prop_map(|(task, count)| Step::Runs(task, count)),
        1 => Just(Step::Ticks),
        1 => any::<bool>().prop_map(Step::Stops),
        1 => any::<bool>().prop_map(Step::Starts),
        1 => any::<bool>().prop_map(Step::Turns),
        1 => (any::<bool>(), 0u64..1_000).prop_map(|(set, preset)| Step::Changes(set, preset)),
        1 => (1u64..200).prop_map(Step::Waits),
    ]
}

proptest! {
    /// Whatever is said when: each set counts what its task does while it is not stopped, and nothing else.
    #[test]
    fn m7_c3_whatever_is_said_each_set_counts_what_it_is_to(
        steps in prop::collection::vec(step(), 0..40), model in 0..machines().count(),
    ) {
        let (_, mut bench, driver, known) = machines().nth(model).unwrap();
        let job = two_sets();
        let (sets, mut run) = begun(&job, (&mut bench, &driver), &known);
        let (mut counts, mut tasks, mut stopped) = ([0u64; 2], [0u64; 2], [false; 2]);
        for step in steps {
            let name = |second: bool| if second { "2".to_string() } else { "a".to_string() };
            let command = match step {
                Step::Runs(task, count) => {
                    turn(&mut run, &mut bench, task, count);
                    let set = [Some(0), None, Some(1)][usize::from(task)];
                    if let Some(set) = set.filter(|&set| !stopped[set]) {
                        counts[set] += count;
                        tasks[set] += count;
                    }
                    continue;
                }
                Step::Ticks => {
                    run.tick(Some(0), &mut bench).unwrap();
                    continue;
                }
                Step::Waits(count) => {
                    run.switched(None, Some(0), &mut bench).unwrap();
                    run.switched(Some(0), None, &mut bench).unwrap();
                    run.halt(&mut bench).unwrap();
                    bench.run(Ring::Kernel, count);
                    run.go_on(&mut bench).unwrap();
                    continue;
                }
                Step::Stops(set) => {
                    stopped[usize::from(set)] = true;
                    Command::Stop(name(set))
                }
                Step::Starts(set) => {
                    stopped[usize::from(set)] = false;
                    Command::Start(name(set))
                }
                Step::Turns(set) => Command::Next(name(set)),
                Step::Changes(set, preset) => {
                    (counts[usize::from(set)], tasks[usize::from(set)]) = (preset, 0);
                    let (event, preset) = ("1".to_string(), Some(preset));
                    Command::Modify(Change { set: name(set), event, preset, ..Change::default() })
                }
            };
            run.obey(&command, (&job, &known), &mut bench).unwrap();
            for (set, told) in run.obey(&Command::Read(None), (&job, &known), &mut bench).unwrap().iter().enumerate() {
                prop_assert_eq!(told.events[0].now.unwrap().raw, counts[set]);
                prop_assert_eq!(told.state == ConsoleState::Stopped, stopped[set]);
            }
        }
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        for (set, task) in [(0, 0), (1, 2)] {
            let event = &result.sets[set].events[0];
            prop_assert_eq!((event.sum.raw, event.tasks[task].raw), (counts[set], tasks[set]));
        }
    }

    /// The same of the whole processor: what was counted is the kernel's and the tasks', and nothing while a task waits.
    #[test]
    fn m7_c3_parts_add_up_to_the_processor_whatever_is_said(
        steps in prop::collection::vec((0u8..5, 1u64..300), 0..40), model in 0..machines().count(),
    ) {
        let (_, mut bench, driver, known) = machines().nth(model).unwrap();
        let mut job = two_sets();
        (job.sets, job.requests) = (vec![], vec![super::jobs::event("r00c0")]);
        let (sets, mut run) = begun(&job, (&mut bench, &driver), &known);
        let (mut counts, mut stopped) = ([0u64; 2], false);
        for (what, count) in steps {
            match what {
                0 => {
                    turn(&mut run, &mut bench, 1, count);
                    counts[0] += if stopped { 0 } else { count };
                }
                1 => {
                    bench.run(Ring::Kernel, count);
                    counts[1] += if stopped { 0 } else { count };
                }
                2 => {
                    run.halt(&mut bench).unwrap();
                    bench.run(Ring::Kernel, count);
                    run.go_on(&mut bench).unwrap();
                }
                what => {
                    stopped = what == 3;
                    let line = if stopped { "stop job" } else { "start 1" };
                    run.obey(&parse(line).unwrap(), (&job, &known), &mut bench).unwrap();
                }
            }
        }
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        let event = &result.events[0];
        let parts = [event.tasks[1].raw, event.kernel.raw];
        prop_assert_eq!((event.sum.raw, parts), (counts[0] + counts[1], counts));
    }
}
