//! The sets of an item: for whom each is counted, where, and whether it gets the counters.

use super::{Planned, plan};
use crate::counting::Set;
use crate::counting::allocate::SetRequest;
use crate::counting::ledger::Ledger;
use crate::counting::owner::Scope;
use crate::events::Known;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use protocol::job::count::{Bind, Count, When};
use protocol::job::workload::Workload;

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

/// What one processor counts, and who has its counters when.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    /// Its number.
    pub cpu: u16,
    /// The sets that have its counters, or may get them.
    pub sets: Vec<Share>,
    /// How it stands when the tasks start.
    pub ledger: Ledger,
}

/// All sets of an item.
#[derive(Clone, Debug)]
pub struct Sets {
    pub(super) planned: Vec<Planned>,
    /// Why a set cannot be counted, whoever has the counters.
    pub(super) barred: Vec<Option<String>>,
    /// How it stands when the tasks start.
    pub(super) ledger: Ledger,
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
        let (mut requests, mut barred) = (Vec::new(), Vec::new());
        for (set, planned) in sets.iter().zip(&planned) {
            let mut places = match planned.set {
                Some(_) => places((set.bind, set.alone), &item.workload, in_use),
                None => Vec::new(),
            };
            let why = out_of_time(item, &places);
            if why.is_some() {
                places.clear();
            }
            barred.push(why);
            let (force, alone, schedule) = (set.force, set.alone, set.schedule);
            requests.push(SetRequest { places, force, alone, schedule });
        }
        let tasks = u16::try_from(item.workload.tasks.len()).unwrap_or(u16::MAX);
        let mut ledger = Ledger::new(requests, tasks);
        ledger.begin();
        Self { planned, barred, ledger }
    }

    /// Numbers of the processors that count something.
    #[must_use]
    pub fn cpus(&self) -> Vec<u16> {
        let each = (0..self.planned.len()).filter(|&number| self.ledger.may_count(number));
        let places = each.flat_map(|number| &self.ledger.request(number).places);
        let mut cpus: Vec<u16> = places.map(|(cpu, _)| *cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Why events and sets are not counted, in a line; empty: all are.
    #[must_use]
    pub fn why_not(&self) -> String {
        let events = self.planned.iter().flat_map(|planned| &planned.uncounted);
        let events = events.map(|one| alloc::format!("{}: {}", one.event, one.reason));
        let all: Vec<String> = events.chain(self.barred.iter().flatten().cloned()).collect();
        all.join("; ")
    }

    /// What processor `cpu` counts.
    #[must_use]
    pub fn shares(&self, cpu: u16) -> Shares {
        let processors = self.cpus().len();
        let share = |(number, planned): (usize, &Planned)| {
            let request = self.ledger.request(number);
            let here = request.places.iter().filter(|(place, _)| *place == cpu);
            let scopes: Vec<Scope> = here.map(|(_, scope)| *scope).collect();
            let set = planned
                .set
                .clone()
                .filter(|_| self.ledger.may_count(number) && !scopes.is_empty())?;
            let events = planned.events.clone();
            Some(Share { number, set, scopes, events, alone: request.alone, processors })
        };
        let sets = self.planned.iter().enumerate().filter_map(share).collect();
        Shares { cpu, sets, ledger: self.ledger.clone() }
    }
}

/// Why a set with these places cannot be beside sets that come and go, if there are any: nothing tells its processors that a
/// moment has come.
fn out_of_time(item: &Count, places: &[(u16, Scope)]) -> Option<String> {
    let moments = || item.sets.iter().flat_map(|set| set.schedule.moments());
    moments().next()?;
    let busy = item.workload.cpus();
    if let Some((idle, _)) = places.iter().find(|(cpu, _)| !busy.contains(cpu)) {
        return Some(alloc::format!(
            "processor {idle} has no tasks, whose ticks and markers would tell it when sets come and go"
        ));
    }
    let spread = places.iter().any(|(cpu, _)| *cpu != places[0].0);
    (spread && moments().any(|when| matches!(when, When::Marker(_))))
        .then(|| "it needs several processors, and a marker is reached on one".to_string())
}

/// Processors that `bind` needs, and for whom there.
fn places((bind, alone): (&Bind, bool), workload: &Workload, in_use: &[u16]) -> Vec<(u16, Scope)> {
    let whole = |cpus: &[u16]| cpus.iter().map(|&cpu| (cpu, Scope::System)).collect();
    match bind {
        Bind::System => whole(&workload.cpus()),
        Bind::AllProcessors => whole(in_use),
        Bind::Processor(cpu) => whole(&[*cpu]),
        // The run has put the processor's number in its place.
        Bind::Core(..) => Vec::new(),
        // Wherever they may go, and the children that are counted with them.
        Bind::Tasks(tasks) if workload.moves() => {
            let cpus = |task: usize| match alone {
                true => workload.cpus_of(task),
                false => workload.cpus_of_family(task),
            };
            let place = |&task: &u16| {
                cpus(task.into()).into_iter().map(move |cpu| (cpu, Scope::Task(task)))
            };
            tasks.iter().flat_map(place).collect()
        }
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
        cpus.extend(
            places((set.bind, set.alone), &item.workload, in_use).iter().map(|(cpu, _)| *cpu),
        );
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
