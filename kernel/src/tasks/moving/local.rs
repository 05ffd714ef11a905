//! What one processor does of tasks that move.

use super::super::assigned::Heart;
use super::super::ticks::{Intervals, Stalls, Ticker};
use super::super::{Cause, Decision, Observer, ProcessorScheduler, Read, Timer};
use super::Shared;
use super::queues::Change;
use protocol::job::workload::Workload;
use protocol::record::TaskEnd;

/// The scheduler of one processor.
pub(super) struct Local<'a, 'o> {
    shared: &'a Shared,
    /// Its place among the processors.
    place: usize,
    observer: Option<&'a mut (dyn Observer + 'o)>,
    heart: Option<Heart<'a>>,
    /// The task that runs; `None`: the kernel.
    current: Option<u16>,
    /// TSC when it was given the processor.
    since: u64,
    limit: u64,
    ticker: Ticker,
    stalls: Stalls,
    /// Changes of families that the observer was told.
    told: usize,
    pub intervals: Intervals,
    pub switches: u64,
    pub ticks: u64,
    /// Tasks that came from other processors.
    pub taken: u64,
}

impl<'a, 'o> Local<'a, 'o> {
    /// The scheduler of processor `cpu` at `place`, with the ticks of `workload`, whose tasks may take `limit` TSC ticks each.
    pub fn new(
        shared: &'a Shared,
        (place, cpu): (usize, u16),
        workload: &Workload,
        [limit, hz]: [u64; 2],
        (observer, heart): (Option<&'a mut (dyn Observer + 'o)>, Option<Heart<'a>>),
    ) -> Self {
        Self {
            shared,
            place,
            observer,
            heart,
            current: None,
            since: 0,
            limit,
            ticker: Ticker::new(workload, hz, cpu),
            stalls: Stalls::default(),
            told: 0,
            intervals: Intervals::new(),
            switches: 0,
            ticks: 0,
            taken: 0,
        }
    }

    /// The longest time between ticks, if it is longer than was asked.
    pub fn lengthened(&self) -> Option<u64> {
        self.ticker.lengthened()
    }

    /// Tells the observer what has become of families since the last time, on any processor.
    fn catch_up(&mut self) {
        loop {
            let change = self.shared.state.lock().change(self.told);
            match change {
                Some(Change::Created(task, parent)) => self.observer.created(task, parent),
                Some(Change::Exited(task, heir)) => self.observer.exited(task, heir),
                None => return,
            }
            self.told += 1;
        }
    }

    /// The processor goes to `to`.
    fn switch(&mut self, to: Option<u16>) {
        let from = core::mem::replace(&mut self.current, to);
        if from != to {
            self.switches += 1;
            self.observer.switched(from, to);
        }
    }

    /// Why the running task ends, if it does, when it has run for `time`.
    fn ends(&self, cause: Cause, time: u64) -> Option<TaskEnd> {
        match cause {
            Cause::Exit => Some(TaskEnd::Exit),
            Cause::Fault => Some(TaskEnd::Fault),
            Cause::Tick | Cause::Stall | Cause::Yield if time >= self.limit => Some(TaskEnd::Limit),
            _ => None,
        }
    }

    /// Who comes next, when the running task has had its turn.
    fn next(&mut self) -> Option<u16> {
        let Shared { state, handovers, .. } = self.shared;
        let mut state = state.lock();
        state.waits(self.place);
        let next = state.next(self.place, handovers)?;
        if Some(next) != self.current {
            let moves = |state: &super::State| state.tasks[usize::from(next)].moves;
            let before = moves(&state);
            state.begins(self.place);
            self.taken += moves(&state) - before;
        }
        Some(next)
    }
}

impl ProcessorScheduler for Local<'_, '_> {
    fn open(&mut self) {
        self.observer.iter_mut().for_each(|observer| observer.opened());
    }

    fn begin(&mut self) {
        self.observer.iter_mut().for_each(|observer| observer.loaded());
    }

    /// What a task comes to on other processors is not known here.
    fn reads(&mut self, _: u64) -> Option<Read> {
        None
    }

    fn decide(&mut self, cause: Cause, now: u64) -> Decision {
        let ran = now.wrapping_sub(core::mem::replace(&mut self.since, now));
        if let Some(heart) = &mut self.heart {
            heart.tell_of(cause, now, &mut self.observer);
        }
        // The start of a turn says nothing of how far the tasks got in the last one.
        let is_start = cause == Cause::Start;
        let longer = !is_start && self.stalls.note(cause) && self.ticker.lengthen();
        if matches!(cause, Cause::Tick | Cause::Stall) && self.ticker.ticks() {
            self.ticks += 1;
            self.intervals.add(now);
            self.observer.tick();
        }
        let ran = if self.current.is_some() { ran } else { 0 };
        let time = self.shared.state.lock().ran(self.place, ran);
        if let Some(how) = self.ends(cause, time) {
            // Its counts here are whole before any processor hears that it is gone.
            self.switch(None);
            self.shared.state.lock().ended(self.place, how);
            self.catch_up();
        }
        // Where processors work in turn, whatever happens is the end of this one's.
        let next = match self.shared.in_turn && !is_start {
            true => None,
            false => self.next(),
        };
        self.catch_up();
        self.switch(next);
        let timer = match next {
            None => Timer::Stop,
            Some(_) if !self.ticker.ticks() => {
                let time = self.shared.state.lock().ran(self.place, 0);
                Timer::Once(self.limit.saturating_sub(time).max(1))
            }
            Some(_) => self.ticker.timer(if longer { Cause::Start } else { cause }),
        };
        Decision { next, timer }
    }

    fn is_over(&self) -> bool {
        self.shared.state.lock().is_over()
    }

    fn has_next(&self) -> bool {
        self.shared.state.lock().has_next(self.place, &self.shared.handovers)
    }

    fn end(&mut self) {
        self.catch_up();
        self.observer.iter_mut().for_each(|observer| observer.ended());
    }

    fn close(&mut self) {
        self.observer.iter_mut().for_each(|observer| observer.closed());
    }
}
