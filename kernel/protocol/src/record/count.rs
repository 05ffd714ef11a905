//! What was counted while tasks ran.

use super::{
    BindMoment, CountBinding, CountedUncore, Miss, StaleReading, TaskResult, Together, Uncounted,
    VectorCount, Verdict,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// Counts of one item.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountResult {
    /// Index of the item in the job.
    pub item: u32,
    /// Name of the item.
    pub name: String,
    /// Whether it met what the job expects; absent: nothing was expected, and nothing went wrong.
    #[serde(default, skip_serializing_if = "Verdict::is_none")]
    pub verdict: Verdict,
    /// What of it missed: figures out of their bounds, and events that were not counted though they had to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misses: Vec<Miss>,
    /// State that the item had changed and that was put back behind it, in the manuals' names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// How the tasks ran, in the order of [`CountedEvent::tasks`].
    pub tasks: Vec<TaskResult>,
    /// What was counted.
    pub events: Vec<CountedEvent>,
    /// Events that could not be counted, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// The series, if the job asked for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<CountInterval>,
    /// Groups of events that took turns; 1: all were counted all the time.
    pub groups: u32,
    /// Passes through all groups that were completed.
    pub passes: u64,
    /// Timer ticks.
    pub ticks: u64,
    /// Context switches, those to the kernel and from it included.
    pub switches: u64,
    /// The machine's own figures; absent if nothing could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<CountSnapshot>,
    /// Rows of the series that there was no room for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Whether the counts are of barecount's emulated PMU.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub emulated: bool,
    /// TSC when the item began and when it was done, before this record was written.
    pub tsc: [u64; 2],
    /// For whom [`CountResult::events`] were counted; absent: for the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<String>,
    /// Sets of their own; [`CountResult::events`] is empty then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<CountedSet>,
    /// How several processors worked together; absent if one ran all tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Together>,
    /// Each processor's own figures, in the order of [`CountedEvent::cpus`], if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<CountCpu>,
    /// How counting started and stopped, if that was at addresses, of each task that has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<CountGate>,
    /// What tasks read of themselves while they ran, in the order of each processor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<CountReading>,
    /// Readings that there was no room for here. The tasks were answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub readings_dropped: u64,
    /// Events that a console replaced by others, in that order: readings from before are of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedEvent>,
    /// Readings of counts that were no longer the task's, which it was told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<StaleReading>,
    /// Bindings of sets that there was no room for. They are in the sets' counts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bindings_dropped: u64,
    /// TSC ticks between two timer ticks at the end, if those that were asked for left the tasks no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengthened: Option<u64>,
    /// Energy that was used meanwhile, by everything that ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<CountedEnergy>,
    /// Events of the uncore, of everything that ran meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncore: Vec<CountedUncore>,
}

/// Energy that a part of the machine used while tasks ran (RAPL).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedEnergy {
    /// The part, in the job's words.
    pub event: String,
    /// The register: `MSR 0x611`.
    pub register: String,
    /// Joules.
    pub joules: f64,
    /// Joules by which that may be off: what the register moves by at once.
    pub resolution: f64,
    /// Units of the register.
    pub units: u64,
    /// The unit: 14 means 2^-14 J.
    pub unit: u8,
    /// TSC ticks in which it was used, the way into the tasks and out of them included.
    pub ticks: u64,
    /// TSC ticks from one update of the register to the next.
    pub update: u64,
    /// The number of the processor that read it.
    #[serde(default, skip_serializing_if = "is_boot")]
    pub reader: u32,
    /// Processors of the item in the package, or the core, that the register counts: it was read once for all of them. Absent: the
    /// reader alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processors: Vec<u32>,
}

impl CountedEnergy {
    /// Joules by the event's name, over all packages; where there are several, those of each behind the number of the processor that
    /// read it.
    #[must_use]
    pub fn sums(all: &[Self]) -> Vec<(String, f64)> {
        let mut sums: Vec<(String, f64)> = Vec::new();
        for (index, one) in all.iter().enumerate() {
            let same = || all.iter().filter(|other| other.event == one.event);
            if all[..index].iter().all(|other| other.event != one.event) {
                sums.push((one.event.clone(), same().map(|other| other.joules).sum()));
            }
            if same().nth(1).is_some() {
                sums.push((format!("{}, cpu {}", one.event, one.reader), one.joules));
            }
        }
        sums
    }
}

/// Whether it is the boot processor.
pub(super) fn is_boot(number: &u32) -> bool {
    *number == 0
}

impl CountResult {
    /// What tasks read, by the names of its figures: each task's own count of an event, and that of its descendants. The
    /// readings of a task and an event are numbered from 1.
    #[must_use]
    pub fn named_readings(&self) -> Vec<(String, CountValue)> {
        let mut all = Vec::new();
        for (index, reading) in self.readings.iter().enumerate() {
            let names = self.names_of(reading);
            let before = self.readings[..index].iter().filter(|one| self.names_of(one) == names);
            let (number, [task, event]) = (before.count() + 1, names);
            for (what, value) in [("task", reading.own), ("children of", reading.children)] {
                all.push((format!("{event}, {what} {task}, reading {number}"), value));
            }
        }
        all
    }

    /// What an event came to on each processor if tasks move, behind the event's name: the kernel's, and that of each task which may
    /// move.
    #[must_use]
    pub fn shares_of(&self, event: &CountedEvent) -> Vec<(String, CountValue)> {
        let mut all = Vec::new();
        for (CountCpu { processor, .. }, share) in self.cpus.iter().zip(&event.shares) {
            all.push((format!(", kernel, cpu {processor}"), share.kernel));
            let moving = self.tasks.iter().zip(&share.tasks);
            let moving = moving.filter(|(task, _)| task.moves.is_some());
            all.extend(
                moving.map(|(task, value)| {
                    (format!(", task {}, cpu {processor}", task.name), *value)
                }),
            );
        }
        all
    }

    /// The names of the task and of the event of a reading, that behind its set's if there are sets.
    #[must_use]
    pub fn names_of(&self, reading: &CountReading) -> [String; 2] {
        let set = self.sets.get(reading.set as usize);
        let events = set.map_or(&self.events, |set| &set.events);
        let event = events.get(reading.event as usize).map_or("", |event| &*event.event);
        let mut later = self.changed.iter().skip(reading.changed as usize);
        let replaced = later.find(|one| (one.set, one.event) == (reading.set, reading.event));
        let event = replaced.map_or(event, |one| &one.was);
        let set = set.map_or(String::new(), |set| format!("{}: ", set.name));
        let task = self.tasks.get(usize::from(reading.task)).map_or("", |task| &*task.name);
        [task.to_string(), format!("{set}{event}")]
    }
}

/// What a processor did while it counted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountCpu {
    /// Its number.
    pub processor: u32,
    /// Timer ticks.
    pub ticks: u64,
    /// Context switches.
    pub switches: u64,
    /// The machine's own figures on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<CountSnapshot>,
}

/// A set that counted for somebody, or why it did not.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedSet {
    /// Its name.
    pub name: String,
    /// For whom it counted.
    pub bind: String,
    /// What was counted while it had the counters. None if it never had them while tasks ran.
    pub events: Vec<CountedEvent>,
    /// Events that could not be counted, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<Uncounted>,
    /// Groups of events that took turns; 1: all were counted all the time.
    pub groups: u32,
    /// Passes through all groups that were completed.
    pub passes: u64,
    /// Why it was not bound: somebody else held the counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// It was bound, and lost the counters, and has not got them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<Eviction>,
    /// Since when it waits for the counters, if it still does at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<BindMoment>,
    /// When it had the counters, of an item whose sets are bound and released while tasks run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<CountBinding>,
}

/// How a set lost the counters.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Eviction {
    /// Name of the set that took them by force.
    pub by: String,
    /// The processor on which that was.
    pub processor: u32,
    /// The generation of ownership in which it had acquired them.
    pub acquired: u64,
    /// The generation that began with the eviction.
    pub generation: u64,
}

/// Counting that started and stopped at addresses of a task.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountGate {
    /// The task, as an index into [`CountResult::tasks`]. Tasks without a gate were not counted.
    pub task: u16,
    /// How often counting started. Reaching an address that starts while it counts is not one.
    pub starts: u64,
    /// How often it stopped at an address.
    pub stops: u64,
    /// Debug exceptions that were taken for it, those at which counting neither started nor stopped included.
    pub taken: u64,
    /// Starts at one time that were still to be stopped, at most; absent if they are not nested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deepest: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}

/// What the machine itself counts, from the start of counting to its end. Each end is one consistent read together with
/// the counters: it is repeated if an interrupt, an exception, a switch or a system management interrupt comes in between.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountSnapshot {
    /// TSC ticks from the end of the first read to the beginning of the last.
    pub tsc: u64,
    /// TSC ticks that the last read took.
    pub width: u64,
    /// IA32_APERF: cycles while not halted; absent without the register.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aperf: Option<u64>,
    /// IA32_MPERF: the same at the TSC's rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mperf: Option<u64>,
    /// System management interrupts, by MSR_SMI_COUNT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smis: Option<u64>,
    /// Exceptions (vectors 0 to 31) and interrupts that were taken.
    pub interrupts: Vec<VectorCount>,
    /// Context switches.
    pub switches: u64,
    /// Reads that were begun again.
    pub retries: u32,
}

/// One event's counts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedEvent {
    /// The label that the job gives it, or its text.
    pub event: String,
    /// Its name in the processor's table; for a raw event, its code.
    pub name: String,
    /// The counter; for an event of every pass, the one of the first.
    pub counter: String,
    /// The group that it is counted in, from 0.
    pub group: u32,
    /// Everything on all processors.
    pub sum: CountValue,
    /// Each processor's: of one that is not counted for the set, zero in no time.
    pub cpus: Vec<CountValue>,
    /// What ran in no task: the scheduler, interrupts between tasks.
    pub kernel: CountValue,
    /// Each task's, its children that have exited included.
    pub tasks: Vec<CountValue>,
    /// The same of each processor, in the order of [`CountedEvent::cpus`], if tasks move between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<CountShare>,
    /// What was taken out at each interruption of counting between addresses: the kernel's own way from counting and back to
    /// it, as it was measured before; absent if the event is not counted in ring 0 or not between addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_out: Option<u64>,
    /// Overflows that were acted on, of events that have a number of events after which they overflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflows: Option<u64>,
    /// Errata of the event, and what else puts the count in doubt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// What an event came to on one processor of tasks that move. The tasks without their children and the kernel add up to the
/// processor's count.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountShare {
    /// What ran in no task.
    pub kernel: CountValue,
    /// Each task's, its children that have exited included.
    pub tasks: Vec<CountValue>,
}

/// An event that a console replaced by another.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedEvent {
    /// Its set: an index of [`CountResult::sets`], if there are any.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub set: u32,
    /// Its place, as an index into the set's events.
    pub event: u32,
    /// The text that it had.
    pub was: String,
}

/// What a task read of itself, by `int 0x85`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountReading {
    /// The task, as an index into [`CountResult::tasks`].
    pub task: u16,
    /// The set that counted it: an index of [`CountResult::sets`], if there are any.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub set: u32,
    /// The event, as an index into the set's events.
    pub event: u32,
    /// How many of [`CountResult::changed`] there were before.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub changed: u32,
    /// TSC ticks since counting began.
    pub tsc: u64,
    /// What the task itself had come to.
    pub own: CountValue,
    /// What its descendants had come to: those that had exited, and those that were still there.
    pub children: CountValue,
}

/// A count, and how much of the time it stands for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountValue {
    /// Events while it had a counter.
    pub raw: u64,
    /// The count scaled to the whole time; absent if it never had a counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled: Option<u64>,
    /// TSC ticks during which it had a counter.
    pub counted: u64,
    /// TSC ticks during which it could have had one: the share of the time is the quotient of the two.
    pub enabled: u64,
}

/// A row of the series.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountInterval {
    /// TSC ticks since counting began, at the row's end.
    pub tsc: u64,
    /// Each event's raw count since the row before of the same processor.
    pub raw: Vec<u64>,
    /// Each task's share of [`CountInterval::raw`], in the order of [`CountResult::tasks`]. What is left is the kernel's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Vec<u64>>,
    /// The processor that counted.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub processor: u32,
    /// The set whose events these are: an index of [`CountResult::sets`], if there are any.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub set: u32,
}
