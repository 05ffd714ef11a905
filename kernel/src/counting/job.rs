//! The job kind `count`: from its requests to its record.
//!
//! [`Sets`] says who is counted where. Each processor has a [`CountRun`], which whoever runs the tasks there tells of every
//! switch, interrupts off; [`whole`] makes one record of all. What is counted for the system is all that runs, so that
//! the tasks and the kernel add up to the machine.

mod console;
mod figures;
mod plan;
mod readings;
mod series;
pub mod sets;
mod whole;

pub use plan::{Planned, plan};
use readings::Readings;
use series::AllSeries;
pub use sets::{Sets, Share};
pub use whole::{PartOfSet, whole};

use super::address::{AddressError, AddressGate};
use super::contexts::{ContextError, Contexts};
use super::gate::Gate;
use super::owner::{Ask, Claim, Force, Owner, Right, Scope};
use super::request::{AtOverflow, Notify, Run};
use super::snapshot::{Clocks, Snapshot, SnapshotError, take};
use super::{Count, CountingError, Counts, Platform};
use crate::tasks::Read;
use alloc::vec::Vec;
use arch::pmu::Driver;
pub(crate) use figures::Beside;
use figures::between;
use protocol::count;
use protocol::record::{
    CountGate, CountInterval, CountReading, CountSnapshot, CountValue, CountedEvent,
};

/// A set that has counters here.
#[derive(Clone, Debug)]
struct Held {
    number: usize,
    claims: Vec<Claim>,
    /// The number of each request among the job's events of the set.
    events: Vec<usize>,
}

/// What one processor counts of a job.
#[derive(Clone, Debug)]
pub struct CountRun {
    contexts: Contexts,
    held: Vec<Held>,
    tasks: u16,
    /// TSC at the beginning.
    begin: u64,
    ticks: u64,
    series: Option<AllSeries>,
    clocks: Clocks,
    /// At the start.
    first: Option<Snapshot>,
    /// From there to the end.
    snapshot: Option<CountSnapshot>,
    /// For the counts of a snapshot: of the first claim.
    now: Option<(Claim, Counts)>,
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
    /// How counting started and stopped, if that was at addresses.
    pub gate: Option<CountGate>,
    /// What tasks read of themselves.
    pub readings: Vec<CountReading>,
    /// Readings that there was no room for.
    pub readings_dropped: u64,
}

impl CountRun {
    /// Programs what this processor is to count of `item`. Nothing counts yet.
    ///
    /// # Errors
    /// The PMU refuses a request.
    pub fn begin(
        item: &count::Count,
        shares: Vec<Share>,
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
        let mut series = AllSeries::new(item, &shares);
        for Share { number, set, scopes, events, alone, .. } in shares {
            let mut claims = Vec::new();
            for scope in scopes {
                let ask = Ask { scope, right: Right::Any, force: Force::Ask };
                let claim = contexts.bind(set.clone(), run, driver.clone(), ask, platform)?;
                // A binding counts at once; the kernel keeps what little that is.
                contexts.session(&claim)?.stop(platform).map_err(CountingError::from)?;
                contexts.leave_children_out(&claim, alone)?;
                now.get_or_insert_with(|| (claim, Counts::new(&set)));
                series.iter_mut().for_each(|series| series.follow(number, &set, claim, tasks));
                claims.push(claim);
            }
            held.push(Held { number, claims, events });
        }
        Ok(Self {
            contexts,
            held,
            tasks,
            begin: 0,
            ticks: 0,
            series,
            clocks: Clocks::read(platform),
            first: None,
            snapshot: None,
            now,
            gate: Gate::of(item),
            readings: Readings::new(),
        })
    }

    /// The tasks are in memory, each at one of `begins`. Returns what the debug registers are to have, and during which
    /// task, if counting starts and stops at addresses.
    ///
    /// # Errors
    /// The addresses cannot be watched.
    pub fn place(&mut self, begins: &[u64]) -> Result<Option<(u16, AddressGate)>, AddressError> {
        let Some(gate) = &mut self.gate else { return Ok(None) };
        let task = gate.task();
        let Some(&begin) = begins.get(usize::from(task)) else { return Ok(None) };
        Ok(Some((task, gate.place(begin)?)))
    }

    /// A debug exception. Returns whether it was one of the gate's.
    ///
    /// # Errors
    /// A register refuses.
    pub fn trapped(&mut self, dr6: u64, platform: &mut dyn Platform) -> Result<bool, ContextError> {
        let claim = self.system();
        let (Some(gate), Some(claim)) = (&mut self.gate, claim) else { return Ok(false) };
        let session = self.contexts.session(&claim)?;
        Ok(gate.trapped(dr6, session, platform).map_err(CountingError::from)?)
    }

    /// Claims on the system: at most one, as it excludes all others.
    fn system(&self) -> Option<Claim> {
        let mut claims = self.held.iter().flat_map(|held| &held.claims);
        claims.find(|claim| claim.scope() == Scope::System).copied()
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
        if let Some(claim) = self.system() {
            self.contexts.session(&claim)?.stop(platform).map_err(CountingError::from)?;
        }
        if let (Some(first), None) = (self.first, &self.snapshot) {
            let last = self.snapshot(platform)?;
            self.snapshot = last.map(|last| between(&first, &last));
        }
        Ok(())
    }

    /// The machine's figures of one moment, counts of the first claim among them.
    fn snapshot(&mut self, platform: &mut dyn Platform) -> Result<Option<Snapshot>, ContextError> {
        let switches = self.contexts.switches();
        let Some((claim, now)) = &mut self.now else { return Ok(None) };
        let session = self.contexts.session(claim)?;
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
        let what = [task.into(), event];
        self.readings.read(what, &self.held, self.begin, &mut self.contexts, platform)
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
        let claim = self.system();
        let (Some(gate), Some(claim)) = (&mut self.gate, claim) else {
            return Ok(self.contexts.tick(task, platform)?);
        };
        // Only requests that count take turns: those of a gate's task that is not over.
        let own = Some(gate.task());
        let session = self.contexts.session(&claim)?;
        gate.resume(own, session, platform).map_err(CountingError::from)?;
        self.contexts.tick(task, platform)?;
        let session = self.contexts.session(&claim)?;
        Ok(gate.suspend(own, session, platform).map_err(CountingError::from)?)
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
            gate: self.gate.as_ref().map(Gate::result),
            ..Part::default()
        };
        if let Some(series) = self.series.take() {
            (part.intervals, part.dropped) = series.rows();
        }
        let readings = core::mem::replace(&mut self.readings, Readings::new());
        (part.readings, part.readings_dropped) = readings.rows();
        for Held { number, claims, .. } in core::mem::take(&mut self.held) {
            for claim in claims {
                part.sets.push(self.part_of(number, &claim, platform)?);
                self.contexts.unbind(&claim, platform)?;
            }
        }
        Ok(part)
    }

    fn part_of(
        &mut self,
        number: usize,
        claim: &Claim,
        platform: &mut dyn Platform,
    ) -> Result<PartOfSet, ContextError> {
        let mut tasks = Vec::new();
        for task in 0..self.tasks {
            tasks.push(self.contexts.task(claim, task, platform)?.clone());
        }
        let kernel = self.contexts.kernel(claim, platform)?.clone();
        let session = self.contexts.session(claim)?;
        let mut now = Counts::new(session.set());
        session.sample(platform, &mut now)?;
        let mut events = Vec::new();
        for (index, request) in session.set().requests().iter().enumerate() {
            let place = session.set().groups().iter().enumerate().find_map(|(group, members)| {
                let (_, one) = members.iter().find(|(request, _)| *request == index)?;
                Some((group, one))
            });
            let Some((group, one)) = place else { continue };
            events.push(CountedEvent {
                event: one.event.clone(),
                name: one.counting.name.clone(),
                counter: one.counting.counter.clone(),
                group: group as u32,
                sum: value(&now.counts()[index]),
                cpus: Vec::new(),
                kernel: value(&kernel.counts()[index]),
                tasks: tasks.iter().map(|counts| value(&counts.counts()[index])).collect(),
                overflows: request.every.map(|_| session.overflows()[index]),
                remarks: one.counting.remarks.clone(),
            });
        }
        let groups = session.set().groups().len() as u32;
        Ok(PartOfSet { number, events, groups, passes: session.passes() })
    }
}

fn value(count: &Count) -> CountValue {
    let Count { raw, counted, enabled } = *count;
    CountValue { raw, scaled: count.scaled(), counted, enabled }
}
