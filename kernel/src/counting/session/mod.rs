//! A set bound to the counters of this processor.
//!
//! Whatever calls a session keeps its interrupt away meanwhile: interrupts off, or LVTPC masked. The interrupt's
//! handler first runs `arch::pmu::pmi::service`, then [`Session::interrupt`].

mod group;
mod load;
mod notification;
mod planned;
mod slots;
mod status;
mod turns;

pub use notification::{Notification, Occasion};
pub use status::{Programmed, Status};

use super::counts::{Count, Counts};
use super::error::SetError;
use super::request::{Request, Run};
use super::set::Set;
use super::{AtOverflow, Platform};
use crate::events::Known;
use alloc::vec;
use alloc::vec::Vec;
use arch::pmu::driver::{SLOTS, Write};
use arch::pmu::{Driver, PmuError};
use group::{Active, Readings, Turn};
use notification::Notifications;

/// The binding.
#[derive(Clone, Debug)]
pub struct Session {
    set: Set,
    run: Run,
    /// What is programmed, unless that was done `by_plan`.
    driver: Driver,
    /// The group was programmed by its plan: that has the driver as it is.
    by_plan: bool,
    /// As of the last fold; those of requests with a counter go on in the group's plan.
    totals: Vec<Count>,
    /// Events of each request since its last overflow.
    into: Vec<u64>,
    /// Whether a request counts, or waits for another's overflow.
    started: Vec<bool>,
    /// The same as of the last load: from then on a request could have a counter.
    timed: Vec<bool>,
    /// The requests of each group that count, in their order, and how far they are in the one that has the counters.
    active: Vec<Vec<Active>>,
    /// How each group gets the counters, if all of them can by a plan.
    turns: Vec<Turn>,
    /// A register that did not take what a plan said.
    refused: Option<Write>,
    /// PERF_METRICS overflowed, so that its shares are of no known slots.
    metrics_overflowed: bool,
    /// The group whose turn it is, and how its counts are read.
    group: usize,
    readings: Readings,
    /// Whether it has its counters.
    loaded: bool,
    passes: u64,
    /// Overflows of each request that were acted on.
    overflows: Vec<u64>,
    running: bool,
    /// An overflow has stopped it, and nobody has started it since.
    stopped_by_overflow: bool,
    /// An overflow that a stop has found gives the next group its turn, at the next start.
    turn_due: bool,
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
        let (active, readings) = (group::active(&set), Readings::new(&set, 0));
        let mut session = Self {
            set,
            run,
            driver,
            by_plan: false,
            totals: vec![Count::default(); requests],
            into: vec![0; requests],
            started: vec![true; requests],
            timed: vec![true; requests],
            active,
            turns: Vec::new(),
            refused: None,
            metrics_overflowed: false,
            group: 0,
            readings,
            loaded: false,
            passes: 0,
            overflows: vec![0; requests],
            running: false,
            stopped_by_overflow: false,
            turn_due: false,
            ended: false,
            since: 0,
            generation: 0,
            at_interrupt,
            interrupted: false,
            notifications: Notifications::new(),
        };
        session.driver.reset(platform)?;
        session.begin();
        session.try_groups(0, platform)?;
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
        (self.turn_due, self.metrics_overflowed) = (false, false);
    }

    /// The set.
    #[must_use]
    pub const fn set(&self) -> &Set {
        &self.set
    }

    /// Whether it counts.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// Whether an overflow has stopped it, as [`AtOverflow::Stop`] says, and nobody has started it since.
    #[must_use]
    pub const fn was_stopped_by_overflow(&self) -> bool {
        self.stopped_by_overflow
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
        if self.turn_due {
            self.next_anew(platform)?;
            if self.ended {
                return Ok(());
            }
        }
        // What an overflow has released while the others stood still.
        let mut group = self.set.groups()[self.group].iter();
        let active = &self.active[self.group];
        let is_active = |request| active.iter().any(|active| active.request == request);
        if !self.loaded || group.any(|(request, _)| self.started[*request] && !is_active(*request))
        {
            self.load(self.group, platform)?;
        }
        self.since = platform.tsc();
        self.running = true;
        self.stopped_by_overflow = false;
        self.plan_reading(platform.interrupts());
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
            // Its interrupt finds nothing more to do.
            if self.note_overflows(platform).0 {
                self.stopped_by_overflow = self.run.at_overflow == AtOverflow::Stop;
                self.turn_due = self.run.at_overflow == AtOverflow::Next;
            }
        }
        Ok(())
    }

    /// The group whose turn it is.
    #[must_use]
    pub const fn group(&self) -> usize {
        self.group
    }

    /// So much of each request that has a counter, so many times, was not what was to be counted. Wraps where it is more than
    /// there was.
    ///
    /// # Errors
    /// A register refuses.
    pub fn take_out(&mut self, each: &[Option<u64>], times: u64) -> Result<(), SetError> {
        self.catch_up();
        self.readings.now.discard();
        let active = self.active.get_mut(self.group).filter(|_| self.loaded);
        for Active { request, count, .. } in active.into_iter().flatten() {
            let out = each.get(*request).copied().flatten().unwrap_or(0).wrapping_mul(times);
            count.take_out(out);
            if let Some(total) = self.totals.get_mut(*request) {
                total.raw = total.raw.wrapping_sub(out);
            }
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
    #[inline]
    pub fn sample(
        &mut self,
        platform: &mut dyn Platform,
        counts: &mut Counts,
    ) -> Result<(), super::CountingError> {
        match platform.read(counts, self) {
            true => Ok(()),
            false => self.sample_anew(platform, counts),
        }
    }

    /// The same where something has overflowed, or nothing was planned.
    fn sample_anew(
        &mut self,
        platform: &mut dyn Platform,
        counts: &mut Counts,
    ) -> Result<(), super::CountingError> {
        counts.fits(&self.set)?;
        let (now, interrupts) = (platform.tsc(), platform.interrupts());
        self.account(now);
        self.fold(platform)?;
        self.plan_reading(interrupts);
        counts.counts_mut().copy_from_slice(&self.totals);
        (counts.generation, counts.tsc) = (self.generation, now);
        Ok(())
    }

    /// The counts as they were put together last, for the reads that come while the session runs. `interrupts`: those before.
    fn plan_reading(&mut self, interrupts: u64) {
        let active = &self.active[self.group];
        let counted = active.iter().map(|active| (active.request, &active.count));
        let of = (&self.driver, self.set.id());
        self.readings.now.plan(of, counted, &self.totals, [interrupts, self.since]);
        if self.driver.has_metrics() {
            // Read at rest, and started from 0 each time.
            self.readings.now.plan_nothing();
        } else if !self.running {
            self.readings.now.discard();
        }
    }

    /// The requests that have a counter now.
    fn active(&self) -> &[Active] {
        let active = self.active.get(self.group).filter(|_| self.loaded);
        active.map_or(&[], |active| active)
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
        self.unload(platform)?;
        let group = self.group.min(set.groups().len() - 1);
        let (active, readings) = (group::active(&set), Readings::new(&set, group));
        let before = (
            core::mem::replace(&mut self.set, set),
            core::mem::replace(&mut self.active, active),
            core::mem::take(&mut self.turns),
            core::mem::replace(&mut self.readings, readings),
            core::mem::replace(&mut self.group, group),
        );
        // Its period begins anew, too: it may be shorter than what came since the last overflow.
        let counted = core::mem::take(&mut self.totals[index]);
        let into = core::mem::take(&mut self.into[index]);
        if let Err(error) = self.try_groups(group, platform) {
            self.unload(platform)?;
            (self.set, self.active, self.turns, self.readings, self.group) = before;
            (self.totals[index], self.into[index]) = (counted, into);
            self.load(self.group, platform)?;
            if was_running {
                self.start(platform)?;
            }
            return Err(error);
        }
        let preset = self.set.requests()[index].preset;
        self.totals[index] = Count { raw: preset, ..Count::default() };
        (self.into[index], self.overflows[index]) = (0, 0);
        // Once more, with the count that it starts from.
        self.load(group, platform)?;
        self.generation += 1;
        if was_running { self.start(platform) } else { Ok(()) }
    }

    /// Time up to now.
    fn account(&mut self, now: u64) {
        let ticks = now.wrapping_sub(self.since);
        self.since = now;
        self.readings.now.discard();
        if self.running {
            // What waits for another's overflow is not to be scaled to the time before.
            for (total, timed) in self.totals.iter_mut().zip(&self.timed) {
                total.enabled += if *timed { ticks } else { 0 };
            }
            let active = self.active[self.group].iter();
            for active in active.filter(|_| self.loaded) {
                self.totals[active.request].counted += ticks;
            }
        }
    }

    /// Counts up to now.
    fn fold(&mut self, platform: &mut dyn Platform) -> Result<(), PmuError> {
        self.catch_up();
        self.readings.now.discard();
        let slots = self.take_slots(platform)?;
        let active = self.active[self.group].iter_mut();
        for active in active.filter(|_| self.loaded) {
            let raw = match slots {
                Some(slots) if active.count.counter() == SLOTS => {
                    active.count.add(slots.of(active.metric))
                }
                _ => active.count.fold(&self.driver, platform)?,
            };
            self.totals[active.request].raw = raw;
            self.into[active.request] = active.count.folded().1;
        }
        match slots.is_some() && self.running {
            true => self.driver.start(platform),
            false => Ok(()),
        }
    }
}
