//! The job kind `count`: from its requests to its record.
//!
//! [`Sets`] says who is counted where. Each processor has a [`CountRun`], which whoever runs the tasks there tells of every
//! switch, interrupts off; [`whole`] makes one record of all. What is counted for the system is all that runs, so that
//! the tasks and the kernel add up to the machine.

mod bindings;
mod console;
mod figures;
mod plan;
mod readings;
mod series;
pub mod sets;
mod whole;

use bindings::Bindings;
pub use bindings::{BindingOfSet, Outcome};
pub use plan::{Planned, plan};
use readings::Readings;
use series::AllSeries;
pub use sets::{Sets, Share, Shares};
pub use whole::{PartOfSet, timed, whole};

use super::address::{AddressError, AddressGate};
use super::contexts::{ContextError, Contexts};
use super::gate::{Begin, Gate, in_ring_0};
use super::owner::{Claim, Owner};
use super::request::{AtOverflow, Notify, Run};
use super::snapshot::{Clocks, Snapshot, SnapshotError, take};
use super::taken_out::TakenOut;
use super::{Count, CountingError, Counts, Platform, Set};
use crate::snippet::measure::METRICS_OVERFLOWED;
use crate::tasks::Read;
use alloc::vec::Vec;
use arch::pmu::Driver;
pub(crate) use figures::Beside;
use figures::between;
use protocol::count;
use protocol::record::{
    BindMoment, ChangedEvent, CountGate, CountInterval, CountReading, CountSnapshot, CountValue,
    CountedEvent, StaleReading,
};

/// A set that has counters here, or may get them.
#[derive(Clone, Debug)]
struct Held {
    number: usize,
    /// Its bindings, by their numbers: one for whom it is counted each.
    bindings: Vec<usize>,
    /// The number of each request among the job's events of the set.
    events: Vec<usize>,
}

/// What one processor counts of a job.
#[derive(Clone, Debug)]
pub struct CountRun {
    contexts: Contexts,
    held: Vec<Held>,
    bindings: Bindings,
    /// TSC at the beginning.
    begin: u64,
    ticks: u64,
    series: Option<AllSeries>,
    clocks: Clocks,
    /// At the start.
    first: Option<Snapshot>,
    /// From there to the end.
    snapshot: Option<CountSnapshot>,
    /// For the counts of a snapshot: of the first binding.
    now: Option<(usize, Counts)>,
    /// Counting starts and stops at addresses.
    gate: Option<Gate>,
    readings: Readings,
}

/// What one processor counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Of each set.
    pub sets: Vec<PartOfSet>,
    /// The series.
    pub intervals: Vec<CountInterval>,
    /// Rows that there was no room for.
    pub dropped: u64,
    /// Timer ticks.
    pub ticks: u64,
    /// Context switches.
    pub switches: u64,
    /// The machine's own figures.
    pub snapshot: Option<CountSnapshot>,
    /// How counting started and stopped, if that was at addresses, of each task that has some.
    pub gates: Vec<CountGate>,
    /// What tasks read of themselves.
    pub readings: Vec<CountReading>,
    /// Readings that there was no room for.
    pub readings_dropped: u64,
    /// Events that were replaced by others.
    pub changed: Vec<ChangedEvent>,
    /// Readings of counts that were no longer the task's.
    pub stale: Vec<StaleReading>,
    /// When sets had the counters, if that was not all the time.
    pub bindings: Vec<BindingOfSet>,
    /// Bindings that there was no room for.
    pub bindings_dropped: u64,
    /// How it stood with each set at the end.
    pub outcomes: Vec<Outcome>,
}

impl CountRun {
    /// Programs what this processor is to count of `item`. Nothing counts yet.
    ///
    /// # Errors
    /// The PMU refuses a request.
    pub fn begin(
        item: &count::Count,
        shares: Shares,
        driver: &Driver,
        platform: &mut dyn Platform,
    ) -> Result<Self, ContextError> {
        let at_overflow = match item.at_overflow {
            count::AtOverflow::Same => AtOverflow::Same,
            count::AtOverflow::Next => AtOverflow::Next,
            count::AtOverflow::Stop => AtOverflow::Stop,
        };
        let run = Run { at_overflow, passes: item.passes, notify: Notify::empty() };
        let tasks = u16::try_from(item.workload.tasks.len()).unwrap_or(u16::MAX);
        let mut contexts = Contexts::new(Owner::new(Ok(()), tasks), tasks);
        let (mut held, mut now) = (Vec::new(), None);
        let mut series = AllSeries::new(item, &shares.sets);
        let mut taken_out = TakenOut::default();
        for Share { number, set, scopes, events, alone, .. } in shares.sets {
            let mut bindings = Vec::new();
            if sees_the_kernel(item, &set) {
                taken_out =
                    TakenOut::measure(&set, driver, platform).map_err(CountingError::from)?;
            }
            for scope in scopes {
                let (set, of) = (set.clone(), (scope, alone));
                let binding = contexts.prepare(set, run, driver.clone(), of, platform)?;
                bindings.push(binding);
            }
            if let Some(&first) = bindings.first() {
                now.get_or_insert_with(|| (first, Counts::new(&set)));
            }
            held.push(Held { number, bindings, events });
        }
        let ledger = (shares.cpu, shares.ledger);
        let mut bindings = Bindings::new(item, ledger, &held, &mut contexts);
        bindings.settle(BindMoment::default(), &held, &mut contexts, platform)?;
        // A binding counts at once; the kernel keeps what little that is.
        if let Some(claim) = contexts.system() {
            contexts.session(&claim)?.stop(platform).map_err(CountingError::from)?;
        }
        if let Some(series) = &mut series {
            for (number, &binding) in held
                .iter()
                .flat_map(|held| held.bindings.iter().map(|binding| (held.number, binding)))
            {
                let claim = contexts.claim(binding);
                let set = contexts.session_of(binding).map(|session| session.set().clone());
                if let (Some(claim), Some(set)) = (claim, set) {
                    series.follow(number, &set, claim, tasks);
                }
            }
        }
        Ok(Self {
            contexts,
            held,
            bindings,
            begin: 0,
            ticks: 0,
            series,
            clocks: Clocks::read(platform),
            first: None,
            snapshot: None,
            now,
            gate: Gate::of(item, taken_out),
            readings: Readings::new(tasks),
        })
    }

    /// The tasks are in memory, each at one of `begins`. Returns what the debug registers are to have during which task, if
    /// counting starts and stops at addresses.
    ///
    /// # Errors
    /// The addresses cannot be watched.
    pub fn place(&mut self, begins: &[Begin]) -> Result<Vec<(u16, AddressGate)>, AddressError> {
        self.gate.as_mut().map_or(Ok(Vec::new()), |gate| gate.place(begins))
    }

    /// A debug exception. Returns whether it was one of the gate's, as [`Gate::trapped`].
    ///
    /// # Errors
    /// A register refuses.
    pub fn trapped(
        &mut self,
        dr6: u64,
        platform: &mut dyn Platform,
    ) -> Result<Option<bool>, ContextError> {
        let (claim, task) = (self.system(), self.contexts.current());
        let (Some(gate), Some(claim)) = (&mut self.gate, claim) else { return Ok(None) };
        let session = self.contexts.session(&claim)?;
        Ok(gate.trapped(task, dr6, session, platform).map_err(CountingError::from)?)
    }

    /// What the kernel's own way has come to goes out of the counts.
    fn settle(&mut self, platform: &mut dyn Platform) -> Result<(), ContextError> {
        let claim = self.system();
        let (Some(gate), Some(claim)) = (&mut self.gate, claim) else { return Ok(()) };
        let session = self.contexts.session(&claim)?;
        Ok(gate.settle(session, platform).map_err(CountingError::from)?)
    }

    /// Claims on the system: at most one, as it excludes all others.
    #[inline]
    fn system(&self) -> Option<Claim> {
        self.contexts.system()
    }

    /// Counts from here on, for the kernel until the first switch; or from the gate's first address on.
    ///
    /// # Errors
    /// A register refuses.
    pub fn start(&mut self, platform: &mut dyn Platform) -> Result<(), ContextError> {
        self.first = self.snapshot(platform)?;
        self.begin = platform.tsc();
        // Sets of tasks start when these have the processor.
        match self.system().filter(|_| self.gate.is_none()) {
            Some(claim) => {
                Ok(self.contexts.session(&claim)?.start(platform).map_err(CountingError::from)?)
            }
            None => Ok(()),
        }
    }

    /// Counts no more. The rest is for the one that ran last.
    ///
    /// # Errors
    /// A register refuses.
    pub fn stop(&mut self, platform: &mut dyn Platform) -> Result<(), ContextError> {
        self.settle(platform)?;
        if let Some(claim) = self.system() {
            self.contexts.session(&claim)?.stop(platform).map_err(CountingError::from)?;
        }
        if let (Some(first), None) = (self.first, &self.snapshot) {
            let last = self.snapshot(platform)?;
            self.snapshot = last.map(|last| between(&first, &last));
        }
        Ok(())
    }

    /// The machine's figures of one moment, counts of the first binding among them.
    fn snapshot(&mut self, platform: &mut dyn Platform) -> Result<Option<Snapshot>, ContextError> {
        let switches = self.contexts.switches();
        let Some((binding, now)) = &mut self.now else { return Ok(None) };
        let Some(session) = self.contexts.session_of(*binding) else { return Ok(None) };
        let clocks = self.clocks;
        let mut taken = Snapshot::EMPTY;
        let done = take(&mut Beside { session, platform, switches, clocks }, now, &mut taken);
        done.map(|()| Some(taken)).map_err(|error| match error {
            SnapshotError::Counting(error) => error.into(),
            // Interrupts are off here.
            SnapshotError::Unsettled => ContextError::Unsettled,
        })
    }

    /// A task has begun.
    pub fn created(&mut self, task: u16, parent: Option<u16>) {
        self.contexts.created(task, parent);
    }

    /// `from` ran until now, `to` runs from here on; `None` is the kernel.
    ///
    /// # Errors
    /// A register refuses.
    pub fn switched(
        &mut self,
        from: Option<u16>,
        to: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let claim = self.system();
        let (Some(gate), Some(claim)) = (&mut self.gate, claim) else {
            return Ok(self.contexts.switched(from, to, platform)?);
        };
        let session = self.contexts.session(&claim)?;
        gate.suspend(from, session, platform).map_err(CountingError::from)?;
        self.contexts.switched(from, to, platform)?;
        let session = self.contexts.session(&claim)?;
        Ok(gate.resume(to, session, platform).map_err(CountingError::from)?)
    }

    /// The same of two tasks, if nothing is to be done but to charge what was counted to `from`. Returns whether that is so;
    /// else [`CountRun::switched`] is to be told.
    #[inline]
    pub fn switched_planned(&mut self, from: u16, to: u16, platform: &mut impl Platform) -> bool {
        self.gate.is_none() && self.contexts.switched_planned(from, to, platform)
    }

    /// The task that runs; `None` is the kernel.
    #[must_use]
    pub const fn current(&self) -> Option<u16> {
        self.contexts.current()
    }

    /// A task is gone, and its counts are its heir's.
    ///
    /// # Errors
    /// A register refuses.
    pub fn exited(
        &mut self,
        task: u16,
        heir: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let mut followed = self.series.as_mut().zip(heir);
        if let Some((series, heir)) = &mut followed {
            series.exits(*heir, &mut self.contexts, platform)?;
        }
        self.contexts.exited(task, heir, platform)?;
        match followed {
            Some((series, heir)) => series.exited(heir, &mut self.contexts, platform),
            None => Ok(()),
        }
    }

    /// The running task reads its count of event number `event` of the set that counts it. `None`: there is none.
    ///
    /// # Errors
    /// A register refuses.
    pub fn reads(
        &mut self,
        task: u16,
        event: u64,
        platform: &mut dyn Platform,
    ) -> Result<Option<Read>, ContextError> {
        self.settle(platform)?;
        let what = [task.into(), event];
        self.readings.read(what, &self.held, self.begin, &mut self.contexts, platform)
    }

    /// Whether a task that reaches `marker` changes who has the counters.
    #[must_use]
    pub fn heeds(&self, marker: u32) -> bool {
        self.bindings.heeds(marker)
    }

    /// `task` has reached `marker`.
    ///
    /// # Errors
    /// A register refuses.
    pub fn marked(
        &mut self,
        task: Option<u16>,
        marker: u32,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.happens(BindMoment { marker: Some(marker), task, ..BindMoment::default() }, platform)
    }

    /// Sets may get or lose the counters now.
    fn happens(
        &mut self,
        moment: BindMoment,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        let tsc = platform.tsc().wrapping_sub(self.begin);
        let moment = BindMoment { tsc, tick: self.ticks, ..moment };
        self.bindings.happens(moment, &self.held, &mut self.contexts, platform)
    }

    /// The timer has ticked while `task` ran.
    ///
    /// # Errors
    /// A register refuses.
    pub fn tick(
        &mut self,
        task: Option<u16>,
        platform: &mut dyn Platform,
    ) -> Result<(), ContextError> {
        self.ticks += 1;
        if let Some(series) = &mut self.series {
            series.tick(self.ticks, self.begin, &mut self.contexts, platform)?;
        }
        while let Some(us) = self.bindings.take_due(self.ticks) {
            self.happens(BindMoment { due_us: Some(us), ..BindMoment::default() }, platform)?;
        }
        let claim = self.system();
        let (Some(gate), Some(claim)) = (&mut self.gate, claim) else {
            return Ok(self.contexts.tick(task, platform)?);
        };
        // Requests take turns in the time that counts.
        let session = self.contexts.session(&claim)?;
        gate.resume(task, session, platform).map_err(CountingError::from)?;
        self.contexts.tick(task, platform)?;
        let session = self.contexts.session(&claim)?;
        Ok(gate.suspend(task, session, platform).map_err(CountingError::from)?)
    }

    /// The PMU's interrupt, after the handler.
    ///
    /// # Errors
    /// A register refuses.
    pub fn interrupt(&mut self, platform: &mut dyn Platform) -> Result<(), CountingError> {
        self.contexts.interrupt(platform)
    }

    /// Ends it, and gives the counters back.
    ///
    /// # Errors
    /// A register refuses.
    pub fn finish(mut self, platform: &mut dyn Platform) -> Result<Part, ContextError> {
        // Nothing more for the kernel, so that the parts add up to the whole.
        self.stop(platform)?;
        // The last row may be a short one, of what came after the last tick.
        if let Some(series) = &mut self.series {
            series.row(self.begin, &mut self.contexts, platform)?;
        }
        let mut part = Part {
            ticks: self.ticks,
            switches: self.contexts.switches(),
            snapshot: self.snapshot.take(),
            gates: self.gate.as_ref().map(Gate::results).unwrap_or_default(),
            ..Part::default()
        };
        if let Some(series) = self.series.take() {
            (part.intervals, part.dropped) = series.rows();
        }
        self.readings.rows(&mut part);
        self.bindings.end(&self.held, &mut self.contexts, platform)?;
        for Held { number, bindings, .. } in core::mem::take(&mut self.held) {
            for binding in bindings {
                let own = self.part_of(number, binding, platform)?;
                part.sets.extend(own.filter(|_| self.bindings.has_counted(number)));
            }
        }
        self.contexts.give_up(platform)?;
        (part.bindings, part.bindings_dropped, part.outcomes) = self.bindings.rows();
        Ok(part)
    }

    fn part_of(
        &mut self,
        number: usize,
        binding: usize,
        platform: &mut dyn Platform,
    ) -> Result<Option<PartOfSet>, ContextError> {
        let mut tasks = self.contexts.counts(binding, platform)?.to_vec();
        let kernel = tasks.pop();
        let session = self.contexts.session_of(binding);
        let (Some(kernel), Some(session)) = (kernel, session) else { return Ok(None) };
        let mut now = Counts::new(session.set());
        session.sample(platform, &mut now)?;
        let mut events = Vec::new();
        for (index, request) in session.set().requests().iter().enumerate() {
            let place = session.set().groups().iter().enumerate().find_map(|(group, members)| {
                let (_, one) = members.iter().find(|(request, _)| *request == index)?;
                Some((group, one))
            });
            let Some((group, one)) = place else { continue };
            let taken_out = self.gate.as_ref().and_then(|gate| gate.taken_out(index));
            let mut remarks = one.counting.remarks.clone();
            if one.metric.is_some() && session.metrics_overflowed() {
                remarks.push(METRICS_OVERFLOWED.into());
            }
            let value = |count: &Count, preset| match taken_out {
                None => value(count),
                Some(_) => value(&not_less(*count, preset)),
            };
            events.push(CountedEvent {
                event: one.event.clone(),
                name: one.counting.name.clone(),
                counter: one.counting.counter.clone(),
                group: group as u32,
                sum: value(&now.counts()[index], request.preset),
                cpus: Vec::new(),
                kernel: value(&kernel.counts()[index], 0),
                tasks: tasks.iter().map(|counts| value(&counts.counts()[index], 0)).collect(),
                shares: Vec::new(),
                overflows: request.every.map(|_| session.overflows()[index]),
                taken_out,
                remarks,
            });
        }
        let groups = session.set().groups().len() as u32;
        Ok(Some(PartOfSet { number, events, groups, passes: session.passes() }))
    }
}

/// Whether something of `set` is counted between addresses, and counts ring 0: then the kernel's own way is to be kept out of
/// it ([`TakenOut`]).
#[must_use]
pub fn sees_the_kernel(item: &count::Count, set: &Set) -> bool {
    !item.gate.is_empty() && in_ring_0(set, |_| true).is_some()
}

/// The count, or where it began if more was taken out than there was: what the kernel comes to varies where events are no
/// instructions.
const fn not_less(count: Count, preset: u64) -> Count {
    let came_to = count.raw.wrapping_sub(preset) as i64;
    if came_to < 0 { Count { raw: preset, ..count } } else { count }
}

fn value(count: &Count) -> CountValue {
    let Count { raw, counted, enabled } = *count;
    CountValue { raw, scaled: count.scaled(), counted, enabled }
}
