use super::*;
use crate::counting::contexts::{ContextError, Contexts};
use crate::counting::owner::{Ask, Claim, Force, Owner, OwnerError, Right, Scope};
use arch::pmu::Rings;

/// A processor whose scheduler runs what it is told to.
struct Scheduler {
    bench: FakeMachine,
    contexts: Contexts,
    running: Option<u16>,
    /// Instructions of each task and of the kernel.
    truth: [u64; 5],
}

const TASKS: u16 = 4;

impl Scheduler {
    fn new(bench: FakeMachine) -> Self {
        let contexts = Contexts::new(Owner::new(Ok(()), TASKS), TASKS);
        Self { bench, contexts, running: None, truth: [0; 5] }
    }

    fn bind(
        &mut self,
        set: Set,
        driver: &Driver,
        scope: Scope,
        force: Force,
    ) -> Result<Claim, ContextError> {
        let ask = Ask { scope, right: Right::Any, force };
        self.contexts.bind(set, Run::default(), driver.clone(), ask, &mut self.bench)
    }

    fn switch(&mut self, to: Option<u16>) {
        match (self.running, to) {
            (Some(from), Some(to)) if self.contexts.switched_planned(from, to, &mut self.bench) => {
            }
            (from, to) => self.contexts.switched(from, to, &mut self.bench).unwrap(),
        }
        self.running = to;
    }

    /// Whoever runs executes so many instructions: tasks in ring 3, the kernel in ring 0.
    fn run(&mut self, instructions: u64) {
        let ring = if self.running.is_some() { Ring::User } else { Ring::Kernel };
        self.truth[self.running.map_or(4, usize::from)] += instructions;
        self.bench.run(ring, instructions);
        if std::mem::take(&mut self.bench.found) != 0 {
            self.contexts.interrupt(&mut self.bench).unwrap();
        }
    }

    fn task(&mut self, claim: &Claim, task: u16) -> Vec<u64> {
        let counts = self.contexts.task(claim, task, &mut self.bench).unwrap();
        counts.counts().iter().map(|count| count.raw).collect()
    }
}

#[test]
fn i8_t9_each_task_has_its_own_count_and_the_machine_the_sum() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = together(vec![instructions(), instructions().in_rings(Rings::USER)], &known);
        let claim = machine.bind(set, &driver, Scope::System, Force::Ask).unwrap();
        for turn in 1..200u64 {
            machine.switch([None, Some(0), Some(1), Some(2)][(turn * 7 % 4) as usize]);
            machine.run(turn * 31 % 97);
        }
        for task in 0..TASKS {
            let truth = machine.truth[usize::from(task)];
            assert_eq!(machine.task(&claim, task), [truth; 2], "{model:?}");
        }
        let kernel = machine.contexts.kernel(&claim, &mut machine.bench).unwrap();
        assert_eq!((kernel.counts()[0].raw, kernel.counts()[1].raw), (machine.truth[4], 0));
        let mut all = Counts::new(machine.contexts.session(&claim).unwrap().set());
        let session = machine.contexts.session(&claim).unwrap();
        session.sample(&mut machine.bench, &mut all).unwrap();
        assert_eq!(all.counts()[0].raw, machine.truth.iter().sum::<u64>(), "{model:?}");
        assert_eq!(machine.contexts.switches(), 199);
    }
}

#[test]
fn c3_m14_a_set_bound_to_a_task_counts_nothing_else() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let first = together(vec![instructions()], &known);
        let second = together(vec![instructions().in_rings(Rings::USER), instructions()], &known);
        let first = machine.bind(first, &driver, Scope::Task(0), Force::Ask).unwrap();
        let second = machine.bind(second, &driver, Scope::Task(1), Force::Ask).unwrap();
        for (task, instructions) in [
            (None, 5),
            (Some(0), 100),
            (Some(1), 7),
            (Some(2), 1000),
            (Some(0), 20),
            (None, 3),
            (Some(1), 1),
        ] {
            machine.switch(task);
            machine.run(instructions);
        }
        assert_eq!(machine.task(&first, 0), [120], "{model:?}");
        assert_eq!(machine.task(&second, 1), [8, 8], "{model:?}");
        assert_eq!((machine.task(&first, 1), machine.task(&second, 2)), (vec![0], vec![0, 0]));
        // Time counts only while the task runs.
        let counts = machine.contexts.task(&first, 0, &mut machine.bench).unwrap();
        assert_eq!((counts.counts()[0].enabled, counts.counts()[0].share()), (120, 1_000_000));
    }
}

/// The task loses the processor before the interrupt of its overflow comes, and gets it back.
#[test]
fn m6_i8_an_overflow_that_a_switch_finds_ends_counting() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = together(vec![instructions().every(100)], &known);
        let run = Run { at_overflow: AtOverflow::Stop, ..Run::default() };
        let ask = Ask { scope: Scope::Task(0), right: Right::Any, force: Force::Ask };
        let claim = machine.contexts.bind(set, run, driver, ask, &mut machine.bench).unwrap();
        machine.switch(Some(0));
        machine.bench.interrupts = false;
        machine.run(110);
        for task in [None, Some(0), None, Some(0)] {
            machine.switch(task);
            machine.bench.interrupts = true;
            machine.run(90);
        }
        // Where an overflow freezes the counters, nothing after it is counted.
        let [counted] = machine.task(&claim, 0)[..] else { panic!("{model:?}") };
        assert!((100..=110).contains(&counted), "{model:?}: {counted}");
    }
}

#[test]
fn i8_a_child_starts_at_zero_and_is_added_to_its_parent_when_it_exits() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = together(vec![instructions()], &known);
        let claim = machine.bind(set, &driver, Scope::Task(0), Force::Ask).unwrap();
        machine.switch(Some(0));
        machine.run(50);
        machine.contexts.created(1, Some(0));
        machine.contexts.created(2, None);
        machine.switch(Some(1));
        machine.run(7);
        machine.contexts.created(3, Some(1));
        machine.switch(Some(3));
        machine.run(1);
        machine.switch(Some(2));
        machine.run(1000);
        assert_eq!(
            [0, 1, 2, 3].map(|task| machine.task(&claim, task)[0]),
            [50, 7, 0, 1],
            "{model:?}"
        );
        machine.contexts.exited(3, Some(1), &mut machine.bench).unwrap();
        machine.switch(Some(1));
        machine.run(2);
        machine.contexts.exited(1, Some(0), &mut machine.bench).unwrap();
        machine.contexts.exited(2, None, &mut machine.bench).unwrap();
        assert_eq!(machine.task(&claim, 0), [60], "{model:?}");
    }
}

/// A parent reads its own count and that of its descendants: of those that run, of those that have exited, and of those whose
/// parent has exited before them.
#[test]
fn i8_c3_a_parent_reads_its_descendants_sum_while_they_run() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = together(vec![instructions()], &known);
        let claim = machine.bind(set, &driver, Scope::System, Force::Ask).unwrap();
        machine.contexts.created(0, None);
        machine.contexts.created(1, Some(0));
        machine.contexts.created(2, Some(1));
        for (task, count) in [(0, 50), (1, 7), (2, 4), (0, 1)] {
            machine.switch(Some(task));
            machine.run(count);
        }
        let read = |machine: &mut Scheduler, task| {
            let both = machine.contexts.family(&claim, task, 0, &mut machine.bench).unwrap();
            both.unwrap().map(|count| count.raw)
        };
        assert_eq!(read(&mut machine, 0), [51, 11], "{model:?}: both run");
        assert_eq!(read(&mut machine, 1), [7, 4], "{model:?}");
        // The child exits before its own: the grandchild is the first one's from here on.
        machine.contexts.exited(1, Some(0), &mut machine.bench).unwrap();
        machine.switch(Some(2));
        machine.run(10);
        assert_eq!(read(&mut machine, 0), [51, 21], "{model:?}: one has exited, one runs");
        machine.contexts.exited(2, Some(0), &mut machine.bench).unwrap();
        assert_eq!(read(&mut machine, 0), [51, 21], "{model:?}: both have exited");
        assert_eq!(machine.task(&claim, 0), [72], "{model:?}");
        let none = machine.contexts.family(&claim, 0, 1, &mut machine.bench).unwrap();
        assert_eq!(none, None, "no such request");
    }
}

/// Children that come into being after that are not counted, if the set says so.
#[test]
fn i8_children_are_left_out_where_the_set_says_so() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = together(vec![instructions()], &known);
        let claim = machine.bind(set, &driver, Scope::Task(0), Force::Ask).unwrap();
        machine.contexts.leave_children_out(&claim, true).unwrap();
        machine.contexts.created(0, None);
        machine.contexts.created(1, Some(0));
        for (task, count) in [(0, 50), (1, 7)] {
            machine.switch(Some(task));
            machine.run(count);
        }
        assert_eq!([0, 1].map(|task| machine.task(&claim, task)[0]), [50, 0], "{model:?}");
        machine.contexts.exited(1, Some(0), &mut machine.bench).unwrap();
        assert_eq!(machine.task(&claim, 0), [50], "{model:?}");
    }
}

#[test]
fn i6_c10_binding_the_system_by_force_evicts_the_tasks_sets() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = || together(vec![instructions()], &known);
        let task = machine.bind(set(), &driver, Scope::Task(0), Force::Ask).unwrap();
        machine.switch(Some(0));
        machine.run(10);
        let busy = machine.bind(set(), &driver, Scope::System, Force::Ask);
        assert_eq!(busy.unwrap_err(), ContextError::Owner(OwnerError::TasksCount(1)));
        let system = machine.bind(set(), &driver, Scope::System, Force::Evict).unwrap();
        machine.run(5);
        machine.switch(Some(1));
        machine.run(3);
        let stale = machine.contexts.task(&task, 0, &mut machine.bench).unwrap_err();
        assert_eq!(stale, ContextError::Owner(OwnerError::Stale { acquired: 0, evicted: 1 }));
        assert_eq!([0, 1].map(|task| machine.task(&system, task)[0]), [5, 3], "{model:?}");
        machine.contexts.unbind(&system, &mut machine.bench).unwrap();
        machine.bind(set(), &driver, Scope::Task(1), Force::Ask).unwrap();
    }
}

#[test]
fn i8_i6_a_child_has_one_set_its_parents_or_its_own() {
    let (_, bench, driver, known) = machines().nth(3).unwrap();
    let mut machine = Scheduler::new(bench);
    let set = || together(vec![instructions()], &known);
    let parent = machine.bind(set(), &driver, Scope::Task(0), Force::Ask).unwrap();
    let own = machine.bind(set(), &driver, Scope::Task(2), Force::Ask).unwrap();
    machine.contexts.created(1, Some(0));
    machine.contexts.created(2, Some(0));
    let refused = machine.bind(set(), &driver, Scope::Task(1), Force::Ask).unwrap_err();
    assert_eq!(refused, ContextError::Owner(OwnerError::TaskCounted(1)));
    for task in 0..3 {
        machine.switch(Some(task));
        machine.run(100 + u64::from(task));
    }
    assert_eq!([0, 1, 2].map(|task| machine.task(&parent, task)[0]), [100, 101, 0]);
    assert_eq!(machine.task(&own, 2), [102]);
    let taken = machine.bind(set(), &driver, Scope::Task(1), Force::Evict).unwrap();
    machine.switch(Some(1));
    machine.run(7);
    assert_eq!((machine.task(&parent, 1), machine.task(&taken, 1)), (vec![101], vec![7]));
}

#[test]
fn i6_whoever_asks_in_vain_disturbs_nobody() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = |request| together(vec![request], &known);
        let first = machine.bind(set(instructions()), &driver, Scope::Task(0), Force::Ask).unwrap();
        machine.switch(Some(0));
        machine.run(10);
        machine.bind(set(instructions()), &driver, Scope::System, Force::Ask).unwrap_err();
        machine.run(5);
        // Nobody is in the way, but no counter can do it.
        let refused =
            machine.bind(set(instructions().every(1 << 60)), &driver, Scope::Task(1), Force::Ask);
        assert!(refused.unwrap_err().to_string().contains("request 0 (r00c0)"));
        machine.run(3);
        machine.bind(set(instructions()), &driver, Scope::Task(1), Force::Ask).unwrap();
        machine.run(1);
        assert_eq!(machine.task(&first, 0), [19], "{model:?}");
    }
}

proptest! {
    /// Any order of switches, ticks and work, with more requests than counters: nothing is lost between the tasks.
    #[test]
    fn i8_i1_t9_tasks_and_turns_together(
        which in 0..machines().count(),
        steps in prop::collection::vec((prop::option::of(0u16..TASKS), 0u64..200, any::<bool>()), 1..80),
    ) {
        let (model, bench, driver, known) = machines().nth(which).unwrap();
        let mut machine = Scheduler::new(bench);
        let counters = driver.capabilities().general.count_ones() as usize;
        let requests = (0..2 * counters).map(|_| Request::new("0xc0.0x00:c=1")).collect();
        let set = Set::build(requests, Sharing::InTurns, &known).unwrap();
        let claim = machine.bind(set, &driver, Scope::System, Force::Ask).unwrap();
        for (to, instructions, tick) in steps {
            machine.switch(to);
            machine.run(instructions);
            if tick {
                machine.contexts.tick(None, &mut machine.bench).unwrap();
            }
        }
        let mut sums = vec![0; 2 * counters];
        for task in 0..=TASKS {
            let counts = match task {
                TASKS => machine.contexts.kernel(&claim, &mut machine.bench).unwrap(),
                _ => machine.contexts.task(&claim, task, &mut machine.bench).unwrap(),
            };
            for (sum, count) in sums.iter_mut().zip(counts.counts()) {
                prop_assert_eq!(count.enabled, machine.truth[usize::from(task)], "{:?} {}", model, task);
                prop_assert_eq!(count.raw, count.counted);
                *sum += count.raw;
            }
        }
        let session = machine.contexts.session(&claim).unwrap();
        let all = raw(session, &mut machine.bench);
        prop_assert_eq!(sums, all, "{:?}", model);
    }
}

/// A number that is used again is another task: it has nothing of the one before.
#[test]
fn i8_a_task_that_is_created_again_starts_at_zero() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let set = together(vec![instructions()], &known);
        let claim = machine.bind(set, &driver, Scope::Task(0), Force::Ask).unwrap();
        machine.switch(Some(0));
        machine.run(50);
        for length in [7, 3] {
            machine.contexts.created(1, Some(0));
            assert_eq!(machine.task(&claim, 1), [0], "{model:?}");
            machine.switch(Some(1));
            machine.run(length);
            machine.switch(Some(0));
            assert_eq!(machine.task(&claim, 1), [length], "{model:?}");
            machine.contexts.exited(1, Some(0), &mut machine.bench).unwrap();
        }
        assert_eq!(machine.task(&claim, 0), [60], "{model:?}: 50, and 7 and 3 of two children");
    }
}

/// A set of its own comes before its parent's, and keeps the task out of that one.
#[test]
fn i8_a_task_with_a_set_of_its_own_is_none_of_its_parents() {
    for (model, bench, driver, known) in machines() {
        let mut machine = Scheduler::new(bench);
        let parents = together(vec![instructions()], &known);
        let parents = machine.bind(parents, &driver, Scope::Task(0), Force::Ask).unwrap();
        let own = together(vec![instructions()], &known);
        let own = machine.bind(own, &driver, Scope::Task(1), Force::Ask).unwrap();
        machine.contexts.created(1, Some(0));
        assert_eq!(machine.contexts.counts_of(1), Some(own), "{model:?}");
        machine.contexts.unbind(&own, &mut machine.bench).unwrap();
        assert_eq!(machine.contexts.counts_of(1), None, "{model:?}");
        machine.switch(Some(1));
        machine.run(50);
        machine.switch(Some(0));
        machine.run(20);
        assert_eq!([0, 1].map(|task| machine.task(&parents, task)), [[20], [0]], "{model:?}");
    }
}
