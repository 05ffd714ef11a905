//! Giving a group its counters, and taking them away.

use super::Session;
use super::group::{Active, FROZEN, Noted};
use crate::counting::error::SetError;
use crate::counting::{Mode, Platform, VirtualCounter};
use alloc::vec::Vec;
use arch::pmu::driver::Write;
use arch::pmu::pmi::ControlBlock;
use arch::pmu::registers::GlobalStatus;
use arch::pmu::{Freeze, FreezeKind, PmuError, Registers, Selection};

impl Session {
    /// Programs a group. Nothing runs. Allocates nothing.
    pub(super) fn load(
        &mut self,
        group: usize,
        platform: &mut dyn Platform,
    ) -> Result<(), SetError> {
        self.load_noting(group, platform, None)
    }

    /// The same, with what is written for its events noted.
    pub(super) fn load_noting(
        &mut self,
        group: usize,
        platform: &mut dyn Platform,
        mut writes: Option<&mut Vec<Write>>,
    ) -> Result<(), SetError> {
        self.unload(platform)?;
        self.readings.turn(self.group, group);
        self.group = group;
        self.active[group].clear();
        self.timed.copy_from_slice(&self.started);
        let Self { set, driver, .. } = self;
        let members = set.groups()[group].iter().filter(|(request, _)| self.started[*request]);
        let has_global = driver.layout().global.is_some();
        let mut reloads = [None; 64];
        for (request, counted) in members.clone() {
            let every = set.requests()[*request].every;
            let refused = |error| SetError::Counter {
                index: *request,
                text: set.requests()[*request].text.clone(),
                error,
            };
            // Without a status register the handler finds no overflow but those of periods.
            let interrupt = every.is_some() || has_global;
            for (counter, selection) in counted.programs() {
                // One that is only to tell of a wrap can do without; a period cannot, and is refused below.
                let can = every.is_some() || driver.capabilities().overflows(counter);
                let interrupt = interrupt && counter == counted.counter && can;
                let selection = Selection { interrupt, ..selection };
                let mut noted;
                let registers: &mut dyn Registers = match &mut writes {
                    None => platform,
                    Some(writes) => {
                        noted = Noted { inner: platform, writes };
                        &mut noted
                    }
                };
                driver.program(registers, counter, &selection).map_err(refused)?;
            }
            if let Some(period) = every {
                reloads[counted.counter.index()] =
                    Some(driver.preset(counted.counter, period).map_err(refused)?);
            }
        }
        if members.clone().any(|(_, counted)| counted.metric.is_some()) {
            driver.enable_metrics()?;
        }
        let mut block = ControlBlock::of(driver);
        for (_, counted) in members.clone() {
            if let Some(preset) = reloads[counted.counter.index()] {
                block.reload(driver, counted.counter, preset)?;
            }
        }
        let overflows = set.requests().iter().any(|request| request.every.is_some());
        if driver.capabilities().freeze != FreezeKind::None {
            let freeze = if overflows { Freeze::COUNTERS } else { Freeze::empty() };
            match driver.set_freeze(platform, freeze) {
                Ok(()) if overflows => block.carry_over_frozen(driver),
                // It held at the start: somebody else has the register now.
                Err(PmuError::Freeze { .. }) if has_global => {
                    driver.no_freeze(platform)?;
                    block.stop_in_handler(driver)?;
                }
                other => other?,
            }
        } else if overflows && has_global {
            block.stop_in_handler(driver)?;
        }
        platform.deliver(block);
        for (request, counted) in members {
            let mode = set.requests()[*request].every.map_or(Mode::Free, Mode::Every);
            let into = if mode == Mode::Free { 0 } else { self.into[*request] };
            let (total, counter) = (self.totals[*request].raw, counted.counter);
            let count = VirtualCounter::arm(driver, platform, counter, mode, total, into)?;
            let one =
                Active { request: *request, count, metric: counted.metric, told: count.folded().0 };
            let active = &mut self.active[group];
            let place = active.iter().position(|other| other.request > one.request);
            active.insert(place.unwrap_or(active.len()), one);
        }
        if driver.has_metrics() {
            driver.clear_metrics(platform)?;
        }
        self.loaded = true;
        Ok(())
    }

    /// Frees the counters. Their counts have been folded.
    pub(super) fn unload(&mut self, platform: &mut dyn Platform) -> Result<(), PmuError> {
        self.catch_up();
        self.readings.now.discard();
        self.loaded = false;
        let driver = &mut self.driver;
        let programmed = driver.programmed();
        let counters = driver.capabilities().counters();
        for counter in counters.filter(|counter| programmed & counter.bit() != 0) {
            driver.release(platform, counter)?;
        }
        // What is pending has been folded.
        let status = driver.status(platform)?;
        driver.acknowledge(platform, status)
    }

    /// Lets the counters run, from a stop or from a freeze. The write that does is the last thing here, so that as
    /// little as possible of what called it is counted.
    pub(super) fn resume(&mut self, platform: &mut dyn Platform) -> Result<(), PmuError> {
        self.catch_up();
        if self.driver.capabilities().freeze != FreezeKind::Streamlined {
            return self.driver.start(platform);
        }
        let frozen = GlobalStatus::from_bits_retain(FROZEN);
        let frozen = self.driver.status(platform)? & frozen;
        self.driver.start(platform)?;
        match frozen.is_empty() {
            true => Ok(()),
            false => self.driver.acknowledge(platform, frozen),
        }
    }
}
