//! Tasks that move between made-up processors: in turn, in a random order, and on threads that really run at once.

use super::super::tests::{Habits, Made, Seen, Watcher, task};
use super::super::*;
use super::*;
use proptest::prelude::*;
use protocol::job::affinity::Affinity;
use protocol::job::workload::Task;
use protocol::record::TaskEnd;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

impl Made {
    /// Runs tasks that move. Without turns, each step of each processor comes when a generator says so: what a task does between two
    /// events is one step, and so is the way out of it.
    pub(in super::super) fn run_all(
        &mut self,
        assigned: &mut [AssignedProcessor],
        handovers: &[Handover],
    ) -> Option<Together> {
        for processor in assigned.iter_mut() {
            processor.scheduler.open();
            processor.scheduler.begin();
        }
        if self.in_turn && assigned.len() > 1 {
            while !assigned[0].scheduler.is_over() {
                for processor in assigned.iter_mut() {
                    if processor.scheduler.has_next() {
                        self.turn(processor.scheduler, handovers);
                    }
                }
            }
        } else {
            self.run_mixed(assigned, handovers);
        }
        for processor in assigned.iter_mut() {
            processor.scheduler.end();
            processor.scheduler.close();
        }
        let processors = assigned.iter().map(|processor| u32::from(processor.cpu)).collect();
        Some(Together { processors, in_turn: self.in_turn, ..Together::default() })
    }

    /// A processor's turn: from its start until its scheduler gives way.
    fn turn(&mut self, scheduler: &mut dyn ProcessorScheduler, handovers: &[Handover]) {
        let (mut cause, mut running) = (Cause::Start, None);
        loop {
            let Decision { next, timer } = scheduler.decide(cause, self.now);
            self.set(timer);
            leave(handovers, running, next);
            running = next;
            let Some(task) = next else { return };
            self.now += self.cost;
            cause = self.until_event(usize::from(task));
        }
    }

    fn run_mixed(&mut self, assigned: &mut [AssignedProcessor], handovers: &[Handover]) {
        // Of each processor: its task, the one that it is leaving, and its next tick.
        let mut each = vec![(None, None, None); assigned.len()];
        while !assigned[0].scheduler.is_over() || each.iter().any(|(task, _, _)| task.is_some()) {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (self.random >> 33) as usize % assigned.len();
            let (running, leaving, tick) = &mut each[at];
            if let Some(left) = leaving.take() {
                leave(handovers, Some(left), None);
                continue;
            }
            let scheduler = &mut *assigned[at].scheduler;
            self.tick = *tick;
            let cause = match *running {
                Some(task) => self.until_event(usize::from(task)),
                None if scheduler.has_next() => Cause::Start,
                None => continue,
            };
            let Decision { next, timer } = scheduler.decide(cause, self.now);
            self.set(timer);
            (*leaving, *tick) = (running.filter(|_| *running != next), self.tick);
            *running = next;
        }
    }
}

fn leave(handovers: &[Handover], from: Option<u16>, to: Option<u16>) {
    if let Some(task) = from.filter(|_| from != to) {
        handovers[usize::from(task)].give_up();
    }
}

fn on(turns: u64, cpus: &[u16], parent: Option<u16>) -> Task<'static> {
    Task { cpus: Some(Affinity::These(cpus.to_vec())), ..task(turns, parent) }
}

fn run_on(made: &mut Made, tasks: &[Task<'static>], tick_ns: u64) -> (Summary, [Vec<Seen>; 3]) {
    let workload = Workload { tasks: tasks.to_vec(), tick_ns, jitter: None };
    let mut watched = [0, 1, 2].map(|cpu| (cpu, Watcher::default()));
    let summary = super::super::run(&workload, 1_000_000, made, &mut watched).unwrap();
    (summary, watched.map(|(_, Watcher(seen))| seen))
}

/// Where each task was: numbers of processors, and how often each was given to it.
fn shares(task: &TaskResult) -> Vec<(u32, u64)> {
    task.shares.iter().map(|share| (share.processor, share.switches)).collect()
}

#[test]
fn i8_t9_an_idle_processor_takes_the_task_that_waits_longest() {
    let habits = [Habits::default(); 4];
    let tasks = [on(2, &[0, 1], None), on(2, &[0], None), on(2, &[0, 2, 1], None), task(2, None)];
    let (summary, seen) = run_on(&mut Made::new(&habits), &tasks, 0);
    let of = |index: usize| (summary.tasks[index].moves, shares(&summary.tasks[index]));
    // The first processor begins with the first task, the second one finds that which may run there, and the third one none.
    assert_eq!(of(0), (Some(0), vec![(0, 1)]));
    assert_eq!(of(1), (None, vec![]));
    assert_eq!(of(2), (Some(0), vec![(1, 1)]), "it had not run before");
    let cpus: Vec<u32> = summary.tasks.iter().map(|task| task.cpu).collect();
    assert_eq!(cpus, [0, 0, 1, 0]);
    assert!(summary.tasks.iter().all(|task| task.end == TaskEnd::Exit && task.turns == 2));
    let together = summary.together.unwrap();
    assert_eq!((together.in_turn, together.processors), (true, vec![0, 1, 2]));
    let taken: Vec<_> = together.shares.iter().map(|one| (one.taken, one.switches)).collect();
    assert_eq!(taken, [(0, 6), (0, 2), (0, 0)]);
    // All hear of all families, and each of its own tasks alone.
    for seen in &seen {
        let families: Vec<&Seen> =
            seen.iter().filter(|one| matches!(one, Seen::Created(..) | Seen::Exited(..))).collect();
        assert_eq!(families.len(), 8, "{seen:?}");
    }
    assert!(!seen[2].iter().any(|one| matches!(one, Seen::Switched(..))));
}

#[test]
fn i8_t9_at_ticks_three_tasks_share_two_processors_evenly() {
    let habits = [Habits::default(); 3];
    let tasks = [on(60, &[0, 1], None), on(60, &[0, 1], None), on(60, &[0, 1], None)];
    let (summary, _) = run_on(&mut Made::new(&habits), &tasks, 10 * TURN_NS);
    let moves: Vec<u64> = summary.tasks.iter().map(|task| task.moves.unwrap()).collect();
    assert!(moves.iter().all(|&moves| moves >= 3), "{moves:?}");
    let (least, most) = (moves.iter().min().unwrap(), moves.iter().max().unwrap());
    assert!(most - least <= 2, "{moves:?}");
    for task in &summary.tasks {
        assert_eq!((task.turns, task.time), (60, 60 * TURN_NS));
        assert_eq!(task.shares.iter().map(|share| share.time).sum::<u64>(), task.time);
        let switches: u64 = task.shares.iter().map(|share| share.switches).sum();
        assert_eq!(switches, task.switches);
    }
    let taken: u64 = summary.together.unwrap().shares.iter().map(|share| share.taken).sum();
    assert_eq!(taken, moves.iter().sum::<u64>());
}

/// TSC ticks, and nanoseconds, of a turn.
const TURN_NS: u64 = super::super::tests::TURN;

#[test]
fn i8_a_child_begins_where_its_parent_runs_if_it_may() {
    let habits = [Habits::default(); 3];
    let tasks = [on(2, &[1, 0], None), on(2, &[1, 2], Some(0)), on(2, &[2], Some(0))];
    let (summary, _) = run_on(&mut Made::new(&habits), &tasks, 0);
    let cpus: Vec<u32> = summary.tasks.iter().map(|task| task.cpu).collect();
    assert_eq!(cpus[0], 0, "the first processor has its turn first, and takes it");
    assert!(cpus[1] == 1 && cpus[2] == 2, "{cpus:?}");
    assert_eq!(summary.tasks[1].added_to, Some(0));
}

#[test]
fn i8_a_task_that_takes_too_long_in_all_is_ended_wherever_it_is() {
    let endless = Habits { endless: true, ..Habits::default() };
    let tasks = [on(0, &[0, 1], None), on(0, &[0, 1], None), on(0, &[0, 1], None)];
    let workload = Workload { tasks: tasks.to_vec(), tick_ns: 700, jitter: None };
    for in_turn in [true, false] {
        let mut made = Made::new(&[endless; 3]);
        made.in_turn = in_turn;
        let watched = &mut [0, 1].map(|cpu| (cpu, ()));
        let summary = super::super::run(&workload, 20, &mut made, watched).unwrap();
        for task in &summary.tasks {
            assert_eq!(task.end, TaskEnd::Limit);
            // The clock is one for all: of processors that work at once, it goes on for the others.
            let most = if in_turn { 800 } else { 2 * 800 };
            assert!((20_000..=20_000 + most).contains(&task.time), "{}", task.time);
            assert!(task.moves > Some(1) && task.shares.len() == 2, "{task:?}");
        }
    }
}

/// Each turn begins anew, and the ticks have to become longer over several of them.
#[test]
fn i8_t9_ticks_that_leave_no_time_in_turns_are_lengthened() {
    let mut made = Made::new(&[Habits::default(); 3]);
    made.cost = 1_000;
    let tasks = [on(30, &[0, 1], None), on(30, &[0, 1], None), on(30, &[0, 1], None)];
    let (summary, _) = run_on(&mut made, &tasks, 200);
    assert!(summary.tasks.iter().all(|task| task.turns == 30), "{summary:?}");
    let lengthened = summary.ticks.lengthened.expect("too short");
    assert!([800, 1_600, 3_200].contains(&lengthened), "{lengthened}");
}

#[test]
fn i8_a_processor_that_is_not_there_is_refused_by_the_name_of_the_task() {
    let tasks = vec![on(1, &[0, 7], None)];
    let workload = Workload { tasks, tick_ns: 0, jitter: None };
    let mut made = Made::new(&[Habits::default()]);
    let refused = super::super::run::<()>(&workload, 1, &mut made, &mut []).unwrap_err();
    assert_eq!(refused, "task `x` is to run on processor 7: there are 3");
}

prop_compose! {
    /// A forest of tasks, with where they may run.
    fn any_tasks()(
        raw in prop::collection::vec((
            0..40_u64, prop::option::of(any::<prop::sample::Index>()), 0..5_u64,
            prop::option::weighted(0.2, 0..40_u64), prop::sample::subsequence(vec![0_u16, 1, 2], 1..=3), any::<bool>(),
        ), 1..10),
    ) -> (Vec<Task<'static>>, Vec<Habits>) {
        let all = raw.into_iter().enumerate().map(|(index, (turns, parent, yields, fault, cpus, outlives))| {
            let parent = parent.filter(|_| index > 0).map(|parent| parent.index(index) as u16);
            let outlives = outlives && parent.is_some();
            (Task { outlives, ..on(turns, &cpus, parent) }, Habits { yields, fault, endless: false })
        });
        all.unzip()
    }
}

proptest! {
    /// Whatever the order is in which processors come: each task runs to its end, where it may, on one processor at a time, and what
    /// the processors see adds up to it.
    #[test]
    fn i8_t9_c3_tasks_that_move_run_to_their_ends_where_they_may(
        (tasks, habits) in any_tasks(), tick in prop_oneof![Just(0), 1..3_000_u64], in_turn: bool, random: u64,
    ) {
        let mut made = Made::new(&habits);
        (made.in_turn, made.random) = (in_turn, random);
        let (summary, seen) = run_on(&mut made, &tasks, tick);
        for (index, (result, task)) in summary.tasks.iter().zip(&tasks).enumerate() {
            let fault = habits[index].fault.filter(|&at| at <= task.turns);
            prop_assert_eq!(result.end, if fault.is_some() { TaskEnd::Fault } else { TaskEnd::Exit });
            prop_assert_eq!(result.turns, fault.unwrap_or(task.turns));
            let Some(Affinity::These(allowed)) = &task.cpus else { unreachable!() };
            let stays = |cpu: u16| seen[usize::from(cpu)].iter().filter(
                |one| matches!(one, Seen::Switched(_, Some(to)) if usize::from(*to) == index)).count() as u64;
            for cpu in (0..3).filter(|cpu| !allowed.contains(cpu)) {
                prop_assert_eq!(stays(cpu), 0);
            }
            if allowed.len() > 1 {
                let expected: Vec<(u32, u64)> = (0..3).map(|cpu| (u32::from(cpu), stays(cpu)))
                    .filter(|(_, stays)| *stays > 0).collect();
                prop_assert_eq!(shares(result), expected);
                prop_assert_eq!(result.shares.iter().map(|share| share.time).sum::<u64>(), result.time);
            } else {
                prop_assert_eq!(result.moves, None);
            }
        }
        let moves: u64 = summary.tasks.iter().filter_map(|task| task.moves).sum();
        let shares = summary.together.unwrap().shares;
        prop_assert_eq!(shares.iter().map(|share| share.taken).sum::<u64>(), moves);
        prop_assert_eq!(shares.iter().map(|share| share.switches).sum::<u64>(), summary.switches);
        prop_assert_eq!(shares.iter().map(|share| share.ticks).sum::<u64>(), summary.ticks.count);
        // Each processor's story is without a gap, and the families' is the same on all.
        let family = |seen: &[Seen]| seen.iter().filter(
            |one| matches!(one, Seen::Created(..) | Seen::Exited(..))).copied().collect::<Vec<_>>();
        for one in &seen {
            let (mut running, mut there) = (None, std::collections::HashSet::new());
            for told in one {
                match *told {
                    Seen::Created(task, _) => prop_assert!(there.insert(task)),
                    Seen::Exited(task, heir) => {
                        prop_assert!(there.remove(&task) && running != Some(task));
                        prop_assert!(heir.is_none_or(|heir| there.contains(&heir)));
                    }
                    Seen::Switched(from, to) => {
                        prop_assert!(from == running && from != to);
                        prop_assert!(to.is_none_or(|task| there.contains(&task)), "told of before it runs");
                        running = to;
                    }
                    Seen::Tick | Seen::Phase(_) => {}
                }
            }
            prop_assert!(running.is_none() && there.is_empty());
            prop_assert_eq!(family(one), family(&seen[0]));
        }
    }
}

/// Threads as processors: a task's registers are plain memory, which its handover alone protects.
struct Threads {
    registers: Vec<Registers>,
    turns: Vec<u64>,
    clock: AtomicU64,
}

/// Turns that are left, and who uses them now.
struct Registers(UnsafeCell<u64>, AtomicU64);

// SAFETY: used by the processor that has the task, which the test checks.
unsafe impl Sync for Registers {}

impl Threads {
    fn run_one(&self, scheduler: &mut dyn ProcessorScheduler, handovers: &[Handover], own: u64) {
        while !scheduler.is_over() {
            if !scheduler.has_next() {
                std::thread::yield_now();
                continue;
            }
            let (mut cause, mut running) = (Cause::Start, None);
            loop {
                let next = scheduler.decide(cause, self.clock.fetch_add(1, Ordering::Relaxed)).next;
                if let Some(left) = running.filter(|_| running != next) {
                    // The registers are kept behind the decision, as on the machine.
                    let registers = &self.registers[usize::from(left)];
                    assert_eq!(registers.1.swap(0, Ordering::Relaxed), own);
                    leave(handovers, running, next);
                }
                let Some(task) = next else { break };
                let Registers(left, user) = &self.registers[usize::from(task)];
                if running != next {
                    assert_eq!(user.swap(own, Ordering::Relaxed), 0, "on two processors");
                }
                // SAFETY: this processor has the task.
                let left = unsafe { &mut *left.get() };
                cause = if *left == 0 { Cause::Exit } else { Cause::Tick };
                *left = left.saturating_sub(1);
                running = next;
            }
        }
    }
}

impl Machine for Threads {
    fn has(&self, _: u16) -> Result<(), String> {
        Ok(())
    }

    fn tsc_hz(&self) -> u64 {
        1_000_000_000
    }

    fn load(&mut self, workload: &Workload) -> Result<Vec<Emitted>, String> {
        self.turns = workload.tasks.iter().map(|task| task.turns).collect();
        let registers = |&turns: &u64| Registers(UnsafeCell::new(turns), AtomicU64::new(0));
        self.registers = self.turns.iter().map(registers).collect();
        Ok(vec![Emitted::default(); self.turns.len()])
    }

    fn run(&mut self, _: &mut [AssignedProcessor]) -> Option<Together> {
        None
    }

    fn works_in_turn(&self) -> bool {
        false
    }

    fn run_moving(
        &mut self,
        assigned: &mut [AssignedProcessor],
        handovers: &[Handover],
    ) -> Option<Together> {
        std::thread::scope(|scope| {
            for (processor, own) in assigned.iter_mut().zip(1..) {
                let this = &*self;
                scope.spawn(move || this.run_one(processor.scheduler, handovers, own));
            }
        });
        assigned.iter_mut().for_each(|processor| processor.scheduler.end());
        Some(Together::default())
    }

    fn left(&mut self, task: usize) -> Left {
        let left = *self.registers[task].0.get_mut();
        Left { frame: TrapFrame { r15: left, ..TrapFrame::default() }, ..Left::default() }
    }

    fn taken(&self, _: u8) -> u64 {
        0
    }
}

#[test]
fn i8_t9_tasks_on_threads_that_run_at_once_are_on_one_of_them_each_for_thousands_of_ticks() {
    let tasks: Vec<Task> = (0..7).map(|_| on(3_000, &[0, 1, 2, 3], None)).collect();
    let workload = Workload { tasks, tick_ns: 1_000, jitter: None };
    let registers = Vec::new();
    let mut machine = Threads { registers, turns: vec![], clock: AtomicU64::new(1) };
    let mut watched = [0, 1, 2, 3].map(|cpu| (cpu, Watcher::default()));
    let summary = super::super::run(&workload, 10_000_000, &mut machine, &mut watched).unwrap();
    for task in &summary.tasks {
        assert_eq!((task.end, task.turns), (TaskEnd::Exit, 3_000));
        let switches: u64 = task.shares.iter().map(|share| share.switches).sum();
        assert_eq!(switches, task.switches);
    }
    let moves: u64 = summary.tasks.iter().filter_map(|task| task.moves).sum();
    assert_eq!(summary.together.unwrap().shares.iter().map(|one| one.taken).sum::<u64>(), moves);
}
