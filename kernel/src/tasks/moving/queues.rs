//! Who waits where, and who comes next: what all processors share, behind a lock.
//!
//! Each processor has a queue. Whenever it looks for its next task, as it is idle, at its tick, or as its task gives way or ends, it takes
//! one from the longest queue, if that is longer than its own: the one that has waited longest of those that may run on it. It is the
//! next one to run there, so that none is taken to and fro and never runs.

use super::super::scheduler::Account;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use arch::smp::Handover;
use core::cmp::Reverse;
use protocol::job::workload::Workload;
use protocol::record::TaskEnd;

/// What a task did on one processor.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Stay {
    pub switches: u64,
    pub time: u64,
}

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// By processor: whether it may run there.
    allowed: Vec<bool>,
    /// Where it begins, unless that is its parent's and it may run there.
    begins: usize,
    /// Its parent; when that is gone, its heir.
    parent: Option<u16>,
    outlives: bool,
    /// Children that it waits for.
    children: u16,
    pub account: Account,
    /// Where it ran last.
    pub last: Option<usize>,
    pub moves: u64,
    /// By processor.
    pub stays: Vec<Stay>,
}

/// What became of the tasks' families: each processor tells its observer all of it, in this order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Change {
    Created(u16, Option<u16>),
    Exited(u16, Option<u16>),
}

/// All tasks. Nothing here allocates after [`State::new`]. Processors are named by their place among those of the item.
#[derive(Debug)]
pub(super) struct State {
    pub tasks: Vec<Entry>,
    queues: Vec<VecDeque<u16>>,
    /// By processor: the task that runs there, or goes on there when the processor has its turn again.
    running: Vec<Option<u16>>,
    changes: Vec<Change>,
    /// Tasks that have not ended.
    left: usize,
}

impl State {
    /// The tasks of `workload` on processors of these numbers, those without parent in their queues.
    pub fn new(workload: &Workload, cpus: &[u16]) -> Self {
        let place = |cpu: u16| cpus.iter().position(|&one| one == cpu);
        let mut tasks: Vec<Entry> = Vec::new();
        for (index, task) in workload.tasks.iter().enumerate() {
            let own = workload.cpus_of(index);
            tasks.push(Entry {
                allowed: cpus.iter().map(|cpu| own.contains(cpu)).collect(),
                begins: own.first().and_then(|&cpu| place(cpu)).unwrap_or(0),
                parent: task.parent,
                outlives: task.outlives,
                children: 0,
                account: Account::default(),
                last: None,
                moves: 0,
                stays: vec![Stay::default(); cpus.len()],
            });
            if let (Some(parent), false) = (task.parent, task.outlives) {
                tasks[usize::from(parent)].children += 1;
            }
        }
        let (left, count) = (tasks.len(), cpus.len());
        let queues = (0..count).map(|_| VecDeque::with_capacity(left)).collect();
        // Each task comes and goes once.
        let changes = Vec::with_capacity(2 * left);
        let mut state = Self { tasks, queues, running: vec![None; count], changes, left };
        state.create(None, None);
        state
    }

    /// Whether all tasks have ended.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The change of this number.
    pub fn change(&self, number: usize) -> Option<Change> {
        self.changes.get(number).copied()
    }

    /// Brings the children of `parent` into being, on its processor if they may run there; of `None`, the tasks without parent.
    fn create(&mut self, parent: Option<u16>, place: Option<usize>) {
        for (number, task) in (0..).zip(&self.tasks) {
            if task.parent == parent {
                let place = place.filter(|&place| task.allowed[place]).unwrap_or(task.begins);
                self.changes.push(Change::Created(number, parent));
                self.queues[place].push_back(number);
            }
        }
    }

    /// The task of processor `place` has run for some time, in TSC ticks. Returns how long it has run in all.
    pub fn ran(&mut self, place: usize, time: u64) -> u64 {
        let Some(task) = self.running[place] else { return 0 };
        let Entry { account, stays, .. } = &mut self.tasks[usize::from(task)];
        account.time += time;
        stays[place].time += time;
        account.time
    }

    /// The task of processor `place` has had its turn, and waits for the next one.
    pub fn waits(&mut self, place: usize) {
        let task = self.running[place].take();
        self.queues[place].extend(task);
    }

    /// The task of processor `place` has ended. It is gone when the children that it waits for are.
    pub fn ended(&mut self, place: usize, how: TaskEnd) {
        let Some(task) = self.running[place].take() else { return };
        self.tasks[usize::from(task)].account.end = Some(how);
        self.left -= 1;
        let mut next = Some(task);
        while let Some(task) = next {
            let Entry { parent, outlives, children, account, .. } =
                &mut self.tasks[usize::from(task)];
            if *children > 0 || account.end.is_none() {
                break;
            }
            account.heir = *parent;
            let (parent, outlives) = (*parent, *outlives);
            self.changes.push(Change::Exited(task, parent));
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

    /// Tasks of a processor, that which runs among them.
    fn load(&self, place: usize) -> usize {
        self.queues[place].len() + usize::from(self.running[place].is_some())
    }

    /// The processor from which `place` takes a task, and where that is in its queue: the one with the most tasks, and of several the
    /// first one.
    fn longest(&self, place: usize, handovers: &[Handover]) -> Option<(usize, usize)> {
        let may = |task: &u16| {
            let task = usize::from(*task);
            // One that the other processor is still leaving stays for the next time: nobody waits for it.
            self.tasks[task].allowed[place] && handovers[task].is_free_for(place)
        };
        let own = self.load(place);
        let others = (0..self.queues.len()).filter(|&one| one != place && self.load(one) > own);
        let each = others.filter_map(|one| Some((one, self.queues[one].iter().position(may)?)));
        each.max_by_key(|&(one, _)| (self.load(one), Reverse(one)))
    }

    /// Whether processor `place`, which is idle, could run something.
    pub fn has_next(&self, place: usize, handovers: &[Handover]) -> bool {
        self.load(place) > 0 || self.longest(place, handovers).is_some()
    }

    /// Gives processor `place`, which runs none, its next task, if there is one.
    pub fn next(&mut self, place: usize, handovers: &[Handover]) -> Option<u16> {
        if let Some((from, at)) = self.longest(place, handovers) {
            let task = self.queues[from].remove(at);
            task.into_iter().for_each(|task| self.queues[place].push_front(task));
        }
        let queue = &mut self.queues[place];
        let at = queue.iter().position(|&task| handovers[usize::from(task)].take(place))?;
        let task = queue.remove(at);
        self.running[place] = task;
        task
    }

    /// The processor is given to its task, which was not there before.
    pub fn begins(&mut self, place: usize) {
        let Some(task) = self.running[place] else { return };
        let Entry { account, stays, last, moves, .. } = &mut self.tasks[usize::from(task)];
        account.switches += 1;
        stays[place].switches += 1;
        if last.replace(place).is_some_and(|last| last != place) {
            *moves += 1;
        }
        if account.switches == 1 {
            self.create(Some(task), Some(place));
        }
    }
}
