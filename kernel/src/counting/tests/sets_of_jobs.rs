//! Who of several sets gets the counters, on one processor and on several, and what their counts come to together.

use super::*;
use crate::counting::allocate::{Allocation, Evicted, SetRequest};
use crate::counting::job::{CountRun, Part, PartOfSet, Sets, whole};
use crate::counting::ledger::Ledger;
use crate::counting::owner::{OwnerError, Scope};
use protocol::job::count::{self, Bind, CountRequest, CountSet};
use protocol::job::workload::{Task, Workload};
use protocol::record::{CountValue, CountedEvent};

fn request(places: &[(u16, Scope)], force: bool) -> SetRequest {
    SetRequest { places: places.to_vec(), force, ..SetRequest::default() }
}

fn allocate(requests: &[SetRequest], tasks: u16) -> Vec<Allocation> {
    let mut ledger = Ledger::new(requests.to_vec(), tasks);
    ledger.begin();
    (0..requests.len()).map(|number| ledger.allocation(number).clone()).collect()
}

#[test]
fn i6_c10_a_set_gets_all_its_processors_or_none() {
    let (both, task) = ([(0, Scope::System), (1, Scope::System)], Scope::Task(3));
    let allocations = allocate(
        &[
            request(&[(1, task)], false),
            request(&both, false),
            // Processor 0 was not kept by the one that was refused.
            request(&[(0, Scope::System)], false),
            request(&[(1, Scope::Task(4))], false),
            request(&[(0, Scope::Task(9))], false),
            request(&[], true),
        ],
        8,
    );
    let refused = |cpu, error| Allocation::Refused { cpu, error };
    assert_eq!(allocations[0], Allocation::Counts);
    assert_eq!(allocations[1], refused(1, OwnerError::TasksCount(1)));
    assert_eq!((&allocations[2], &allocations[3]), (&Allocation::Counts, &Allocation::Counts));
    assert_eq!(allocations[4], refused(0, OwnerError::NoTask { task: 9, count: 8 }));
    assert_eq!(allocations[5], Allocation::Counts, "it asks for nothing");
    assert!(allocations[1].refusal().unwrap().starts_with("on processor 1: busy: 1 tasks count"));
}

#[test]
fn i6_c10_force_evicts_everywhere_and_the_generation_is_that_of_the_processor() {
    let system = |cpus: &[u16]| cpus.iter().map(|&cpu| (cpu, Scope::System)).collect::<Vec<_>>();
    let allocations = allocate(
        &[
            request(&[(0, Scope::Task(0)), (1, Scope::Task(1))], false),
            request(&system(&[1]), true),
            // Free since the first set lost its other half.
            request(&[(0, Scope::Task(0))], false),
            request(&system(&[1]), true),
            request(&system(&[0, 1]), true),
        ],
        2,
    );
    let evicted =
        |by, cpu, acquired, evicted| Allocation::Evicted(Evicted { by, cpu, acquired, evicted });
    assert_eq!(allocations[0], evicted(1, 1, 0, 1));
    assert_eq!(allocations[1], evicted(3, 1, 1, 2));
    assert_eq!(allocations[2], evicted(4, 0, 0, 1));
    assert_eq!((&allocations[3], &allocations[4]), (&evicted(4, 1, 2, 3), &Allocation::Counts));
}

proptest! {
    /// Whoever counts at the end: on each processor the system alone, or tasks that differ.
    #[test]
    fn i6_whatever_is_asked_for_those_who_count_do_not_hinder_each_other(
        asked in prop::collection::vec(
            (prop::collection::btree_map(0u16..3, prop::option::of(0u16..4), 0..3), any::<bool>()), 0..12,
        ),
    ) {
        let scope = |task: Option<u16>| task.map_or(Scope::System, Scope::Task);
        let requests: Vec<SetRequest> = asked.iter().map(|(places, force)| {
            let places = places.iter().map(|(&cpu, &task)| (cpu, scope(task))).collect();
            SetRequest { places, force: *force, ..SetRequest::default() }
        }).collect();
        let allocations = allocate(&requests, 4);
        prop_assert_eq!(allocations.len(), requests.len());
        for cpu in 0..3 {
            let counts = requests.iter().zip(&allocations).filter(|(_, allocation)| **allocation == Allocation::Counts);
            let here: Vec<Scope> = counts
                .flat_map(|(request, _)| request.places.iter().filter(|(at, _)| *at == cpu))
                .map(|(_, scope)| *scope)
                .collect();
            let system = here.contains(&Scope::System);
            prop_assert!(!system || here.len() == 1, "{:?}", here);
            let unlike = here.iter().enumerate().all(|(at, one)| !here[..at].contains(one));
            prop_assert!(unlike, "{:?}", here);
        }
        // A set that is forced is never refused, and the last one that is counts.
        for (request, allocation) in requests.iter().zip(&allocations) {
            prop_assert!(!request.force || !matches!(allocation, Allocation::Refused { .. }), "{:?}", allocation);
        }
        for (number, allocation) in allocations.iter().enumerate() {
            if let Allocation::Evicted(Evicted { by, acquired, evicted, .. }) = allocation {
                prop_assert!(*by > number && requests[*by].force && acquired < evicted);
            }
        }
    }
}

pub(super) fn task(name: &'static str, cpu: Option<u16>, parent: Option<u16>) -> Task<'static> {
    Task { cpu, ..super::jobs::task(name, parent) }
}

pub(super) fn item(sets: &[(&'static str, Bind, bool)]) -> count::Count<'static> {
    let request = CountRequest { event: "r00c0:u".into(), ..CountRequest::default() };
    let set = |(name, bind, force): &(&'static str, Bind, bool)| CountSet {
        name: (*name).into(),
        requests: vec![request.clone()],
        together: false,
        bind: bind.clone(),
        alone: false,
        force: *force,
        ..CountSet::default()
    };
    count::Count {
        nested: false,
        name: "job".into(),
        requests: vec![],
        together: false,
        at_overflow: count::AtOverflow::Same,
        passes: 0,
        interval_ns: 0,
        limit_us: 1,
        workload: Workload {
            tasks: vec![task("a", None, None), task("b", Some(2), None), task("c", None, Some(1))],
            tick_ns: 1_000_000,
            jitter: None,
        },
        bind: Bind::System,
        alone: false,
        sets: sets.iter().map(set).collect(),
        gate: vec![],
        energy: vec![],
        uncore: vec![],
        console: false,
    }
}

#[test]
fn c3_each_bind_takes_its_processors_and_says_for_whom() {
    let (_, _, _, known) = machines().nth(3).unwrap();
    let cpus = |bind: Bind| Sets::new(&item(&[("s", bind, false)]), &known, &[0, 1, 2]).cpus();
    assert_eq!(cpus(Bind::System), [0, 2]);
    assert_eq!(cpus(Bind::AllProcessors), [0, 1, 2]);
    assert_eq!(cpus(Bind::Processor(1)), [1]);
    assert_eq!(cpus(Bind::Tasks(vec![2])), [2]);
    assert_eq!(cpus(Bind::Tasks(vec![2, 0])), [0, 2]);
    let job = item(&[
        ("one", Bind::Tasks(vec![0]), false),
        ("all", Bind::AllProcessors, true),
        ("two", Bind::Tasks(vec![1, 2]), false),
        ("one cpu", Bind::Processor(2), false),
        ("any", Bind::System, false),
    ]);
    let sets = Sets::new(&job, &known, &[0, 1, 2]);
    let shares = sets.shares(2).sets;
    assert_eq!(
        (shares.len(), shares[0].number, &shares[0].scopes[..]),
        (1, 1, &[Scope::System][..])
    );
    let result = whole(&job, sets, vec![]);
    let words: Vec<&str> = result.sets.iter().map(|set| set.bind.as_str()).collect();
    assert_eq!(words, ["task a", "all processors", "tasks b, c", "processor 2", "the system"]);
    let lost = result.sets[0].evicted.clone().unwrap();
    assert_eq!(
        (lost.by.as_str(), lost.processor, lost.acquired, lost.generation),
        ("all", 0, 0, 1)
    );
    let refused = result.sets[2..].iter().map(|set| set.refused.clone().unwrap());
    let reasons: Vec<String> = refused.collect();
    assert!(reasons[0].starts_with("on processor 2: busy: the whole system"), "{reasons:?}");
    assert!(reasons[2].starts_with("busy: the whole system"), "{reasons:?}");
}

#[test]
fn i7_parts_of_processors_add_up_each_scaled_by_its_own_time() {
    let value = |raw, counted, enabled, scaled| CountValue { raw, scaled, counted, enabled };
    let part = |number, sum: CountValue, task: usize, passes| {
        let mut tasks = vec![value(0, 0, 0, Some(0)); 3];
        tasks[task] = value(sum.raw - 1, sum.counted, sum.enabled, sum.scaled.map(|s| s - 1));
        let kernel = value(1, 0, 0, Some(1));
        let event =
            CountedEvent { sum, kernel, tasks, overflows: Some(2), ..CountedEvent::default() };
        PartOfSet { number, events: vec![event], groups: 2, passes }
    };
    let here = Part {
        sets: vec![part(1, value(10, 50, 100, Some(20)), 0, 7)],
        ticks: 3,
        switches: 5,
        ..Part::default()
    };
    // Two claims of one set on the other processor.
    let there = Part {
        sets: vec![
            part(1, value(6, 10, 30, Some(18)), 1, 4),
            part(1, value(4, 9, 9, Some(4)), 2, 9),
        ],
        ticks: 4,
        ..Part::default()
    };
    let (_, _, _, known) = machines().nth(3).unwrap();
    let job = item(&[("none", Bind::System, false), ("both", Bind::Processor(1), false)]);
    let sets = Sets::new(&job, &known, &[0, 1, 2]);
    let result = whole(&job, sets, vec![(0, here), (2, there)]);
    assert_eq!((result.ticks, result.switches), (7, 5));
    let numbers: Vec<u32> = result.cpus.iter().map(|cpu| cpu.processor).collect();
    assert_eq!((numbers, result.cpus[1].ticks), (vec![0, 2], 4));
    assert!(result.events.is_empty() && result.sets[0].events.is_empty());
    let both = &result.sets[1];
    assert_eq!((both.groups, both.passes), (2, 4));
    let event = &both.events[0];
    assert_eq!(event.sum, value(20, 69, 139, Some(42)));
    let there = value(10, 19, 39, Some(22));
    assert_eq!(event.cpus, [value(10, 50, 100, Some(20)), there]);
    assert_eq!((event.kernel.raw, event.overflows), (3, Some(6)));
    assert_eq!(event.tasks.iter().map(|task| task.raw).collect::<Vec<_>>(), [9, 5, 3]);
}

/// A child that has a set of its own beside its parent's: its ticks are that set's.
#[test]
fn c3_i1_a_childs_own_set_takes_turns_at_the_childs_ticks() {
    for (model, mut bench, driver, known) in machines() {
        let parent = ("parent", Bind::Tasks(vec![0]), false);
        let mut job = item(&[parent, ("child", Bind::Tasks(vec![2]), false)]);
        job.workload.tasks[1].cpu = None;
        let many = driver.capabilities().general.count_ones() as usize + 1;
        let turns = CountRequest { event: "0xc0.0x00:c=1:u".into(), ..CountRequest::default() };
        job.sets[1].requests = vec![turns; many];
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        run.created(0, None);
        run.created(1, None);
        run.created(2, Some(0));
        for task in [0, 2, 2, 0, 2, 2] {
            run.switched(None, Some(task), &mut bench).unwrap();
            bench.run(Ring::User, 1_000);
            run.switched(Some(task), None, &mut bench).unwrap();
            run.tick(Some(task), &mut bench).unwrap();
        }
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        let [parent, child] = &result.sets[..] else { panic!("{model:?}") };
        assert_eq!((parent.passes, child.groups, child.passes), (0, 2, 2), "{model:?}");
        assert_eq!(parent.events[0].sum.raw, 2_000, "{model:?}");
        for event in &child.events {
            let CountValue { scaled, counted, enabled, .. } = event.sum;
            assert_eq!((scaled, enabled), (Some(4_000), 4_000), "{model:?}: {event:?}");
            assert!(counted > 0, "{model:?}: {event:?}");
        }
    }
}

/// Sets of tasks take turns within the time of their task alone, and its counts are the set's.
#[test]
fn c3_i1_sets_of_two_tasks_take_turns_each_in_its_tasks_time() {
    for (model, mut bench, driver, known) in machines() {
        let mut job =
            item(&[("a", Bind::Tasks(vec![0]), false), ("c", Bind::Tasks(vec![2]), false)]);
        job.workload.tasks[1].cpu = None;
        let many = driver.capabilities().general.count_ones() as usize + 1;
        let turns = CountRequest { event: "0xc0.0x00:c=1:u".into(), ..CountRequest::default() };
        job.sets[0].requests = vec![turns; many];
        let sets = Sets::new(&job, &known, &[0]);
        let mut run = CountRun::begin(&job, sets.shares(0), &driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        (0..3).for_each(|task| run.created(task, None));
        for turn in 0..60_u16 {
            let task = turn % 3;
            run.switched(None, Some(task), &mut bench).unwrap();
            bench.run(Ring::User, 1_000 * (u64::from(task) + 1));
            run.switched(Some(task), None, &mut bench).unwrap();
            bench.run(Ring::Kernel, 77);
            run.tick(Some(task), &mut bench).unwrap();
        }
        let result = whole(&job, sets, vec![(0, run.finish(&mut bench).unwrap())]);
        let [first, third] = &result.sets[..] else { panic!("{model:?}") };
        assert_eq!((first.groups, third.groups, result.ticks), (2, 1, 60), "{model:?}");
        // Its 20 ticks are ten passes; one group has nobody to take turns with.
        assert_eq!((first.passes, third.passes), (10, 0), "{model:?}");
        for event in &first.events {
            let CountValue { scaled, counted, enabled, .. } = event.sum;
            assert_eq!((scaled, enabled), (Some(20_000), 20_000), "{model:?}: {event:?}");
            assert!(counted > 0 && counted < enabled, "{model:?}: {event:?}");
            assert_eq!((event.tasks[0], event.tasks[1].enabled), (event.sum, 0), "{model:?}");
        }
        let raw: Vec<u64> = third.events[0].tasks.iter().map(|task| task.raw).collect();
        assert_eq!((raw, third.events[0].sum.raw), (vec![0, 0, 60_000], 60_000), "{model:?}");
    }
}
