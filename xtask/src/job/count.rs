//! Counting over tasks in a job: `[[count]]`.

mod event;
mod gate;
mod item;
mod keys;
mod schedule;
mod set;

pub(crate) use keys::RawCount;

pub(super) use event::EventTable;

use super::bind::BindFile;
use super::errors::{JobError, Place};
use super::expect::{CriteriaFile, Names};
use super::file::{FileItem, JobFile, PackedItem, Section, Text};
use super::function::Programs;
use super::whole::{self, is_whole};
use super::workload::{DEFAULT_LIMIT_US, WorkloadFile, of_workload, place, too_few};
use crate::events::EventText;
use crate::metrics::Asked;
use crate::metrics::request::Ask;
use gate::PointFile;
use protocol::job::Item;
use protocol::job::count::{AtOverflow, Schedule};
use protocol::job::gate::GateAct;
use protocol::job::limits::{self, LimitError};
use set::SetFile;
use toml::Spanned;

/// What may stand behind an event in the name of a figure: whose count it is, or its overflows.
const BEHIND: [&str; 6] =
    [", kernel", ", overflows", ", cpu ", ", task ", ", children of ", ", binding "];

/// An item, all decided but its tasks' machine code.
#[derive(Clone, Debug)]
pub struct CountFile {
    name: String,
    /// Its own events, if it has no sets.
    own: SetFile,
    /// Energy and events of the uncore, which are of the whole item.
    whole: Vec<EventText>,
    sets: Vec<SetFile>,
    at_overflow: AtOverflow,
    passes: u64,
    interval_ns: u64,
    limit_us: u64,
    console: bool,
    /// Where counting starts and stops.
    gate: Vec<PointFile>,
    nested: bool,
    pub(super) workload: WorkloadFile,
    /// What it has to come to.
    pub(super) criteria: CriteriaFile,
    /// Metrics that are asked for.
    pub(super) metrics: Vec<Asked>,
    /// The same, ready for the machine that is measured.
    pub(super) asks: Vec<Ask>,
    place: Place,
}

impl CountFile {
    /// What is asked for of each set, by its number; `None`: of the item, which has no sets.
    pub(super) fn asked(&self) -> Vec<(Option<usize>, Vec<Asked>)> {
        let own = [(None, self.metrics.clone())];
        let of = |(number, set): (usize, &SetFile)| {
            (Some(number), [&self.metrics[..], &set.metrics].concat())
        };
        let of_sets = self.sets.iter().enumerate().map(of);
        let all: Vec<_> = if self.sets.is_empty() { own.to_vec() } else { of_sets.collect() };
        all.into_iter().filter(|(_, asked)| !asked.is_empty()).collect()
    }

    /// Takes the metrics of a set, or of the item, and counts their events there, each once.
    ///
    /// # Errors
    /// The set is for a kind of core, whose events are not those that metrics are planned for.
    pub(super) fn count_for(
        &mut self,
        set: Option<usize>,
        asks: Vec<Ask>,
        events: Vec<EventText>,
    ) -> Result<(), String> {
        let (whole, events): (Vec<_>, Vec<_>) = events.into_iter().partition(is_whole);
        whole::add(&mut self.whole, whole.iter().cloned());
        let place = match set {
            Some(number) => &mut self.sets[number],
            None => &mut self.own,
        };
        if place.bind.names_core() {
            return Err(format!(
                "metrics are planned for the boot processor's kind of core, and `{}` is bound to a kind; bind it \
                 by its number to a processor of that kind",
                place.name
            ));
        }
        whole::add(&mut place.whole, whole);
        for event in events.into_iter().map(EventTable::plain) {
            if !place.events.iter().any(|other| other.is_same(&event)) {
                place.events.push(event);
            }
        }
        self.asks.extend(asks.into_iter().map(|ask| Ask { set, ..ask }));
        Ok(())
    }

    /// The error that `message` says, with a place in the item.
    fn refused_at(&self, place: &Place, message: String) -> JobError {
        JobError::of_item("count", place, &self.name, message)
    }
}

impl FileItem for CountFile {
    of_workload!();

    fn asks(&self) -> &[Ask] {
        &self.asks
    }

    fn events(&self) -> Vec<&EventText> {
        let all = core::iter::once(&self.own).chain(&self.sets);
        all.flat_map(|set| &set.events).map(|event| &event.event).collect()
    }

    fn check_expected(&self, _source: &str) -> Result<(), JobError> {
        let gate = match (self.gate.is_empty(), self.nested) {
            (true, _) => &[][..],
            (false, nested) => &["starts", "stops", "deepest"][..2 + usize::from(nested)],
        };
        let whole = ["ticks", "switches"].map(ToString::to_string).into_iter();
        // Of several gates each has its task's name.
        let tasks = &self.workload.tasks;
        let gate = gate.iter().flat_map(|figure| {
            let of = tasks.iter().map(move |task| format!("{figure}, task {}", task.name));
            core::iter::once((*figure).to_string()).chain(of)
        });
        let mut names =
            Names { whole: whole.chain(gate).collect(), behind: &BEHIND, events: Vec::new() };
        names.whole.extend(Names::of_events(self.whole.iter()));
        names.whole.extend(self.workload.figures_of_moves());
        for set in self.sets.iter().chain(self.sets.is_empty().then_some(&self.own)) {
            let of = if self.sets.is_empty() { String::new() } else { format!("{}: ", set.name) };
            names.whole.extend(["groups", "passes"].map(|figure| format!("{of}{figure}")));
            let events = Names::of_events(set.events.iter().map(|event| &event.event));
            names.events.extend(events.into_iter().map(|event| format!("{of}{event}")));
        }
        names.check(&self.criteria).map_err(|message| self.refused_at(&self.place, message))
    }

    fn greatest_cpu(&self) -> Option<u16> {
        let sets = core::iter::once(&self.own).chain(&self.sets);
        let bound = sets.filter_map(|set| match &set.bind {
            BindFile::Cpu(_, cpu) => Some(*cpu),
            _ => None,
        });
        bound.chain(self.workload.greatest_cpu()).max()
    }

    fn check_cpus(&self, cpus: u32) -> Result<(), JobError> {
        self.workload.check_cpus(cpus)?;
        for set in core::iter::once(&self.own).chain(&self.sets) {
            if let BindFile::Cpu(place, cpu) = &set.bind
                && u32::from(*cpu) >= cpus
            {
                let message = format!("bind names processor {cpu}; {}", too_few(*cpu, cpus));
                return Err(self.refused_at(place, message));
            }
        }
        Ok(())
    }

    fn refused(&self, _source: &str, message: String) -> JobError {
        self.refused_at(&self.place, message)
    }
}

impl Section for CountFile {
    type Raw = RawCount;

    fn decide(
        raw: Spanned<RawCount>,
        number: usize,
        text: &Text,
        source: &str,
    ) -> Result<Self, JobError> {
        let place = place(text, source, &raw.span());
        let raw = raw.into_inner();
        let of = |points: Vec<_>, act| {
            points.into_iter().map(move |point| PointFile::decide(point, act, text, source))
        };
        let starts = of(raw.start_at, GateAct::Start);
        let stops = of(raw.stop_at, GateAct::Stop);
        let name = raw.name.unwrap_or_else(|| format!("count {number}"));
        let events = raw.events.into_iter().map(|event| event.0);
        let (whole, events): (Vec<_>, Vec<_>) = events.partition(EventTable::is_whole);
        let own = SetFile {
            name: name.clone(),
            events,
            whole: Vec::new(),
            metrics: Vec::new(),
            together: raw.together,
            bind: BindFile::decide(raw.bind, text, source),
            inherit: raw.inherit,
            force: false,
            schedule: Ok(Schedule::default()),
            place: place.clone(),
        };
        let sets = raw.set.into_iter().zip(1..);
        let sets = sets.map(|(set, number)| SetFile::decide(set, number, text, source));
        let sets: Vec<SetFile> = sets.collect();
        let mut whole: Vec<EventText> = whole.into_iter().map(|one| one.event).collect();
        whole::add(&mut whole, sets.iter().flat_map(|set| set.whole.iter().cloned()));
        Ok(Self {
            name,
            own,
            whole,
            sets,
            at_overflow: raw.at_overflow,
            passes: raw.passes,
            interval_ns: raw.interval_ns,
            limit_us: raw.limit_us.unwrap_or(DEFAULT_LIMIT_US),
            console: raw.console,
            workload: WorkloadFile {
                memory: raw.memory,
                ..WorkloadFile::decide(raw.task, raw.tick_ns, raw.jitter, text, source)
            },
            gate: starts.chain(stops).collect(),
            nested: raw.nested,
            criteria: CriteriaFile::new(raw.expect, raw.allow_uncounted, raw.limits),
            metrics: raw.metrics,
            asks: Vec::new(),
            place,
        })
    }

    fn pack(
        _file: &JobFile,
        all: &[Self],
        programs: &Programs,
    ) -> Result<Vec<PackedItem>, JobError> {
        let pack = |count: &Self| {
            let mut counted = count.item()?;
            programs.fill(&count.workload, &mut counted.workload)?;
            let item = Item::Count(counted);
            let wrong = |error: LimitError| {
                let of_task = count.workload.task_error(&error);
                of_task.unwrap_or_else(|| count.refused_at(&count.place, error.to_string()))
            };
            limits::check_item(&item).map_err(wrong)?;
            Ok((item, None))
        };
        all.iter().map(pack).collect()
    }
}

#[cfg(test)]
mod tests;
