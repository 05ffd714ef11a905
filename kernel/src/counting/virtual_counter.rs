//! 64-bit counts over counters of 32 to 48 bits.
//!
//! The interrupt's handler does nothing for a count but to count the overflows. A reader puts them together with the
//! counter's value. What may come between its steps, and why no wrap is lost or doubled:
//!
//! - the handler runs between two steps: the number of overflows differs before and after, and the reader begins
//!   again;
//! - the counter wrapped, and its interrupt has not come yet (interrupts are off, or LVTPC is masked): the status
//!   register has the counter's bit. The bit counts as a wrap if the value that was read before is a small one;
//!   if it is a large one, the counter wrapped after it was read;
//! - a wrap that was counted by its status bit, and whose interrupt comes later: the overflows that a count starts
//!   from include it, so that it is not counted again.
//!
//! A reader changes nothing that the handler changes, so neither has to keep the other out.

use super::Platform;
use arch::pmu::{Counter, Driver, PmuError};

/// How the counter runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// From 0 through all its bits, and on: nothing is ever written to it, so nothing can be lost.
    Free,
    /// Starts anew at each overflow, which comes every so many events. Exact where the processor freezes the counters (see
    /// [`arch::pmu::Freeze`]), and for counters of ring 3 where the handler stops them: what was counted since the overflow goes
    /// into the next periods. Else it is lost.
    Every(u64),
}

/// Where a counter was when it was looked at.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Position {
    /// Wraps before, those that no interrupt has told of yet included.
    wraps: u64,
    /// Events since the last one.
    events: u64,
}

/// One event's count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VirtualCounter {
    counter: Counter,
    mode: Mode,
    /// What a wrap is worth; 0 stands for 2^64.
    wrap: u64,
    /// The value after a wrap, before the handler reloads.
    preset: u64,
    start: Position,
    /// The counter's value at the last fold.
    value: u64,
    total: u64,
}

impl VirtualCounter {
    /// Sets the counter, which stands still, so that it counts on from `total`, with `into` events of the period
    /// after it. The handler's count of its overflows is taken as it is now.
    ///
    /// # Errors
    /// The counter does not exist or cannot be set so, or a register refuses.
    pub fn arm(
        driver: &Driver,
        platform: &mut dyn Platform,
        counter: Counter,
        mode: Mode,
        total: u64,
        into: u64,
    ) -> Result<Self, PmuError> {
        let (preset, wrap) = match mode {
            Mode::Free => (0, driver.capabilities().mask(counter).wrapping_add(1)),
            Mode::Every(period) => (driver.preset(counter, period)?, period),
        };
        driver.write(platform, counter, preset + into)?;
        let start = Position { wraps: platform.overflows(counter), events: into };
        Ok(Self { counter, mode, wrap, preset, start, value: preset + into, total })
    }

    /// The same without a look at the processor: the counter stands at 0, and its overflows are `wraps` now. For one that
    /// runs freely.
    #[inline]
    pub(super) fn begin(&mut self, total: u64, wraps: u64) {
        (self.start, self.total) = (Position { wraps, events: 0 }, total);
        self.value = 0;
    }

    /// So many events more than at the last fold, and the counter stands at 0 again. Returns the count.
    pub(super) const fn add(&mut self, events: u64) -> u64 {
        self.total = self.total.wrapping_add(events);
        (self.start.events, self.value) = (0, 0);
        self.total
    }

    /// So much of it was not what was to be counted.
    pub(super) const fn take_out(&mut self, events: u64) {
        self.total = self.total.wrapping_sub(events);
    }

    /// The counter.
    #[must_use]
    pub const fn counter(&self) -> Counter {
        self.counter
    }

    /// How it runs.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// What the handler sets it to at an overflow; `None`: nothing.
    #[must_use]
    pub const fn reload(&self) -> Option<u64> {
        match self.mode {
            Mode::Free => None,
            Mode::Every(_) => Some(self.preset),
        }
    }

    /// Wraps since the counter was armed and events since the last one, as of the last fold.
    #[must_use]
    pub const fn folded(&self) -> (u64, u64) {
        (self.start.wraps, self.start.events)
    }

    /// The counter's value at the last fold, and what the count is more than a later value as long as it does not wrap.
    pub(super) const fn at_last_fold(&self) -> (u64, u64) {
        (self.value, self.total.wrapping_sub(self.value))
    }

    /// The count now. It may run meanwhile.
    ///
    /// # Errors
    /// A register cannot be read.
    pub fn read(&self, driver: &Driver, platform: &mut dyn Platform) -> Result<u64, PmuError> {
        Ok(self.count(self.position(driver, platform)?.0))
    }

    /// The same, and what was counted so far does not depend on the handler's count any more up to here.
    ///
    /// # Errors
    /// A register cannot be read.
    pub fn fold(&mut self, driver: &Driver, platform: &mut dyn Platform) -> Result<u64, PmuError> {
        let (now, value) = self.position(driver, platform)?;
        self.total = self.count(now);
        (self.start, self.value) = (now, value);
        Ok(self.total)
    }

    fn count(&self, now: Position) -> u64 {
        let wraps = now.wraps.wrapping_sub(self.start.wraps);
        let events = now.events.wrapping_sub(self.start.events);
        self.total.wrapping_add(wraps.wrapping_mul(self.wrap)).wrapping_add(events)
    }

    /// Where the counter is, and its value.
    fn position(
        &self,
        driver: &Driver,
        platform: &mut dyn Platform,
    ) -> Result<(Position, u64), PmuError> {
        if self.mode == Mode::Free && driver.layout().global.is_none() {
            // Nothing but the value itself tells of a wrap: there may be one between two folds. These counters have
            // 48 bits, on Intel's version 1 40.
            let events = driver.read(platform, self.counter)?;
            let wraps = self.start.wraps.wrapping_add(u64::from(events < self.start.events));
            return Ok((Position { wraps, events }, events));
        }
        loop {
            let before = platform.overflows(self.counter);
            let value = driver.read(platform, self.counter)?;
            let wrapped = self.wrapped(driver, platform, value)?;
            let owed = match self.mode {
                Mode::Free => 0,
                Mode::Every(_) => platform.owed(self.counter),
            };
            if platform.overflows(self.counter) != before {
                continue;
            }
            let events =
                value.wrapping_sub(if wrapped { 0 } else { self.preset }).wrapping_add(owed);
            let wraps = before.wrapping_add(u64::from(wrapped));
            // A counter may have gone further than a whole period before it stands.
            let position = match self.mode {
                Mode::Free => Position { wraps, events },
                Mode::Every(period) => {
                    Position { wraps: wraps.wrapping_add(events / period), events: events % period }
                }
            };
            return Ok((position, value));
        }
    }

    /// Whether `value` lies behind a wrap that the handler has not counted.
    fn wrapped(
        &self,
        driver: &Driver,
        platform: &mut dyn Platform,
        value: u64,
    ) -> Result<bool, PmuError> {
        match self.mode {
            Mode::Every(_) => Ok(value < self.preset),
            Mode::Free if value > driver.capabilities().mask(self.counter) / 2 => Ok(false),
            Mode::Free => Ok(driver.status(platform)?.bits() & self.counter.bit() != 0),
        }
    }
}
