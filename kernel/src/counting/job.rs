//! The job kind `count`: from its requests to its record.
//!
//! [`Sets`] says who is counted where. Each processor has a [`CountRun`], which whoever runs the tasks there tells of every
//! switch, interrupts off; [`whole`] makes one record of all. What is counted for the system is all that runs, so that
//! the tasks and the kernel add up to the machine.

mod begin;
mod bindings;
mod console;
mod figures;
mod finish;
mod plan;
mod readings;
mod series;
pub mod sets;
mod whole;

pub use begin::sees_the_kernel;
pub use bindings::{BindingOfSet, Outcome};
pub use finish::Part;
pub use plan::{Planned, plan};
pub use sets::{Sets, Share, Shares};
pub use whole::{PartOfSet, timed, whole};

pub(crate) use figures::Beside;

use super::address::{AddressError, AddressGate};
use super::contexts::{ContextError, Contexts};
use super::gate::{Begin, Gate};
use super::owner::Claim;
use super::snapshot::{Clocks, Snapshot, SnapshotError, take};
use super::{Count, CountingError, Counts, Platform};
use crate::tasks::Read;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bindings::Bindings;
use figures::between;
use protocol::record::{BindMoment, CountSnapshot, CountValue};
use readings::Readings;
use series::AllSeries;

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
    gate: Option<Box<Gate>>,
    readings: Readings,
}

impl CountRun {
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
    #[inline(always)]
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
}

/// Of a count that began at `preset`.
fn value(count: &Count, preset: u64) -> CountValue {
    let Count { raw, counted, enabled } = *count;
    CountValue { raw, scaled: count.scaled_from(preset), counted, enabled }
}
