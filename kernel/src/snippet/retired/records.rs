//! The records of a pass, on a PMU.

use crate::snippet::events::Counted;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::pebs::{DataConfig, Drain, Store};
use arch::pmu::pmi::Retired;
use arch::pmu::{Counter, Driver, Registers};

/// Records of an event that the buffer has room for: of a run.
const RECORDS: usize = 512;

/// Counters that write records, and what the last run's state.
#[derive(Debug)]
pub struct Records {
    /// Where they go. The processor writes to it until the driver is reset.
    _store: Store,
    drain: Drain,
    /// By event: its counter, and where that starts from.
    counters: Vec<(Counter, u64)>,
    last: Vec<Retired>,
    full: bool,
}

// SAFETY: what the drain points to is the store's, which belongs to this as well.
unsafe impl Send for Records {}

impl Records {
    /// Programs the counters of a pass, on a driver that was reset. It has to be reset again before this goes.
    ///
    /// # Errors
    /// Which event cannot be programmed, and why.
    pub fn arm(
        registers: &mut dyn Registers,
        driver: &mut Driver,
        pass: &[Counted],
        periods: &[u64],
    ) -> Result<Self, (usize, String)> {
        let none = || (0, super::ELSEWHERE.to_string());
        let format = driver.capabilities().pebs_format().ok_or_else(none)?;
        // Its interrupt is masked: a run's records are taken out after it.
        let room = RECORDS * pass.len();
        let mut store = Store::with_groups(format, DataConfig::BASIC, room, room);
        let mut counters = Vec::with_capacity(pass.len());
        for (index, (one, period)) in pass.iter().zip(periods).enumerate() {
            // The overflow arms the counter, and the record is of the event after it.
            let preset = driver.preset(one.counter, period.saturating_sub(1));
            let preset = preset.map_err(|error| (index, error.to_string()))?;
            store.set_reset(one.counter, preset);
            counters.push((one.counter, preset));
        }
        driver.use_store(registers, &store).map_err(|error| (0, error.to_string()))?;
        for (index, (one, (_, preset))) in pass.iter().zip(&counters).enumerate() {
            let done = driver.program(registers, one.counter, &one.selection);
            let done = done.and_then(|()| driver.write(registers, one.counter, *preset));
            done.map_err(|error| (index, error.to_string()))?;
        }
        let drain = Drain::new(&mut store, driver.recording());
        let last = alloc::vec![Retired::default(); pass.len()];
        Ok(Self { _store: store, drain, counters, last, full: false })
    }

    /// Takes a run's records out, with the counters stopped. `counts` become how far they have come since they were programmed, as
    /// long as there was no record.
    pub fn take<R: Registers>(&mut self, registers: &mut R, driver: &Driver, counts: &mut [u64]) {
        self.last.fill(Retired::default());
        let (counters, last) = (&self.counters, &mut self.last);
        while self.drain.fetch(&mut *registers as &mut dyn Registers) {
            self.drain.run(|taken| {
                let Some(latency) = taken.retire_latency else { return };
                for ((counter, _), state) in counters.iter().zip(&mut *last) {
                    if taken.counters & counter.bit() != 0 {
                        state.add(latency);
                    }
                }
            });
        }
        self.full = self.drain.full + self.drain.malformed > 0;
        for (&(counter, preset), count) in self.counters.iter().zip(counts) {
            let value = driver.read(registers, counter).unwrap_or(preset);
            *count = value.wrapping_sub(preset) & driver.capabilities().mask(counter);
        }
    }

    /// What the records of the last run state, by event, and whether some found no room, or were none.
    #[must_use]
    pub fn last(&self) -> (&[Retired], bool) {
        (&self.last, self.full)
    }
}
