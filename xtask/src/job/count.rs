//! Counting over tasks in a job: `[[count]]`.

mod gate;
mod schedule;

use super::bind::{BindFile, RawBind};
use super::energy::{self, is_energy};
use super::errors::{JobError, Place};
use super::expect::{CriteriaFile, Names, RawExpect};
use super::file::{FileItem, JobFile, PackedItem, Section, Text};
use super::function::Programs;
use super::memory::MemoryFile;
use super::schema::{BindText, CountedText, ExpectText, PointText};
use super::workload::{DEFAULT_LIMIT_US, RawTask, WorkloadFile, of_workload, place, too_few};
use crate::compare::LimitTable;
use crate::events::EventText;
use crate::metrics::Asked;
use crate::metrics::request::Ask;
use ::events::parse::parse_event;
use gate::{PointFile, RawPoint};
use protocol::count::{AtOverflow, Bind, Count, CountRequest, CountSet, Schedule};
use protocol::gate::GateAct;
use protocol::job::Item;
use protocol::limits::{self, LimitError};
use schedule::{Moments, schedule};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;
use toml::Spanned;

/// What may stand behind an event in the name of a figure: whose count it is, or its overflows.
const BEHIND: [&str; 6] =
    [", kernel", ", overflows", ", cpu ", ", task ", ", children of ", ", binding "];

/// Events that are counted while tasks run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Count")]
pub(crate) struct RawCount {
    /// Its name. Default: `count` and its number.
    name: Option<String>,
    /// What is counted: events, or tables with what follows from their overflows.
    #[serde(default)]
    #[schemars(with = "Vec<CountedText>")]
    events: Vec<RawEvent>,
    /// Refuse events that do not fit at once. Default: false.
    #[serde(default)]
    together: bool,
    /// For whom it is counted. Default: system.
    #[schemars(with = "Option<BindText>")]
    bind: Option<Spanned<RawBind>>,
    /// Of tasks that are bound: whether children that they start are counted too. Default: true.
    inherit: Option<bool>,
    /// What an overflow does. Default: same.
    #[serde(default)]
    at_overflow: AtOverflow,
    /// Passes after which counting ends. Default: 0, never.
    #[serde(default)]
    passes: u64,
    /// Nanoseconds from one row of the series to the next. Default: 0, no series.
    #[serde(default)]
    interval_ns: u64,
    tick_ns: Option<u64>,
    jitter: Option<u64>,
    limit_us: Option<u64>,
    /// Sets with events of their own, bound one after the other before the tasks start, or while they run.
    #[serde(default)]
    #[schemars(with = "Vec<RawSet>")]
    set: Vec<Spanned<RawSet>>,
    /// Whether lines of the serial line are taken while it runs, which start, stop, read and change sets. Default: false.
    #[serde(default)]
    console: bool,
    /// Addresses of tasks where counting starts, such as `task:label+8`: four of each task.
    #[serde(default)]
    #[schemars(with = "Vec<PointText>")]
    start_at: Vec<Spanned<RawPoint>>,
    /// Addresses where it stops.
    #[serde(default)]
    #[schemars(with = "Vec<PointText>")]
    stop_at: Vec<Spanned<RawPoint>>,
    /// Whether counting stops only after as many stops as there were starts. Default: false.
    #[serde(default)]
    nested: bool,
    #[schemars(with = "Option<ExpectText>")]
    expect: Option<RawExpect>,
    /// Metrics to show, of everything that ran and of each task; with sets, of each set.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    metrics: Vec<Asked>,
    allow_uncounted: Option<bool>,
    limits: Option<LimitTable>,
    /// Memory besides the areas of each task; all of them share it.
    #[serde(default)]
    memory: Vec<MemoryFile>,
    /// The tasks, parents before their children.
    #[serde(default)]
    #[schemars(with = "Vec<RawTask>")]
    task: Vec<Spanned<RawTask>>,
}

/// A set of events that is bound by itself.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Set")]
struct RawSet {
    /// Its name. Default: `set` and its number.
    name: Option<String>,
    /// What is counted: events, or tables with what follows from their overflows.
    #[schemars(with = "Vec<CountedText>")]
    events: Vec<RawEvent>,
    #[serde(default)]
    together: bool,
    #[schemars(with = "Option<BindText>")]
    bind: Option<Spanned<RawBind>>,
    inherit: Option<bool>,
    /// Evict sets that are bound already. Default: false.
    #[serde(default)]
    force: bool,
    /// Microseconds after which it is bound, at a tick. Default: before the tasks start.
    #[schemars(with = "Option<u64>")]
    at_us: Option<Spanned<u64>>,
    /// In place of that: it is bound when a task executes `int 0x86` with this number in EAX, each time.
    #[schemars(with = "Option<u64>")]
    at_marker: Option<Spanned<u64>>,
    /// Microseconds after which it gives the counters back, at a tick. Default: with the end of the tasks.
    #[schemars(with = "Option<u64>")]
    until_us: Option<Spanned<u64>>,
    /// In place of that: it gives them back at this marker, each time.
    #[schemars(with = "Option<u64>")]
    until_marker: Option<Spanned<u64>>,
    /// Metrics to show of it, of everything that it counted and of each task.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    metrics: Vec<Asked>,
    /// Get the counters when they are given back, if others have them or take them. Default: false.
    #[serde(default)]
    wait: bool,
}

/// An event, and what follows from its overflows.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "CountedEvent")]
pub(super) struct EventTable {
    /// The event.
    event: EventText,
    /// The value that it counts from. Default: 0.
    #[serde(default)]
    preset: u64,
    /// Events from one overflow to the next.
    every: Option<u64>,
    /// Events that start to count at its first overflow.
    #[serde(default)]
    starts: Vec<String>,
    /// Whether it is counted in every time slice. Default: false.
    #[serde(default)]
    correlate: bool,
}

impl EventTable {
    /// An event from which nothing follows.
    fn plain(event: EventText) -> Self {
        Self { event, preset: 0, every: None, starts: Vec::new(), correlate: false }
    }

    /// Whether it counts the same from the same value on.
    fn is_same(&self, other: &Self) -> bool {
        self.event == other.event && self.preset == other.preset
    }

    /// Whether it is energy and nothing else: with what follows from overflows it is an event, and refused as one.
    fn is_energy(&self) -> bool {
        let plain = self.preset == 0 && self.every.is_none() && self.starts.is_empty();
        plain && !self.correlate && is_energy(&self.event)
    }
}

#[derive(Clone, Debug)]
struct RawEvent(EventTable);

// By hand, as the messages of serde's untagged enums do not say what is wrong.
impl<'de> Deserialize<'de> for RawEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RawEvent;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an event, or a table with event, preset, every, starts or correlate")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawEvent, E> {
                let event = EventText::deserialize(StrDeserializer::new(text))?;
                Ok(RawEvent(EventTable::plain(event)))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<RawEvent, M::Error> {
                EventTable::deserialize(MapAccessDeserializer::new(map)).map(RawEvent)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A set, all decided but the numbers of tasks.
#[derive(Clone, Debug)]
struct SetFile {
    name: String,
    events: Vec<EventTable>,
    /// Energy among them, which is of the whole item.
    energy: Vec<EventText>,
    /// Metrics that are asked for of it alone.
    metrics: Vec<Asked>,
    together: bool,
    bind: BindFile,
    /// Whether children of tasks are counted; `None`: it does not say.
    inherit: Option<bool>,
    force: bool,
    /// When it is bound and released, or what is wrong with that, and where.
    schedule: Result<Schedule, (Place, String)>,
    place: Place,
}

/// An item, all decided but its tasks' machine code.
#[derive(Clone, Debug)]
pub struct CountFile {
    name: String,
    /// Its own events, if it has no sets.
    own: SetFile,
    /// Energy, which is of the whole item.
    energy: Vec<EventText>,
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
        let (energy, events): (Vec<_>, Vec<_>) = events.into_iter().partition(is_energy);
        energy::add(&mut self.energy, energy.iter().cloned());
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
        energy::add(&mut place.energy, energy);
        for event in events.into_iter().map(EventTable::plain) {
            if !place.events.iter().any(|other| other.is_same(&event)) {
                place.events.push(event);
            }
        }
        self.asks.extend(asks.into_iter().map(|ask| Ask { set, ..ask }));
        Ok(())
    }

    /// The item.
    ///
    /// # Errors
    /// An event that is several, one that starts another that is not there, a bind to what is not there, an address that no
    /// task has, or what is wrong
    /// with the tasks.
    pub fn item(&self) -> Result<Count<'static>, JobError> {
        let assembled = self.workload.assemble()?;
        if let Some(at) = self.own.bind.place().filter(|_| !self.sets.is_empty()) {
            let message = "bind stands beside sets; give each set its own".to_string();
            return Err(self.refused_at(at, message));
        }
        let own = self.set(&self.own)?;
        let sets = self.sets.iter().map(|set| self.set(set));
        let gate = self.gate.iter().map(|point| {
            point.point(&assembled).map_err(|message| self.refused_at(&point.place, message))
        });
        let gate = gate.collect::<Result<_, _>>()?;
        Ok(Count {
            name: Cow::Owned(self.name.clone()),
            requests: own.requests,
            together: own.together,
            at_overflow: self.at_overflow,
            passes: self.passes,
            interval_ns: self.interval_ns,
            limit_us: self.limit_us,
            workload: assembled.workload,
            gate,
            nested: self.nested,
            bind: own.bind,
            alone: own.alone,
            sets: sets.collect::<Result<_, _>>()?,
            console: self.console,
            energy: self.energy.iter().map(|text| Cow::Owned(text.to_string())).collect(),
        })
    }

    /// What of a set's energy cannot be told, which is of everything that runs from the item's beginning to its end.
    fn check_energy(&self, set: &SetFile) -> Result<(), String> {
        let Some(energy) = set.energy.first() else { return Ok(()) };
        let comes = set.schedule.as_ref().is_ok_and(Schedule::is_given);
        let nearest = format!("give {energy} to the item's own events");
        match set {
            _ if comes => Err(format!(
                "set `{}` comes and goes, and energy is read before and after the whole item; {nearest}",
                set.name
            )),
            SetFile { events, .. } if events.is_empty() => Err(format!(
                "set `{}` counts nothing but energy, which is of the whole item; {nearest}",
                set.name
            )),
            _ => Ok(()),
        }
    }

    fn set(&self, set: &SetFile) -> Result<CountSet<'static>, JobError> {
        if !self.sets.is_empty() {
            self.check_energy(set).map_err(|message| self.refused_at(&set.place, message))?;
        }
        let requests = set.events.iter().map(|event| self.request(event, set));
        let bind = set.bind.bind(&self.workload);
        if set.inherit.is_some() && !matches!(bind, Ok(Bind::Tasks(_)) | Err(_)) {
            let message = "inherit is for what is bound to tasks".to_string();
            return Err(self.refused_at(&set.place, message));
        }
        Ok(CountSet {
            name: Cow::Owned(set.name.clone()),
            requests: requests.collect::<Result<_, _>>()?,
            together: set.together,
            bind: bind.map_err(|(place, message)| self.refused_at(&place, message))?,
            alone: set.inherit == Some(false),
            force: set.force,
            schedule: set
                .schedule
                .clone()
                .map_err(|(place, message)| self.refused_at(&place, message))?,
        })
    }

    fn request(
        &self,
        event: &EventTable,
        set: &SetFile,
    ) -> Result<CountRequest<'static>, JobError> {
        let text = event.event.to_string();
        if let Err(error) = parse_event(&text) {
            let hint = "each event of a count stands for itself; what must be counted at the same time needs \
                        together = true";
            let message = format!("`{text}` is not one event: {error}; {hint}");
            return Err(self.refused_at(&set.place, message));
        }
        let starts = event.starts.iter().map(|name| {
            let at = set.events.iter().position(|other| other.event.to_string() == *name);
            let missing = || format!("`{text}` starts `{name}`, which is no event of this count");
            at.map(|at| at as u16).ok_or_else(|| self.refused_at(&set.place, missing()))
        });
        Ok(CountRequest {
            starts: starts.collect::<Result<_, _>>()?,
            event: Cow::Owned(text),
            preset: event.preset,
            every: event.every,
            correlate: event.correlate,
        })
    }

    /// The error that `message` says, with a place in the item.
    fn refused_at(&self, place: &Place, message: String) -> JobError {
        JobError::Count { place: place.clone(), count: self.name.clone(), message }
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
        names.whole.extend(Names::of_events(self.energy.iter()));
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
        let (energy, events): (Vec<_>, Vec<_>) = events.partition(EventTable::is_energy);
        let own = SetFile {
            name: name.clone(),
            events,
            energy: Vec::new(),
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
        let mut energy: Vec<EventText> = energy.into_iter().map(|one| one.event).collect();
        energy::add(&mut energy, sets.iter().flat_map(|set| set.energy.iter().cloned()));
        Ok(Self {
            name,
            own,
            energy,
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

impl SetFile {
    /// Decides what `raw` leaves open. `number`: its place among the sets of its item, from 1.
    fn decide(raw: Spanned<RawSet>, number: usize, text: &Text, source: &str) -> Self {
        let place = place(text, source, &raw.span());
        let raw = raw.into_inner();
        let (at, until) = ([raw.at_us, raw.at_marker], [raw.until_us, raw.until_marker]);
        let said = schedule(&Moments { at, until, wait: raw.wait });
        let events = raw.events.into_iter().map(|event| event.0);
        let (energy, events): (Vec<_>, Vec<_>) = events.partition(EventTable::is_energy);
        Self {
            schedule: said.map_err(|(span, message)| (self::place(text, source, &span), message)),
            name: raw.name.unwrap_or_else(|| format!("set {number}")),
            events,
            energy: energy.into_iter().map(|one| one.event).collect(),
            metrics: raw.metrics,
            together: raw.together,
            bind: BindFile::decide(raw.bind, text, source),
            inherit: raw.inherit,
            force: raw.force,
            place,
        }
    }
}

#[cfg(test)]
mod tests;
