//! The sets of an item: for whom each is counted, where, and whether it gets the counters.

use super::{Planned, plan};
use crate::counting::Set;
use crate::counting::allocate::{Allocation, SetRequest, allocate};
use crate::counting::owner::Scope;
use crate::events::Known;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::count::{Bind, Count};
use protocol::workload::Workload;

/// What one processor counts of one set.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The set, by its number in the item.
    pub number: usize,
    /// What is counted.
    pub set: Set,
    /// For whom: each gets counters of its own.
    pub scopes: Vec<Scope>,
    /// The number of each request of the set among the job's events.
    pub events: Vec<usize>,
    /// Whether children of the tasks are left out.
    pub alone: bool,
    /// How many processors count, for any set.
    pub processors: usize,
}

/// All sets of an item.
#[derive(Clone, Debug)]
pub struct Sets {
    pub(super) planned: Vec<Planned>,
    pub(super) allocations: Vec<Allocation>,
    requests: Vec<SetRequest>,
}

impl Sets {
    /// Finds counters for each set on the processor that is `known`, and decides who gets them. `in_use`: the numbers of
    /// all processors.
    #[must_use]
    pub fn new(item: &Count, known: &Known, in_use: &[u16]) -> Self {
        let planned = item.all_sets().iter().map(|set| plan(set, known)).collect();
        Self::of(item, planned, in_use)
    }

    /// The same where nothing can be counted, for `reason`.
    #[must_use]
    pub fn uncounted(item: &Count, reason: &str) -> Self {
        let planned = item.all_sets().iter().map(|set| Planned::uncounted(set, reason)).collect();
        Self::of(item, planned, &[])
    }

    fn of(item: &Count, planned: Vec<Planned>, in_use: &[u16]) -> Self {
        let sets = item.all_sets();
        let request = |(set, planned): (&protocol::count::SetOf, &Planned)| {
            let places = match planned.set {
                Some(_) => places(set.bind, &item.workload, in_use),
                None => Vec::new(),
            };
            SetRequest { places, force: set.force, alone: set.alone }
        };
        let requests: Vec<SetRequest> = sets.iter().zip(&planned).map(request).collect();
        let tasks = u16::try_from(item.workload.tasks.len()).unwrap_or(u16::MAX);
        Self { allocations: allocate(&requests, tasks), planned, requests }
    }

    /// Numbers of the processors that count something.
    #[must_use]
    pub fn cpus(&self) -> Vec<u16> {
        let each = self
            .requests
            .iter()
            .zip(&self.allocations)
            .filter(|(_, allocation)| **allocation == Allocation::Counts);
        let mut cpus: Vec<u16> =
            each.flat_map(|(request, _)| request.places.iter().map(|(cpu, _)| *cpu)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// What processor `cpu` counts.
    #[must_use]
    pub fn shares(&self, cpu: u16) -> Vec<Share> {
        let each = self.planned.iter().zip(&self.allocations).zip(&self.requests).enumerate();
        let processors = self.cpus().len();
        let share = |(number, ((planned, allocation), request)): (
            usize,
            ((&Planned, &Allocation), &SetRequest),
        )| {
            let here = request.places.iter().filter(|(place, _)| *place == cpu);
            let scopes: Vec<Scope> = here.map(|(_, scope)| *scope).collect();
            let set = planned
                .set
                .clone()
                .filter(|_| *allocation == Allocation::Counts && !scopes.is_empty())?;
            let events = planned.events.clone();
            Some(Share { number, set, scopes, events, alone: request.alone, processors })
        };
        each.filter_map(share).collect()
    }
}

/// Processors that `bind` needs, and for whom there.
fn places(bind: &Bind, workload: &Workload, in_use: &[u16]) -> Vec<(u16, Scope)> {
    let whole = |cpus: &[u16]| cpus.iter().map(|&cpu| (cpu, Scope::System)).collect();
    match bind {
        Bind::System => whole(&workload.cpus()),
        Bind::AllProcessors => whole(in_use),
        Bind::Processor(cpu) => whole(&[*cpu]),
        // The run has put the processor's number in its place.
        Bind::Core(..) => Vec::new(),
        Bind::Tasks(tasks) => {
            let place = |&task: &u16| (workload.cpu_of(usize::from(task)), Scope::Task(task));
            tasks.iter().map(place).collect()
        }
    }
}

/// Processors that the tasks and the sets of `item` name, beside all that are in use if a set wants them.
#[must_use]
pub fn named_cpus(item: &Count, in_use: &[u16]) -> Vec<u16> {
    let mut cpus = item.workload.cpus();
    for set in item.all_sets() {
        cpus.extend(places(set.bind, &item.workload, in_use).iter().map(|(cpu, _)| *cpu));
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// For whom a set counts, in words.
pub(super) fn words(bind: &Bind, workload: &Workload) -> String {
    let name = |task: &u16| match workload.tasks.get(usize::from(*task)) {
        Some(task) => task.name.to_string(),
        None => task.to_string(),
    };
    match bind {
        Bind::System => "the system".to_string(),
        Bind::AllProcessors => "all processors".to_string(),
        Bind::Processor(cpu) => alloc::format!("processor {cpu}"),
        Bind::Core(core, number) => alloc::format!("processor {number} of the {core} ones"),
        Bind::Tasks(tasks) => {
            let names: Vec<String> = tasks.iter().map(name).collect();
            let what = if names.len() == 1 { "task" } else { "tasks" };
            alloc::format!("{what} {}", names.join(", "))
        }
    }
}
