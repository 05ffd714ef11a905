//! The scheduler on a made-up processor, whose tasks take what time the test says.

use super::*;
use proptest::prelude::*;
use protocol::job::LoopCounter;
use protocol::record::TaskEnd;
use protocol::workload::{Ring, Task};
use std::collections::HashMap;

/// TSC ticks that a turn takes; the processor's clock.
pub(super) const TURN: u64 = 100;
const HZ: u64 = 1_000_000_000;

/// What a made-up task does besides its turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    /// Yields after every so many turns; 0: never.
    pub yields: u64,
    /// Raises an exception in place of this turn.
    pub fault: Option<u64>,
    /// Never ends.
    pub endless: bool,
}

/// Made-up processors: their time is one, and each runs its tasks alone.
pub(super) struct Made {
    habits: Vec<Habits>,
    turns: Vec<u64>,
    done: Vec<u64>,
    pub now: u64,
    /// TSC of the next tick, and the period if it has one.
    pub tick: Option<(u64, Option<u64>)>,
    taken: u64,
    /// TSC ticks that the kernel takes each time.
    pub cost: u64,
    /// The firmware's quick ways are taken where they answer.
    quick: bool,
    /// Processors work in turn where tasks move.
    pub in_turn: bool,
    /// What draws the order in which processors come where they do not.
    pub random: u64,
}

impl Made {
    pub fn new(habits: &[Habits]) -> Self {
        let (habits, done) = (habits.to_vec(), vec![0; habits.len()]);
        let (turns, tick, cost, random) = (vec![], None, 0, 1);
        let (quick, in_turn) = (true, true);
        Self { habits, done, turns, now: 1_000, tick, taken: 7, cost, quick, in_turn, random }
    }

    fn run_one(&mut self, scheduler: &mut dyn ProcessorScheduler) {
        let mut cause = Cause::Start;
        loop {
            let quickly = match cause {
                Cause::Yield if self.quick => scheduler.yields(self.now),
                Cause::Tick if self.quick => scheduler.ticked(self.now),
                _ => None,
            };
            let Decision { next, timer } = match quickly {
                Some(next) => Decision { next: Some(next), timer: Timer::Leave },
                None => scheduler.decide(cause, self.now),
            };
            self.set(timer);
            let Some(task) = next else { return };
            self.now += self.cost;
            cause = self.until_event(usize::from(task));
        }
    }

    pub fn set(&mut self, timer: Timer) {
        match timer {
            Timer::Leave => {}
            Timer::Once(ticks) => self.tick = Some((self.now + ticks, None)),
            Timer::Every(ticks) => self.tick = Some((self.now + ticks, Some(ticks))),
            Timer::Stop => self.tick = None,
        }
    }

    /// Runs `task` until something happens.
    pub fn until_event(&mut self, task: usize) -> Cause {
        let (habits, before) = (self.habits[task], self.done[task]);
        loop {
            if let Some((at, period)) = self.tick
                && at <= self.now
            {
                self.tick = period.map(|period| (at + period, Some(period)));
                self.taken += 1;
                return if self.done[task] == before { Cause::Stall } else { Cause::Tick };
            }
            if habits.fault == Some(self.done[task]) {
                return Cause::Fault;
            }
            if self.done[task] == self.turns[task] && !habits.endless {
                return Cause::Exit;
            }
            self.now += TURN;
            self.done[task] += 1;
            if habits.yields > 0 && self.done[task].is_multiple_of(habits.yields) {
                return Cause::Yield;
            }
        }
    }
}

/// Processors of the made-up machine.
const CPUS: u16 = 3;

impl Machine for Made {
    fn has(&self, cpu: u16) -> Result<(), String> {
        if cpu < CPUS { Ok(()) } else { Err(format!("there are {CPUS}")) }
    }

    fn tsc_hz(&self) -> u64 {
        HZ
    }

    fn load(&mut self, workload: &Workload) -> Result<Vec<Emitted>, String> {
        let tasks = &workload.tasks;
        self.turns = tasks.iter().map(|task| task.turns).collect();
        Ok(tasks.iter().map(|_| Emitted { init: 0..10, body: 64..70, exit: 80 }).collect())
    }

    fn run(&mut self, assigned: &mut [AssignedProcessor]) -> Option<Together> {
        for processor in assigned.iter_mut() {
            processor.scheduler.open();
            processor.scheduler.begin();
            self.run_one(processor.scheduler);
            processor.scheduler.end();
            processor.scheduler.close();
        }
        let processors = assigned.iter().map(|processor| u32::from(processor.cpu)).collect();
        Some(Together { processors, in_turn: true, ..Together::default() })
    }

    fn works_in_turn(&self) -> bool {
        self.in_turn
    }

    fn run_moving(
        &mut self,
        assigned: &mut [AssignedProcessor],
        handovers: &[Handover],
    ) -> Option<Together> {
        self.run_all(assigned, handovers)
    }

    fn left(&mut self, task: usize) -> Left {
        let r15 = self.turns[task].saturating_sub(self.done[task]);
        let frame = TrapFrame { vector: 6, rip: 66, r15, ..TrapFrame::default() };
        Left { frame, value: task as u64, ..Left::default() }
    }

    fn taken(&self, vector: u8) -> u64 {
        if vector == 0xd0 { self.taken } else { 0 }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Seen {
    Created(u16, Option<u16>),
    Switched(Option<u16>, Option<u16>),
    Exited(u16, Option<u16>),
    Tick,
    Phase(&'static str),
}

#[derive(Default)]
pub(super) struct Watcher(pub Vec<Seen>);

impl Observer for Watcher {
    fn created(&mut self, task: u16, parent: Option<u16>) {
        self.0.push(Seen::Created(task, parent));
    }
    fn switched(&mut self, from: Option<u16>, to: Option<u16>) {
        self.0.push(Seen::Switched(from, to));
    }
    fn exited(&mut self, task: u16, parent: Option<u16>) {
        self.0.push(Seen::Exited(task, parent));
    }
    fn tick(&mut self) {
        self.0.push(Seen::Tick);
    }
    fn opened(&mut self) {
        self.0.push(Seen::Phase("opened"));
    }
    fn loaded(&mut self) {
        self.0.push(Seen::Phase("loaded"));
    }
    fn ended(&mut self) {
        self.0.push(Seen::Phase("ended"));
    }
    fn closed(&mut self) {
        self.0.push(Seen::Phase("closed"));
    }
}

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

prop_compose! {
    /// A forest of tasks with their habits, and ticks.
    fn any_run()(
        raw in prop::collection::vec((0..60_u64, prop::option::of(any::<prop::sample::Index>()), 0..5_u64, prop::option::weighted(0.2, 0..60_u64)), 1..12),
        tick in prop_oneof![Just(0), 1..3_000_u64], jitter in prop::option::of(any::<u64>()),
    ) -> (Workload<'static>, Vec<Habits>) {
        let (mut tasks, mut habits) = (vec![], vec![]);
        for (index, (turns, parent, yields, fault)) in raw.into_iter().enumerate() {
            let parent = parent.filter(|_| index > 0).map(|parent| parent.index(index) as u16);
            tasks.push((turns, parent));
            habits.push(Habits { yields, fault, endless: false });
        }
        (workload(&tasks, tick, jitter.filter(|_| tick > 0)), habits)
    }
}

proptest! {
    #[test]
    fn t9_all_turns_are_run_and_each_task_is_seen_from_its_beginning_to_its_end((workload, habits) in any_run()) {
        let (summary, seen) = watched(&workload, 1_000_000, &habits);
        for ((result, task), habits) in summary.tasks.iter().zip(&workload.tasks).zip(&habits) {
            let faults = habits.fault.filter(|&at| at <= task.turns);
            prop_assert_eq!(result.end, if faults.is_some() { TaskEnd::Fault } else { TaskEnd::Exit });
            prop_assert_eq!(result.turns, faults.unwrap_or(task.turns));
            prop_assert_eq!(result.time, result.turns * TURN);
        }
        // One story without a gap: who is switched from is who was switched to.
        let (mut running, mut alive) = (None, HashMap::new());
        for (at, one) in seen.iter().enumerate() {
            match *one {
                Seen::Created(task, parent) => {
                    prop_assert_eq!(alive.insert(task, 0_u32), None);
                    prop_assert_eq!(workload.tasks[usize::from(task)].parent, parent);
                }
                Seen::Switched(from, to) => {
                    prop_assert_eq!(from, running);
                    prop_assert!(from != to && to.is_none_or(|task| alive.contains_key(&task)));
                    running = to;
                }
                Seen::Exited(task, parent) => {
                    prop_assert!(alive.remove(&task).is_some() && running.is_none(), "{at}");
                    prop_assert!(parent.is_none_or(|parent| alive.contains_key(&parent)));
                    let mut children = workload.tasks.iter().zip(0..).filter(|(one, _)| one.parent == Some(task));
                    prop_assert!(children.all(|(_, child)| !alive.contains_key(&child)));
                }
                Seen::Tick | Seen::Phase(_) => {}
            }
        }
        prop_assert!(running.is_none() && alive.is_empty());
        prop_assert_eq!(summary.ticks.count, seen.iter().filter(|&&one| one == Seen::Tick).count() as u64);
        prop_assert_eq!(summary.switches, 1 + summary.tasks.iter().map(|task| task.switches).sum::<u64>());
    }

    /// The quick ways at a yield and at a tick say the same as the long one, to the last tick and account.
    #[test]
    fn t9_the_quick_ways_tell_the_same_story(
        (workload, habits) in any_run(), limit_us in prop_oneof![Just(1_000_000), 1..20_u64],
    ) {
        let slow = Made { quick: false, ..Made::new(&habits) };
        prop_assert_eq!(watched(&workload, limit_us, &habits), watched_on(slow, &workload, limit_us));
    }

    /// Each tick lets the next one in the queue go on: a task waits for as many ticks as there are tasks at most.
    #[test]
    fn t9_no_task_starves((workload, habits) in any_run()) {
        let (_, seen) = watched(&workload, 1_000_000, &habits);
        let mut waiting: HashMap<u16, usize> = HashMap::new();
        for (at, one) in seen.iter().enumerate() {
            match *one {
                Seen::Created(task, _) => {
                    waiting.insert(task, 0);
                }
                Seen::Tick => {
                    for (task, ticks) in &mut waiting {
                        *ticks += 1;
                        prop_assert!(*ticks <= workload.tasks.len(), "task {task} waits for {ticks} ticks");
                    }
                }
                Seen::Switched(from, to) => {
                    // A switch to the kernel is the end of a task.
                    if let (Some(from), Some(_)) = (from, to) {
                        prop_assert_eq!(waiting.insert(from, 0), None);
                    }
                    if let Some(to) = to {
                        prop_assert!(waiting.remove(&to).is_some(), "{at}");
                    }
                }
                Seen::Exited(..) | Seen::Phase(_) => {}
            }
        }
        prop_assert!(waiting.is_empty());
    }
}
