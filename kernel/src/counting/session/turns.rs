//! Whose turn it is: by time, by overflow, by call.

use super::{Occasion, Session};
use crate::counting::error::SetError;
use crate::counting::{AtOverflow, Notify, Platform};
use arch::msr::Msr;
use arch::pmu::PmuError;

impl Session {
    /// A time slice is over: the next group counts, if the session runs and has several.
    ///
    /// # Errors
    /// A register refuses.
    pub fn slice(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        match self.running && self.set.groups().len() > 1 {
            true => self.next(platform),
            false => Ok(()),
        }
    }

    /// The next group has the counters. After the last one a pass is over; after the last pass the set has ended.
    ///
    /// # Errors
    /// The set has ended, or a register refuses.
    #[inline]
    pub fn next(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        match platform.next(self) {
            true => Ok(()),
            false => self.next_anew(platform),
        }
    }

    /// The same where something has overflowed, or nothing was planned.
    pub(super) fn next_anew(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        if let Some(write) = self.refused.take() {
            return Err(PmuError::Write { msr: Msr(write.msr), value: write.value }.into());
        }
        if self.ended {
            return Err(SetError::Ended);
        }
        let was_running = self.running;
        self.stop(platform)?;
        self.turn_due = false;
        let next = (self.group + 1) % self.set.groups().len();
        if next == 0 {
            self.pass(platform.tsc());
            if self.passes == self.run.passes {
                self.unload(platform)?;
                self.end(platform.tsc());
                return Ok(());
            }
        }
        self.load(next, platform)?;
        if was_running && !self.stopped_by_overflow { self.start(platform) } else { Ok(()) }
    }

    /// Each group has had its turn.
    pub(super) fn pass(&mut self, now: u64) {
        self.passes += 1;
        if self.run.notify.contains(Notify::PASS) {
            self.notifications.push(Occasion::Pass(self.passes), now);
        }
    }

    /// What follows from a performance monitoring interrupt, after the handler has counted and reloaded. Counters
    /// that are frozen run again at its end, or do not, as the run's options say.
    ///
    /// # Errors
    /// A register refuses.
    pub fn interrupt(&mut self, platform: &mut dyn Platform) -> Result<(), SetError> {
        if !self.running {
            return Ok(());
        }
        let now = platform.tsc();
        self.account(now);
        self.fold(platform)?;
        self.at_interrupt.counts_mut().copy_from_slice(&self.totals);
        (self.at_interrupt.generation, self.at_interrupt.tsc) = (self.generation, now);
        self.interrupted = true;
        let (overflowed, released) = self.note_overflows(platform);
        match self.run.at_overflow {
            AtOverflow::Next if overflowed => self.next(platform),
            AtOverflow::Stop if overflowed => {
                self.stop(platform)?;
                self.stopped_by_overflow = true;
                Ok(())
            }
            _ if released => {
                self.stop(platform)?;
                self.load(self.group, platform)?;
                self.start(platform)
            }
            _ => Ok(self.resume(platform)?),
        }
    }

    /// Tells of overflows that were not acted on yet, and starts what waited for them. Returns whether there were
    /// any, and whether something waited.
    pub(super) fn note_overflows(&mut self, platform: &mut dyn Platform) -> (bool, bool) {
        let (mut overflowed, mut released) = (false, false);
        let active = self.active[self.group].iter_mut();
        for active in active.filter(|_| self.loaded) {
            let request = &self.set.requests()[active.request];
            let wraps = active.count.folded().0;
            if request.every.is_none() || active.told >= wraps {
                continue;
            }
            overflowed = true;
            if self.run.notify.contains(Notify::OVERFLOW) {
                let tsc = platform.tsc();
                for number in active.told + 1..=wraps {
                    let occasion = Occasion::Overflow { request: active.request, number };
                    self.notifications.push(occasion, tsc);
                }
            }
            self.overflows[active.request] += wraps - active.told;
            active.told = wraps;
            for &other in &request.starts {
                released |= !core::mem::replace(&mut self.started[other], true);
            }
        }
        (overflowed, released)
    }

    pub(super) fn end(&mut self, tsc: u64) {
        if !core::mem::replace(&mut self.ended, true) && self.run.notify.contains(Notify::END) {
            self.notifications.push(Occasion::End, tsc);
        }
    }
}
