//! What of the processors' parts, and of what was not counted, stands in the record.

use super::jobs::{event, item};
use super::*;
use crate::counting::job::sets::named_cpus;
use crate::counting::job::{Part, PartOfSet, Sets, whole};
use protocol::job::affinity::Affinity;
use protocol::job::count::{Bind, Count, CountSet, Schedule, When};
use protocol::record::{
    CountGate, CountInterval, CountSnapshot, CountSnapshot as Figures, CountValue, CountedEvent,
};

fn part(starts: u64) -> Part {
    Part {
        intervals: vec![CountInterval { tsc: starts, raw: vec![1], ..CountInterval::default() }],
        dropped: 3 + starts,
        ticks: 5,
        switches: 7,
        snapshot: Some(Figures { tsc: 100 + starts, ..CountSnapshot::default() }),
        gates: vec![CountGate { task: 1, starts, stops: 9, taken: starts, deepest: None }],
        ..Part::default()
    }
}

fn known_here() -> Known<'static> {
    machines().nth(3).unwrap().3
}

#[test]
fn i7_m14_the_record_has_what_was_dropped_the_snapshot_and_the_gate() {
    let job = item(vec![event("r00c0")], 0);
    let sets = || Sets::new(&job, &known_here(), &[0, 2]);
    let one = whole(&job, sets(), vec![(0, part(1))]);
    assert_eq!((one.dropped, one.ticks, one.switches), (4, 5, 7));
    assert_eq!(one.snapshot.map(|seen| seen.tsc), Some(101));
    assert_eq!(one.gates, part(1).gates);
    assert_eq!((one.bind, one.cpus.len()), (None, 0), "the system, on the first processor alone");
    let both = whole(&job, sets(), vec![(0, part(1)), (2, part(4))]);
    assert_eq!((both.dropped, both.ticks, both.switches), (11, 10, 14));
    assert_eq!(both.snapshot.map(|seen| seen.tsc), Some(101), "the first one's");
    assert_eq!(both.gates, part(4).gates, "of the processor on which its task ran");
    let turned = whole(&job, sets(), vec![(0, part(4)), (2, part(1))]);
    assert_eq!(turned.gates, part(4).gates, "and on no other");
    let rows: Vec<_> = both.intervals.iter().map(|row| (row.processor, row.tsc)).collect();
    assert_eq!(rows, [(0, 1), (2, 4)]);
    let cpus: Vec<_> = both.cpus.iter().map(|cpu| (cpu.processor, cpu.switches)).collect();
    assert_eq!(cpus, [(0, 7), (2, 7)]);
    // A processor alone that is not the first is named.
    let other = whole(&job, sets(), vec![(2, part(1))]);
    assert_eq!(other.cpus.iter().map(|cpu| cpu.processor).collect::<Vec<_>>(), [2]);
}

#[test]
fn c3_the_record_says_for_whom_unless_it_is_the_system() {
    let job = Count { bind: Bind::Tasks(vec![1]), ..item(vec![event("r00c0")], 0) };
    let result = whole(&job, Sets::new(&job, &known_here(), &[0]), vec![(0, part(0))]);
    assert_eq!(result.bind.as_deref(), Some("task b"));
}

#[test]
fn c7_sets_keep_their_names_and_what_of_them_is_not_counted() {
    let set = |name: &'static str, requests| CountSet {
        name: name.into(),
        requests,
        together: false,
        bind: Bind::Processor(1),
        alone: false,
        force: false,
        ..CountSet::default()
    };
    let sets = vec![
        set("good", vec![event("r00c0")]),
        set("bad", vec![event("no_such"), event("r00c0"), event("fixed9")]),
    ];
    let job = Count { sets, ..item(vec![], 0) };
    let left = |result: protocol::record::CountResult| {
        let set = |set: &protocol::record::CountedSet| {
            let uncounted = set.uncounted.iter().map(|one| one.event.clone());
            (set.name.clone(), uncounted.collect::<Vec<_>>())
        };
        result.sets.iter().map(set).collect::<Vec<_>>()
    };
    let expected = |good: &[&str], bad: &[&str]| {
        let own = |list: &[&str]| list.iter().copied().map(String::from).collect::<Vec<_>>();
        vec![("good".to_string(), own(good)), ("bad".to_string(), own(bad))]
    };
    let result = whole(&job, Sets::new(&job, &known_here(), &[0, 1]), vec![]);
    assert_eq!(left(result), expected(&[], &["no_such", "fixed9"]));
    // Where there is no PMU, nothing is counted, and each event says why.
    let none = Sets::uncounted(&job, "there is no PMU");
    assert!(
        none.cpus().is_empty() && none.shares(0).sets.is_empty() && none.shares(1).sets.is_empty()
    );
    let result = whole(&job, none, vec![]);
    let reasons = result.sets.iter().flat_map(|set| &set.uncounted);
    assert!(reasons.clone().all(|one| one.reason == "there is no PMU"));
    assert_eq!(left(result), expected(&["r00c0"], &["no_such", "r00c0", "fixed9"]));
}

#[test]
fn c3_the_processors_of_an_item_are_those_of_its_tasks_and_of_its_sets() {
    let mut job = Count { bind: Bind::Processor(4), ..item(vec![event("r00c0")], 0) };
    job.workload.tasks[1].cpu = Some(2);
    assert_eq!(named_cpus(&job, &[0, 1, 2, 3]), [0, 2, 4]);
    job.bind = Bind::AllProcessors;
    assert_eq!(named_cpus(&job, &[0, 1, 2, 3]), [0, 1, 2, 3]);
}

/// A set beside others that come and go needs processors that are told of the moment.
#[test]
fn i6_a_set_that_comes_and_goes_is_refused_where_nothing_tells_its_time() {
    let schedule = |at| Schedule { at: Some(at), ..Schedule::default() };
    let set = |name: &'static str, bind, schedule| CountSet {
        name: name.into(),
        requests: vec![event("r00c0")],
        bind,
        schedule,
        ..CountSet::default()
    };
    let refused = |at, cpu| {
        let sets = vec![
            set("whole", Bind::AllProcessors, Schedule::default()),
            set("one", Bind::Processor(0), schedule(at)),
        ];
        let mut job = Count { sets, ..item(vec![], 0) };
        job.workload.tasks[1].cpu = cpu;
        let sets = Sets::new(&job, &known_here(), &[0, 1]);
        let why = sets.why_not();
        let result = whole(&job, sets, vec![]);
        assert_eq!(result.sets[0].refused.clone().unwrap_or_default(), why);
        why
    };
    let idle =
        "processor 1 has no tasks, whose ticks and markers would tell it when sets come and go";
    assert_eq!(refused(When::Microseconds(5_000), None), idle);
    assert_eq!(refused(When::Microseconds(5_000), Some(1)), "");
    let spread = "it needs several processors, and a marker is reached on one";
    assert_eq!(refused(When::Marker(1), Some(1)), spread);
}

/// A set of a task that moves is on each processor that the task, or a child that is counted with it, may run on.
#[test]
fn c3_a_set_of_a_task_that_moves_takes_all_its_processors() {
    let mut job = Count { bind: Bind::Tasks(vec![0]), ..item(vec![event("r00c0")], 0) };
    job.workload.tasks[1].cpu = Some(5);
    let cpus = |job: &Count| Sets::new(job, &known_here(), &[0, 1, 2, 3]).cpus();
    assert_eq!(cpus(&job), [0], "it stays, and so does its child");
    job.workload.tasks[0].cpus = Some(Affinity::These(vec![2, 1]));
    job.workload.tasks[2].cpus = Some(Affinity::These(vec![3]));
    assert_eq!(cpus(&job), [1, 2, 3]);
    job.alone = true;
    assert_eq!(cpus(&job), [1, 2]);
}

/// Shares of each processor are for tasks that move: then a task's count is scaled by its time on all of them together.
#[test]
fn c3_i1_a_task_that_moves_is_scaled_by_all_its_time() {
    let value = |raw, counted, enabled| {
        let scaled = crate::counting::Count { raw, counted, enabled }.scaled();
        CountValue { raw, scaled, counted, enabled }
    };
    let nothing = value(0, 0, 0);
    let part = |task: CountValue| {
        let event = CountedEvent {
            sum: task,
            kernel: CountValue { scaled: Some(0), ..nothing },
            tasks: vec![task, nothing, nothing],
            ..CountedEvent::default()
        };
        let set = PartOfSet { number: 0, events: vec![event], groups: 1, passes: 1 };
        Part { sets: vec![set], ..Part::default() }
    };
    // Half of the time here; there it was too short for a turn of the event.
    let (here, there) = (value(100, 50, 100), value(0, 0, 20));
    assert_eq!((here.scaled, there.scaled), (Some(200), None));
    let event = |moves: bool| {
        let mut job = item(vec![event("r00c0")], 0);
        job.workload.tasks[0].cpus = moves.then(|| Affinity::These(vec![0, 1]));
        let sets = Sets::new(&job, &known_here(), &[0, 1]);
        whole(&job, sets, vec![(0, part(here)), (1, part(there))]).events.remove(0)
    };
    let stays = event(false);
    assert_eq!((stays.tasks[0].scaled, stays.shares.len()), (None, 0));
    let moves = event(true);
    assert_eq!(moves.tasks[0], CountValue { scaled: Some(240), ..value(100, 50, 120) });
    let shares: Vec<CountValue> = moves.shares.iter().map(|share| share.tasks[0]).collect();
    assert_eq!(shares, [here, there]);
    assert!(moves.shares.iter().all(|share| share.kernel.scaled == Some(0)));
}
