//! A set bound to the counters of this processor.
//!
//! Whatever calls a session keeps its interrupt away meanwhile: interrupts off, or LVTPC masked. The interrupt's
//! handler first runs `arch::pmu::pmi::service`, then [`Session::interrupt`].

mod load;
mod notification;
mod status;
mod turns;

pub use notification::{Notification, Occasion};
pub use status::{Programmed, Status};

use super::counts::{Count, Counts};
use super::error::SetError;
use super::reading::Reading;
use super::request::{Request, Run};
use super::set::Set;
use super::{AtOverflow, Platform, VirtualCounter};
use crate::events::Known;
use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::Driver;
use notification::Notifications;

/// A request that has a counter.
#[derive(Clone, Debug)]
struct Active {
    request: usize,
    count: VirtualCounter,
    /// Overflows that were acted on.
    told: u64,
}

/// The binding.
#[derive(Clone, Debug)]
pub struct Session {
    set: Set,
    run: Run,
    driver: Driver,
    /// As of the last fold; those of requests with a counter go on in `active`.
    totals: Vec<Count>,
    /// Events of each request since its last overflow.
    into: Vec<u64>,
    /// Whether a request counts, or waits for another's overflow.
    started: Vec<bool>,
    /// The same as of the last load: from then on a request could have a counter.
    timed: Vec<bool>,
    active: Vec<Active>,
    /// How all counts are read at once.
    reading: Reading,
    group: usize,
    passes: u64,
    /// Overflows of each request that were acted on.
    overflows: Vec<u64>,
    running: bool,
    ended: bool,
    /// TSC up to which time is accounted for.
    since: u64,
    generation: u64,
    /// Counts at the last interrupt, if there was one.
    at_interrupt: Counts,
    interrupted: bool,
    notifications: Notifications,
}

impl Session {
    /// Binds a set to the counters that `driver` drives, all of which it takes. Nothing counts yet.
    ///
    /// # Errors
    /// The PMU refuses a request, or the run's options need an overflow that no request has.
    pub fn bind(
        set: Set,
        run: Run,
        driver: Driver,
        platform: &mut dyn Platform,
    ) -> Result<Self, SetError> {
        let overflows = set.requests().iter().any(|request| request.every.is_some());
        if run.at_overflow != AtOverflow::Same && !overflows {
            return Err(SetError::NoOverflow(run.at_overflow));
        }
        let requests = set.requests().len();
        let at_interrupt = Counts::new(&set);
        let mut session = Self {
            set,
            run,
            driver,
            totals: vec![Count::default(); requests],
            into: vec![0; requests],
            started: vec![true; requests],
            timed: vec![true; requests],
            active: Vec::with_capacity(requests),
            reading: Reading::with_capacity(requests),
            group: 0,
            passes: 0,
            overflows: vec![0; requests],
            running: false,
            ended: false,
            since: 0,
            generation: 0,
            at_interrupt,
            interrupted: false,
            notifications: Notifications::new(),
        };
        session.driver.reset(platform)?;
        // Each group once, so that what is refused is refused here and not in an interrupt.
        for group in (0..session.set.groups().len()).rev() {
            session.begin();
            session.load(group, platform)?;
            // So that what is read without a guard has been read once with one.
            session.fold(platform)?;
        }
        Ok(session)
    }

    /// Everything at its preset, and triggers not yet released.
    fn begin(&mut self) {
        for (total, request) in self.totals.iter_mut().zip(self.set.requests()) {
            *total = Count { raw: request.preset, ..Count::default() };
        }
        self.into.fill(0);
        self.overflows.fill(0);
        self.started.fill(true);
        for request in self.set.requests() {
            for &other in &request.starts {
                self.started[other] = false;
            }
        }
        (self.passes, self.ended, self.interrupted) = (0, false, false);
    }

    /// The set.
    #[must_use]
    pub const fn set(&self) -> &Set {
        &self.set
    }

    /// The driver, with what is programmed now.
    #[must_use]
    pub const fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Whether it counts.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// Whether its last pass is over, or it was terminated.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Passes through all groups that are over.
    #[must_use]
    pub const fn passes(&self) -> u64 {
        self.passes
    }

    /// Overflows of each request since the last start from the presets.
    #[must_use]
    pub fn overflows(&self) -> &[u64] {
        &self.overflows
    }

    /// How often it was changed while bound.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Counts from here on.
    ///
    /// # Errors
    /// The set has ended, or a register refuses.
    pub fn start(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        if self.ended {
            return Err(SetError::Ended);
        }
        if self.running {
            return Ok(());
        }
        // What an overflow has released while the others stood still.
        let group = self.set.groups()[self.group].iter();
        if group.filter(|(request, _)| self.started[*request]).count() != self.active.len() {
            self.load(self.group, platform)?;
        }
        self.since = platform.tsc();
        self.running = true;
        Ok(self.resume(platform)?)
    }

    /// Counts no more until the next start.
    ///
    /// # Errors
    /// A register refuses.
    pub fn stop(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        if self.running {
            self.driver.stop(platform)?;
            self.account(platform.tsc());
            self.running = false;
            self.fold(platform)?;
            self.note_overflows(platform);
        }
        Ok(())
    }

    /// Every count to its preset, and start.
    ///
    /// # Errors
    /// A register refuses.
    pub fn restart(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        self.stop(platform)?;
        self.begin();
        self.load(0, platform)?;
        self.start(platform)
    }

    /// Stops, and leaves the counters to others until the next start.
    ///
    /// # Errors
    /// A register refuses.
    pub fn suspend(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        self.stop(platform)?;
        self.unload(platform)?;
        platform.withdraw();
        Ok(())
    }

    /// Stops for good.
    ///
    /// # Errors
    /// A register refuses.
    pub fn terminate(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        self.suspend(platform)?;
        self.end(platform.tsc());
        Ok(())
    }

    /// Counts of all requests now, into `counts`. Allocates nothing.
    ///
    /// # Errors
    /// The buffer is another set's (as [`super::Mismatch`]), or a register cannot be read.
    pub fn sample(
        &mut self,
        platform: &mut dyn Platform,
        counts: &mut Counts,
    ) -> Result<(), super::CountingError> {
        counts.fits(&self.set)?;
        let now = platform.tsc();
        let ticks = if self.running { now.wrapping_sub(self.since) } else { 0 };
        if platform.read(&mut self.reading, ticks, counts.counts_mut()) {
            (counts.generation, counts.tsc) = (self.generation, now);
            return Ok(());
        }
        let interrupts = platform.interrupts();
        self.account(now);
        self.fold(platform)?;
        self.plan_reading(interrupts);
        self.copy_to(counts, now);
        Ok(())
    }

    /// The counts as they were put together now, for the reads that come. `interrupts`: those before.
    fn plan_reading(&mut self, interrupts: u64) {
        let Self { reading, driver, active, totals, timed, .. } = self;
        let active = active.iter().map(|active| (active.request, &active.count));
        reading.plan(driver, active, totals, timed, interrupts);
    }

    fn copy_to(&self, counts: &mut Counts, now: u64) {
        counts.counts_mut().copy_from_slice(&self.totals);
        (counts.generation, counts.tsc) = (self.generation, now);
    }

    /// Puts another request in the place of number `index`; its count starts anew, the others go on. The generation
    /// is raised.
    ///
    /// # Errors
    /// The request cannot be counted beside the others; the set goes on as it was.
    pub fn modify(
        &mut self,
        index: usize,
        request: Request,
        known: &Known,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        let mut set = self.set.clone();
        set.replace(index, request, known)?;
        let was_running = self.running;
        self.stop(platform)?;
        let before = (core::mem::replace(&mut self.set, set), self.group);
        let group = self.group.min(self.set.groups().len() - 1);
        let tried = self.load(group, platform).and_then(|()| Ok(self.fold(platform)?));
        if let Err(error) = tried {
            self.set = before.0;
            self.load(before.1, platform)?;
            if was_running {
                self.start(platform)?;
            }
            return Err(error);
        }
        let preset = self.set.requests()[index].preset;
        self.totals[index] = Count { raw: preset, ..Count::default() };
        self.into[index] = 0;
        // Once more, with the count that it starts from.
        self.load(group, platform)?;
        self.generation += 1;
        if was_running { self.start(platform) } else { Ok(()) }
    }

    /// Time up to now.
    fn account(&mut self, now: u64) {
        let ticks = now.wrapping_sub(self.since);
        self.since = now;
        self.reading.discard();
        if self.running {
            // What waits for another's overflow is not to be scaled to the time before.
            for (total, timed) in self.totals.iter_mut().zip(&self.timed) {
                total.enabled += if *timed { ticks } else { 0 };
            }
            for active in &self.active {
                self.totals[active.request].counted += ticks;
            }
        }
    }

    /// Counts up to now.
    fn fold(&mut self, platform: &mut dyn Platform) -> Result<(), arch::pmu::PmuError> {
        self.reading.discard();
        for active in &mut self.active {
            let raw = active.count.fold(&self.driver, platform)?;
            self.totals[active.request].raw = raw;
            self.into[active.request] = active.count.folded().1;
        }
        Ok(())
    }
}
