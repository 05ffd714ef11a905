//! Sets of a job that are bound, evicted and released while its tasks run.

use super::jobs::{event, item, task};
use super::*;
use crate::counting::job::{CountRun, Sets, timed, whole};
use crate::counting::ledger::Ledger;
use crate::counting::owner::Scope;
use crate::tasks::Read;
use protocol::job::count::{self, Bind, CountSet, Schedule, When};
use protocol::record::{CountResult, CountedSet};

pub(super) fn set(
    name: String,
    task: Option<u16>,
    schedule: Schedule,
    force: bool,
) -> CountSet<'static> {
    CountSet {
        name: name.into(),
        requests: vec![event("r00c0:u")],
        bind: task.map_or(Bind::System, |task| Bind::Tasks(vec![task])),
        schedule,
        force,
        ..CountSet::default()
    }
}

pub(super) fn job(sets: Vec<CountSet<'static>>) -> count::Count<'static> {
    let mut job = count::Count { sets, ..item(vec![], 0) };
    job.workload.tasks = vec![task("a", None), task("b", None), task("c", None)];
    job
}

/// A processor that tells of what it does as the firmware does.
pub(super) struct Processor {
    pub run: CountRun,
    pub bench: FakeMachine,
    running: Option<u16>,
}

impl Processor {
    pub fn new(job: &count::Count, sets: &Sets, driver: &Driver, mut bench: FakeMachine) -> Self {
        let mut run = CountRun::begin(job, sets.shares(0), driver, &mut bench).unwrap();
        run.start(&mut bench).unwrap();
        (0..3).for_each(|task| run.created(task, None));
        Self { run, bench, running: None }
    }

    pub fn switch(&mut self, to: Option<u16>) {
        let from = std::mem::replace(&mut self.running, to);
        match (from, to) {
            (Some(from), Some(to)) if self.run.switched_planned(from, to, &mut self.bench) => {}
            _ => self.run.switched(from, to, &mut self.bench).unwrap(),
        }
    }

    pub fn marker(&mut self, marker: u32) {
        let task = self.running;
        self.switch(None);
        self.bench.run(Ring::Kernel, 9);
        self.run.marked(task, marker, &mut self.bench).unwrap();
        self.switch(task);
    }

    pub fn tick(&mut self) {
        let task = self.running;
        self.switch(None);
        self.run.tick(task, &mut self.bench).unwrap();
        self.switch(task);
    }

    pub fn end(mut self, job: &count::Count, sets: Sets) -> CountResult {
        self.switch(None);
        let part = self.run.finish(&mut self.bench).unwrap();
        whole(job, sets, vec![(0, part)])
    }
}

/// Instructions of each task while a set had the counters, as the test adds them up.
fn add(ledger: &Ledger, job: &count::Count, truth: &mut [[u64; 3]], task: u16, instructions: u64) {
    for (number, truth) in truth.iter_mut().enumerate().take(job.sets.len()) {
        let counts = |claim: crate::counting::owner::Claim| match claim.scope() {
            Scope::System => true,
            Scope::Task(own) => own == task,
        };
        if ledger.claims(number, 0).any(counts) {
            truth[usize::from(task)] += instructions;
        }
    }
}

fn found(set: &CountedSet) -> ([u64; 3], u64, u64) {
    let Some(event) = set.events.first() else { return ([0; 3], 0, 0) };
    let tasks = [0, 1, 2].map(|task| event.tasks[task].raw);
    (tasks, event.sum.raw, set.bindings.iter().map(|binding| binding.raw[0]).sum())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Each set has what its tasks executed while it had the counters, to the instruction, and its times add up to that.
    #[test]
    fn i6_c10_counts_are_of_who_had_the_counters_whenever_that_changed(
        asked in prop::collection::vec(
            (prop::option::of(0u16..3), prop::option::of(0u32..4), prop::option::of(0u32..4), any::<bool>(), any::<bool>()),
            1..6,
        ),
        steps in prop::collection::vec((0u16..3, 1u64..300, 0u32..8), 1..60),
        model in 0..machines().count(),
    ) {
        let sets = asked.iter().zip(1..).map(|(&(task, at, until, force, wait), number)| {
            let [at, until] = [at, until.filter(|_| at != until)].map(|one| one.map(When::Marker));
            set(format!("s{number}"), task, Schedule { at, until, wait }, force)
        });
        let job = job(sets.collect());
        let (model, bench, driver, known) = machines().nth(model).unwrap();
        let sets = Sets::new(&job, &known, &[0]);
        let mut ledger = sets.shares(0).ledger;
        let mut truth = vec![[0; 3]; job.sets.len()];
        let mut processor = Processor::new(&job, &sets, &driver, bench);
        for (task, instructions, marker) in steps {
            processor.switch(Some(task));
            processor.bench.run(Ring::User, instructions);
            add(&ledger, &job, &mut truth, task, instructions);
            // Half of the steps have no marker that is anybody's.
            processor.marker(marker);
            ledger.happens(|when| when == When::Marker(marker), Some(0));
        }
        let result = processor.end(&job, sets);
        let scheduled = job.sets.iter().any(|set| set.schedule.is_given());
        for (set, truth) in result.sets.iter().zip(&truth) {
            let (tasks, sum, times) = found(set);
            prop_assert_eq!(tasks, *truth, "{:?}: {:?}", model, set);
            prop_assert_eq!(sum, truth.iter().sum::<u64>(), "{:?}", model);
            prop_assert_eq!(times, if scheduled { sum } else { 0 }, "{:?}", model);
        }
    }
}

#[test]
fn i6_c10_a_reader_of_a_count_that_is_no_longer_its_own_is_told_once() {
    let (at, until) = (Some(When::Marker(1)), Some(When::Marker(2)));
    let sets = vec![
        set("own".into(), Some(1), Schedule::default(), false),
        set("machine".into(), None, Schedule { at, until, wait: false }, true),
    ];
    let job = job(sets);
    for (model, bench, driver, known) in machines() {
        let sets = Sets::new(&job, &known, &[0]);
        let mut processor = Processor::new(&job, &sets, &driver, bench);
        processor.switch(Some(1));
        let mut step = |marker: Option<u32>| {
            processor.bench.run(Ring::User, 10);
            if let Some(marker) = marker {
                processor.marker(marker);
            }
            processor.run.reads(1, 0, &mut processor.bench).unwrap()
        };
        let counts = |own| Some(Read::Counts { own, children: 0 });
        assert_eq!((step(None), step(None)), (counts(10), counts(20)), "{model:?}");
        // The evicted set's 30 are no answer, nor are the machine's.
        let stale = |acquired, generation| Some(Read::Stale { acquired, generation });
        assert_eq!((step(Some(1)), step(None)), (stale(0, 1), counts(10)), "{model:?}");
        assert_eq!((step(Some(2)), step(None)), (stale(1, 1), None), "{model:?}: nobody counts it");
        let result = processor.end(&job, sets);
        assert_eq!((result.readings.len(), result.stale.len()), (3, 2), "{model:?}");
        assert_eq!((result.stale[0].task, result.stale[0].set, result.stale[1].set), (1, 0, 1));
        let own = &result.sets[0];
        assert_eq!(found(own), ([0, 30, 0], 30, 30), "{model:?}");
        assert_eq!(
            own.evicted.as_ref().map(|lost| (&*lost.by, lost.generation)),
            Some(("machine", 1))
        );
        assert_eq!(own.bindings[0].evicted_by.as_deref(), Some("machine"), "{model:?}");
    }
}

#[test]
fn i6_times_are_ticks_and_each_is_noticed_once() {
    // Ticks are 1 ms here: the second one, and the fourth.
    let (at, until) = (Some(When::Microseconds(1_500)), Some(When::Microseconds(4_000)));
    let job = job(vec![set("s".into(), None, Schedule { at, until, wait: false }, false)]);
    for (model, bench, driver, known) in machines() {
        let sets = Sets::new(&job, &known, &[0]);
        let mut processor = Processor::new(&job, &sets, &driver, bench);
        processor.switch(Some(0));
        for _ in 0..6 {
            processor.bench.run(Ring::User, 100);
            processor.tick();
        }
        let result = processor.end(&job, sets);
        let [binding] = &result.sets[0].bindings[..] else { panic!("{model:?}: {result:?}") };
        assert_eq!((binding.since.tick, binding.until.unwrap().tick), (2, 4), "{model:?}");
        assert_eq!((found(&result.sets[0]), binding.since.marker), (([200, 0, 0], 200, 200), None));
    }
}

/// Both times fall on the second tick: what the job says first happens first.
#[test]
fn i6_times_of_one_tick_happen_in_the_order_of_the_times() {
    let us = |us| Some(When::Microseconds(us));
    for (asks, gets) in [(1_200, false), (1_800, true), (1_900, true)] {
        let first = Schedule { at: None, until: us(1_800), wait: false };
        let second = Schedule { at: us(asks), until: None, wait: false };
        let job = job(vec![
            set("first".into(), None, first, false),
            set("second".into(), None, second, false),
        ]);
        for (model, bench, driver, known) in machines() {
            let sets = Sets::new(&job, &known, &[0]);
            let mut processor = Processor::new(&job, &sets, &driver, bench);
            processor.switch(Some(0));
            for _ in 0..3 {
                processor.bench.run(Ring::User, 100);
                processor.tick();
            }
            let result = timed(processor.end(&job, sets), 1_000_000);
            let [first, second] = &result.sets[..] else { panic!("{model:?}: {result:?}") };
            let until = first.bindings[0].until.unwrap();
            assert_eq!((until.tick, until.due_us), (2, Some(1_800)), "{model:?}");
            // An instruction is a tick of the TSC here, and a microsecond.
            assert_eq!(
                (until.us, first.bindings[0].since.us),
                (Some(until.tsc), None),
                "{model:?}"
            );
            assert!(until.tsc >= 200, "{model:?}: {until:?}");
            let since = second.bindings.first().map(|binding| binding.since);
            assert_eq!(since.map(|one| (one.tick, one.due_us)), gets.then_some((2, Some(asks))));
            let counted = if gets { [100, 0, 0] } else { [0; 3] };
            assert_eq!(
                (found(first).0, found(second).0),
                ([200, 0, 0], counted),
                "{model:?} {asks}"
            );
            assert_eq!(second.refused.is_some(), !gets, "{model:?} {asks}: {second:?}");
        }
    }
}

/// What two sets, of a parent and of its child, count of the child, which runs 10 instructions to marker 1, 200 more to
/// marker 2 and 3,000 more to its end.
fn of_a_child(parent: Schedule, child: Schedule) -> impl Iterator<Item = (Model, [u64; 2])> {
    let job = job(vec![
        set("parent".into(), Some(0), parent, false),
        set("child".into(), Some(2), child, false),
    ]);
    machines().map(move |(model, bench, driver, known)| {
        let sets = Sets::new(&job, &known, &[0]);
        let mut processor = Processor::new(&job, &sets, &driver, bench);
        processor.run.created(2, Some(0));
        processor.switch(Some(2));
        for (instructions, marker) in [(10, 1), (200, 2), (3_000, 3)] {
            processor.bench.run(Ring::User, instructions);
            processor.marker(marker);
        }
        let result = processor.end(&job, sets);
        let counted = [0, 1].map(|number: usize| {
            let (tasks, sum, raw) = found(&result.sets[number]);
            assert_eq!((tasks, sum), ([0, 0, raw], raw), "{model:?}");
            raw
        });
        (model, counted)
    })
}

/// A child of a task that is counted has a set of its own for a while, and its parent's before and after.
#[test]
fn i6_i8_a_set_of_its_own_comes_before_the_parents_while_it_has_the_counters() {
    let (at, until) = (Some(When::Marker(1)), Some(When::Marker(2)));
    let child = Schedule { at, until, wait: false };
    for (model, counted) in of_a_child(Schedule::default(), child) {
        assert_eq!(counted, [3_010, 200], "{model:?}");
    }
}

/// Children begin with the first run of their parent, before any marker: a set that gets the counters later counts them all the
/// same, but while they have a set of their own.
#[test]
fn i6_i8_children_are_counted_by_a_set_that_is_bound_after_they_began() {
    let parent = Schedule { at: Some(When::Marker(1)), ..Schedule::default() };
    let child = Schedule { until: Some(When::Marker(2)), ..Schedule::default() };
    for (model, counted) in of_a_child(parent, child) {
        assert_eq!(counted, [3_000, 210], "{model:?}");
    }
}

/// Since when a set waits is told, also if it never gets the counters; and one that never had them has counted nothing.
#[test]
fn i6_who_waits_is_told_since_when_and_who_never_counted_has_no_counts() {
    let at = |marker| Some(When::Marker(marker));
    let waits = |from| Schedule { at: at(from), until: None, wait: true };
    let job = job(vec![
        set("first".into(), Some(0), Schedule { until: at(2), ..Schedule::default() }, false),
        set("second".into(), None, waits(1), false),
        set("third".into(), None, waits(3), false),
    ]);
    for (model, bench, driver, known) in machines() {
        let sets = Sets::new(&job, &known, &[0]);
        let mut processor = Processor::new(&job, &sets, &driver, bench);
        assert_eq!(
            [0, 1, 2, 3, 4].map(|n| processor.run.heeds(n)),
            [false, true, true, true, false]
        );
        processor.switch(Some(0));
        for marker in 1..4 {
            processor.bench.run(Ring::User, 100);
            processor.marker(marker);
        }
        processor.bench.run(Ring::User, 100);
        let result = processor.end(&job, sets);
        let [first, second, third] = &result.sets[..] else { panic!("{model:?}") };
        assert_eq!((found(first).0, first.waiting), ([200, 0, 0], None), "{model:?}");
        let [binding] = &second.bindings[..] else { panic!("{model:?}: {second:?}") };
        let waited = binding.waited.unwrap();
        assert_eq!((waited.marker, waited.tsc), (Some(1), 109), "{model:?}");
        assert_eq!((binding.since.marker, second.waiting), (Some(2), None), "{model:?}");
        // The second one has the kernel's nine instructions for none, as it counts ring 3.
        assert_eq!((found(second).0, second.events.len()), ([200, 0, 0], 1), "{model:?}");
        let since = third.waiting.unwrap();
        assert_eq!((since.marker, since.task), (Some(3), Some(0)), "{model:?}");
        assert!(third.refused.as_ref().unwrap().starts_with("it waited to the end"), "{model:?}");
        assert!(third.events.is_empty() && third.bindings.is_empty(), "{model:?}: {third:?}");
    }
}

/// A stale reader is told when it was evicted, and not who was evicted since.
#[test]
fn i6_c10_a_stale_reader_is_told_of_its_own_eviction() {
    let at = |marker| Schedule { at: Some(When::Marker(marker)), ..Schedule::default() };
    let job = job(vec![
        set("own".into(), Some(1), Schedule::default(), false),
        set("machine".into(), None, at(1), true),
        set("other".into(), Some(0), at(2), true),
    ]);
    for (model, bench, driver, known) in machines() {
        let sets = Sets::new(&job, &known, &[0]);
        let mut processor = Processor::new(&job, &sets, &driver, bench);
        processor.switch(Some(1));
        processor.bench.run(Ring::User, 10);
        let counts = Some(Read::Counts { own: 10, children: 0 });
        assert_eq!(processor.run.reads(1, 0, &mut processor.bench).unwrap(), counts);
        // The machine takes the counters, and loses them to another task.
        processor.marker(1);
        processor.marker(2);
        let stale = Some(Read::Stale { acquired: 0, generation: 1 });
        assert_eq!(processor.run.reads(1, 0, &mut processor.bench).unwrap(), stale, "{model:?}");
    }
}
