//! Counters that all stop when one of them has counted so many events.
//!
//! That one, the clock, overflows then, and its interrupt stops the others: the processor freezes them by itself
//! ([`super::FreezeKind`]), or where it cannot, the handler of the interrupt stops them (`entry`). It is an NMI, as measured
//! code runs with interrupts off; and an instruction later than the overflow at the earliest.

mod entry;

pub use entry::{allow, install, interrupted, taken, uninstall};

use super::access::Registers;
use super::capabilities::{Counter, FreezeKind};
use super::driver::{Driver, Freeze, Gate, PmuError};
use super::registers::GlobalStatus;
use crate::msr::Msr;

/// What stops the counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stop {
    /// The processor, when the interrupt is requested.
    Freeze,
    /// The handler of the interrupt.
    Handler,
}

/// Instructions of one WRMSR with its operands: three MOVs and itself. So it is in emitted code and in the handler.
const WRITE: u64 = 4;
/// Instructions of the handler in front of its first write.
const SAVES: u64 = 3;

/// A clock, and what it stops.
#[derive(Clone, Copy, Debug)]
pub struct StopOnOverflow {
    clock: Counter,
    mask: u64,
    preset: u64,
    stop: Stop,
    gate: Gate,
}

impl StopOnOverflow {
    /// Makes `clock` stop everything that `driver` has programmed; `clock` itself with an interrupt.
    ///
    /// # Errors
    /// The clock is not programmed, the processor does not offer this way, or a register refuses.
    pub fn new(
        driver: &Driver,
        registers: &mut dyn Registers,
        clock: Counter,
        stop: Stop,
    ) -> Result<Self, PmuError> {
        if driver.programmed() & clock.bit() == 0 {
            return Err(PmuError::NoCounter(clock));
        }
        match stop {
            Stop::Freeze => driver.set_freeze(registers, Freeze::COUNTERS)?,
            Stop::Handler if driver.capabilities().freeze == FreezeKind::None => {}
            Stop::Handler => driver.set_freeze(registers, Freeze::empty())?,
        }
        // The clock starts after the others: where each has a switch of its own, an overflow must not come before all
        // are on, or the handler would stop counters that are switched on afterwards.
        let gate = match (driver.layout().global, clock) {
            (None, Counter::General(n)) => driver.gate().with_last(driver.layout().select(n)),
            _ => driver.gate(),
        };
        Ok(Self { clock, mask: driver.capabilities().mask(clock), preset: 0, stop, gate })
    }

    /// The ways that a processor has, the better one first.
    #[must_use]
    pub fn ways(driver: &Driver) -> &'static [Stop] {
        match driver.capabilities().freeze {
            FreezeKind::None => &[Stop::Handler],
            FreezeKind::Legacy | FreezeKind::Streamlined => &[Stop::Freeze, Stop::Handler],
        }
    }

    /// What stops them.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.stop
    }

    /// The writes that start the counters, and those that stop them when nothing else has.
    #[must_use]
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Everything stops when the clock has counted `events` more. Lets go what was frozen before; the gate must be closed.
    ///
    /// # Errors
    /// The clock cannot be set back so far.
    pub fn set(
        &mut self,
        driver: &Driver,
        registers: &mut dyn Registers,
        events: u64,
    ) -> Result<(), PmuError> {
        let status = match driver.layout().global {
            Some(_) => driver.status(registers)?,
            None => GlobalStatus::empty(),
        };
        driver.acknowledge(registers, status)?;
        self.preset = driver.preset(self.clock, events)?;
        driver.write(registers, self.clock, self.preset)
    }

    /// What the clock has counted since, from its value.
    #[must_use]
    pub fn counted(&self, value: u64) -> u64 {
        value.wrapping_sub(self.preset) & self.mask
    }

    /// Instructions from the beginning of the writes that close the gate to the one that stops `counter`, inclusive.
    #[must_use]
    pub fn closing(&self, driver: &Driver, counter: Counter) -> u64 {
        WRITE * (self.place(driver, counter) + 1)
    }

    /// Instructions of the handler that `counter` counts before it is stopped.
    #[must_use]
    pub fn handling(&self, driver: &Driver, counter: Counter) -> u64 {
        match self.stop {
            Stop::Freeze => 0,
            Stop::Handler => SAVES + self.closing(driver, counter),
        }
    }

    /// Which of the gate's writes is the counter's.
    fn place(&self, driver: &Driver, counter: Counter) -> u64 {
        let own = match (driver.layout().global, counter) {
            (None, Counter::General(n)) => driver.layout().select(n),
            _ => Msr(0),
        };
        self.gate.off().iter().position(|one| one.msr == own.0).unwrap_or(0) as u64
    }
}
