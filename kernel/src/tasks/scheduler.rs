//! Whose turn it is on one processor: round robin, one queue.
//!
//! A task without parent is there from the beginning; one with a parent comes into being when its parent is given the
//! processor for the first time. New tasks and those whose time is up go to the end of the queue. A task that ended
//! waits for its children before it is gone, but for those that may outlive it: these are its heir's then. Nothing here allocates after [`Scheduler::new`].

use super::queue::Queue;
use super::ticks::{Intervals, Stalls, Ticker};
use super::{Cause, Decision, Observer, Timer};
use alloc::vec::Vec;
use protocol::job::workload::{Task, Workload};
use protocol::record::TaskEnd;

/// What became of a task so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Account {
    /// TSC ticks that it had the processor.
    pub time: u64,
    /// How often it was given the processor.
    pub switches: u64,
    /// How it ended; `None`: it did not.
    pub end: Option<TaskEnd>,
    /// Its parent when it was gone, or the nearest ancestor that was still there.
    pub heir: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// It runs on this processor.
    here: bool,
    /// Its parent; when that is gone, its heir.
    parent: Option<u16>,
    /// Its parent does not wait for it.
    outlives: bool,
    /// Children that it waits for.
    children: u16,
    account: Account,
}

/// The scheduler of one processor.
#[derive(Debug)]
pub struct Scheduler {
    cpu: u16,
    tasks: Vec<Entry>,
    ready: Queue,
    current: Option<u16>,
    /// TSC when the current one was given the processor.
    since: u64,
    switches: u64,
    /// TSC ticks that a task may take.
    limit: u64,
    ticker: Ticker,
    intervals: Intervals,
    stalls: Stalls,
}

impl Scheduler {
    /// A scheduler of those tasks of `workload` that run on processor `cpu`, all still to come. The others are never
    /// there.
    #[must_use]
    pub fn new(workload: &Workload, limit_us: u64, tsc_hz: u64, cpu: u16) -> Self {
        let entry = |(index, task): (usize, &Task)| {
            let here = workload.cpu_of(index) == cpu;
            let (parent, outlives) = (task.parent, task.outlives);
            Entry { here, parent, outlives, children: 0, account: Account::default() }
        };
        let mut tasks: Vec<Entry> = workload.tasks.iter().enumerate().map(entry).collect();
        for task in workload.tasks.iter().filter(|task| !task.outlives) {
            if let Some(parent) = task.parent.and_then(|parent| tasks.get_mut(usize::from(parent)))
            {
                parent.children += 1;
            }
        }
        Self {
            cpu,
            ready: Queue::new(tasks.len()),
            tasks,
            current: None,
            since: 0,
            switches: 0,
            limit: (u128::from(limit_us) * u128::from(tsc_hz) / 1_000_000) as u64,
            ticker: Ticker::new(workload, tsc_hz, cpu),
            intervals: Intervals::new(),
            stalls: Stalls::default(),
        }
    }

    /// The processor's number.
    #[must_use]
    pub fn cpu(&self) -> u16 {
        self.cpu
    }

    /// The task that runs; `None`: the kernel.
    #[must_use]
    pub const fn current(&self) -> Option<u16> {
        self.current
    }

    /// What became of task `index`.
    ///
    /// # Panics
    /// If there is no such task.
    #[must_use]
    pub fn account(&self, index: usize) -> Account {
        self.tasks[index].account
    }

    /// Changes from a task or the kernel to another of them.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// The times between the timer's ticks.
    #[must_use]
    pub fn intervals(&self) -> &Intervals {
        &self.intervals
    }

    /// The longest time between ticks, in TSC ticks, if it is longer than was asked.
    #[must_use]
    pub fn lengthened(&self) -> Option<u64> {
        self.ticker.lengthened()
    }

    /// Says who goes on when a task lets others go first, if that is all: `None` asks [`Scheduler::decide`], as nothing has
    /// happened yet. The timer is left as it is.
    #[inline(always)]
    pub fn yields(&mut self, now: u64, observer: &mut impl Observer) -> Option<u16> {
        self.passes(Cause::Yield, now, observer)
    }

    /// The same at a tick, if the next one comes by itself and is due as it was.
    #[inline]
    pub fn ticked(&mut self, now: u64, observer: &mut impl Observer) -> Option<u16> {
        if self.ticker.asks() { None } else { self.passes(Cause::Tick, now, observer) }
    }

    /// The task's turn goes to the next one, and to nobody else. Always inlined: a call of its own costs a yield 25 instructions.
    #[inline(always)]
    fn passes(&mut self, cause: Cause, now: u64, observer: &mut impl Observer) -> Option<u16> {
        let current = self.current.as_mut()?;
        let from = *current;
        let account = &mut self.tasks.get_mut(usize::from(from))?.account;
        let time = account.time + now.wrapping_sub(self.since);
        if time >= self.limit || !self.ticker.ticks() {
            return None;
        }
        (account.time, self.since) = (time, now);
        self.stalls.note(cause);
        if cause == Cause::Tick {
            self.intervals.add(now);
            observer.tick();
        }
        let next = self.ready.rotate(from);
        if next == from {
            return Some(next);
        }
        *current = next;
        self.switches += 1;
        let account = &mut self.tasks.get_mut(usize::from(next))?.account;
        account.switches += 1;
        if account.switches == 1 {
            self.create(Some(next), observer);
        }
        observer.switched(Some(from), Some(next));
        Some(next)
    }

    /// Says who goes on. `now`: the TSC.
    pub fn decide(&mut self, cause: Cause, now: u64, observer: &mut impl Observer) -> Decision {
        let ran = now.wrapping_sub(self.since);
        self.since = now;
        let from = self.current;
        let longer = self.stalls.note(cause) && self.ticker.lengthen();
        if let Some(task) = from {
            self.tasks[usize::from(task)].account.time += ran;
        }
        if matches!(cause, Cause::Tick | Cause::Stall) && self.ticker.ticks() {
            self.intervals.add(now);
            observer.tick();
        }
        match (cause, from) {
            (Cause::Start, _) => self.create(None, observer),
            (Cause::Tick | Cause::Stall | Cause::Yield, Some(task)) if self.left(task) == 0 => {
                self.end(task, TaskEnd::Limit, observer);
            }
            // Without ticks the timer only watches the limit.
            (Cause::Tick | Cause::Stall, Some(task)) if !self.ticker.ticks() => {
                self.ready.push_front(task);
            }
            (Cause::Tick | Cause::Stall | Cause::Yield, Some(task)) => self.ready.push_back(task),
            (Cause::Exit, Some(task)) => self.end(task, TaskEnd::Exit, observer),
            (Cause::Fault, Some(task)) => self.end(task, TaskEnd::Fault, observer),
            (_, None) => {}
        }
        let next = self.ready.pop_front();
        self.current = next;
        if next != from {
            self.switch(from, next, observer);
        }
        // A new interval begins as at the start.
        let cause = if longer { Cause::Start } else { cause };
        Decision { next, timer: self.timer(cause, next) }
    }

    /// Brings the children of `parent` into being; of `None`, the tasks without parent.
    #[cold]
    #[inline(never)]
    fn create(&mut self, parent: Option<u16>, observer: &mut impl Observer) {
        for (index, task) in (0..).zip(&self.tasks) {
            if task.here && task.parent == parent {
                observer.created(index, parent);
                self.ready.push_back(index);
            }
        }
    }

    /// Ends a task: it has no more turn, and is gone when the children that it waits for are.
    fn end(&mut self, task: u16, how: TaskEnd, observer: &mut impl Observer) {
        self.tasks[usize::from(task)].account.end = Some(how);
        observer.switched(Some(task), None);
        let mut next = Some(task);
        while let Some(task) = next {
            let Entry { parent, outlives, children, account, .. } = self.tasks[usize::from(task)];
            if children > 0 || account.end.is_none() {
                break;
            }
            self.tasks[usize::from(task)].account.heir = parent;
            observer.exited(task, parent);
            for child in self.tasks.iter_mut().filter(|child| child.parent == Some(task)) {
                child.parent = parent;
            }
            // Nobody waits for one that may outlive its parent.
            next = parent.filter(|_| !outlives);
            if let Some(parent) = next {
                self.tasks[usize::from(parent)].children -= 1;
            }
        }
    }

    fn switch(&mut self, from: Option<u16>, to: Option<u16>, observer: &mut impl Observer) {
        self.switches += 1;
        if let Some(task) = to {
            let account = &mut self.tasks[usize::from(task)].account;
            account.switches += 1;
            if account.switches == 1 {
                self.create(Some(task), observer);
            }
        }
        // The end of a task was a switch to the kernel already.
        let ended = |&task: &u16| self.tasks[usize::from(task)].account.end.is_some();
        let from = from.filter(|task| !ended(task));
        if from != to {
            observer.switched(from, to);
        }
    }

    /// TSC ticks that a task may still take.
    fn left(&self, task: u16) -> u64 {
        self.limit.saturating_sub(self.tasks[usize::from(task)].account.time)
    }

    fn timer(&mut self, cause: Cause, next: Option<u16>) -> Timer {
        match next {
            None => Timer::Stop,
            Some(task) if !self.ticker.ticks() => Timer::Once(self.left(task).max(1)),
            Some(_) => self.ticker.timer(cause),
        }
    }
}
