//! A made-up machine, and an observer that notes what it is told.

use super::*;

/// TSC ticks that a turn takes; the processor's clock.
pub(in crate::tasks) const TURN: u64 = 100;

pub(super) const HZ: u64 = 1_000_000_000;

/// What a made-up task does besides its turns.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tasks) struct Habits {
    /// Yields after every so many turns; 0: never.
    pub yields: u64,
    /// Raises an exception in place of this turn.
    pub fault: Option<u64>,
    /// Never ends.
    pub endless: bool,
}

/// Made-up processors: their time is one, and each runs its tasks alone.
pub(in crate::tasks) struct Made {
    pub(super) habits: Vec<Habits>,
    pub(super) turns: Vec<u64>,
    pub(super) done: Vec<u64>,
    pub now: u64,
    /// TSC of the next tick, and the period if it has one.
    pub tick: Option<(u64, Option<u64>)>,
    pub(super) taken: u64,
    /// TSC ticks that the kernel takes each time.
    pub cost: u64,
    /// The firmware's quick ways are taken where they answer.
    pub(super) quick: bool,
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

    pub(super) fn run_one(&mut self, scheduler: &mut dyn ProcessorScheduler) {
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
pub(super) const CPUS: u16 = 3;

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
pub(in crate::tasks) enum Seen {
    Created(u16, Option<u16>),
    Switched(Option<u16>, Option<u16>),
    Exited(u16, Option<u16>),
    Tick,
    Phase(&'static str),
}

#[derive(Default)]
pub(in crate::tasks) struct Watcher(pub Vec<Seen>);

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
