//! Reading and writing counters.

use super::{Driver, Layout, PmuError, RDPMC_METRICS, SLOTS, read, write};
use crate::pmu::access::{Readable, Registers};
use crate::pmu::capabilities::Counter;
use crate::pmu::numbers;
use crate::pmu::registers::{GlobalStatus, PerfMetrics, Slots};

impl Driver {
    /// The counter's value, by RDMSR.
    ///
    /// # Errors
    /// It does not exist.
    pub fn read(&self, registers: &mut dyn Registers, counter: Counter) -> Result<u64, PmuError> {
        self.exists(counter)?;
        Ok(read(registers, self.layout.counter(counter))? & self.capabilities.mask(counter))
    }

    /// The counter's value, by RDPMC.
    ///
    /// # Errors
    /// It does not exist, or RDPMC raised an exception.
    pub fn rdpmc(&self, registers: &mut dyn Registers, counter: Counter) -> Result<u64, PmuError> {
        self.exists(counter)?;
        let index = Layout::rdpmc_index(counter);
        registers.rdpmc(index).map_err(|_| PmuError::Rdpmc(index))
    }

    /// The counter, to be read by RDPMC as often as needed: it was read once, and raises no exception on this processor.
    ///
    /// # Errors
    /// As for [`Driver::rdpmc`].
    pub fn readable(
        &self,
        registers: &mut dyn Registers,
        counter: Counter,
    ) -> Result<Readable, PmuError> {
        self.rdpmc(registers, counter)?;
        Ok(Readable(Layout::rdpmc_index(counter)))
    }

    /// Sets the counter.
    ///
    /// # Errors
    /// It does not exist, the value has more bits than the counter, or the processor can write 32 bits only and their
    /// sign's extension is not the value.
    pub fn write(
        &self,
        registers: &mut dyn Registers,
        counter: Counter,
        value: u64,
    ) -> Result<(), PmuError> {
        self.exists(counter)?;
        self.settable(counter, value)?;
        write(registers, self.layout.counter(counter), value)
    }

    /// The value from which a counter overflows after `period` events.
    ///
    /// # Errors
    /// The period is 0, or the counter cannot be set to that value.
    pub fn preset(&self, counter: Counter, period: u64) -> Result<u64, PmuError> {
        self.exists(counter)?;
        let mask = self.capabilities.mask(counter);
        let refuse = |reason| Err(PmuError::Value { counter, value: period, reason });
        if period == 0 {
            return refuse("a period of 0 events never ends");
        }
        if period > mask {
            return refuse("the period does not fit into the counter");
        }
        let value = period.wrapping_neg() & mask;
        // Without a status register, the top bit states whether the counter overflowed.
        if self.layout.global.is_none() && value <= mask / 2 {
            return refuse(
                "without a status register a period must fit into one bit less than the counter has",
            );
        }
        self.settable(counter, value)?;
        Ok(value)
    }

    pub(super) fn settable(&self, counter: Counter, value: u64) -> Result<(), PmuError> {
        let mask = self.capabilities.mask(counter);
        if value & !mask != 0 {
            return Err(PmuError::Value { counter, value, reason: "it has bits above its width" });
        }
        let extended = i64::from(value as u32 as i32) as u64 & mask;
        if self.layout.extends_sign(counter) && extended != value {
            let reason = "only 32 bits can be written, and their sign is extended";
            return Err(PmuError::Value { counter, value, reason });
        }
        Ok(())
    }

    /// PERF_METRICS, by RDPMC.
    ///
    /// # Errors
    /// There is no such register.
    pub fn metrics(&self, registers: &mut dyn Registers) -> Result<PerfMetrics, PmuError> {
        if !self.capabilities.metrics {
            return Err(PmuError::Unsupported("PERF_METRICS"));
        }
        let value = registers.rdpmc(RDPMC_METRICS).map_err(|_| PmuError::Rdpmc(RDPMC_METRICS))?;
        Ok(PerfMetrics(value))
    }

    /// Slots and PERF_METRICS, once each, one RDPMC after the other: for all fields of a reading, while they count as well. (Linux,
    /// `icl_update_topdown_event`, reads the slots first.)
    ///
    /// # Errors
    /// There is no such register.
    pub fn slots(&self, registers: &mut dyn Registers) -> Result<Slots, PmuError> {
        // The shares first: slots that come between the two readings are none of theirs.
        let shares = self.metrics(registers)?;
        Ok(Slots { slots: self.rdpmc(registers, SLOTS)?, shares })
    }

    /// Whether PERF_METRICS overflowed since the status was last cleared: its shares are of no known slots then (SDM vol. 3,
    /// 20.3.9.3; Linux takes what there is at that instant and starts both again, in `handle_pmi_common`).
    ///
    /// # Errors
    /// The status cannot be read.
    pub fn metrics_overflowed(&self, registers: &mut dyn Registers) -> Result<bool, PmuError> {
        Ok(self.capabilities.metrics && self.status(registers)?.contains(GlobalStatus::METRICS))
    }

    /// Starts slots and PERF_METRICS again, in the order that they need: slots first (Linux,
    /// `arch/x86/events/intel/core.c`).
    ///
    /// # Errors
    /// There is no such register.
    pub fn clear_metrics(&self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        if !self.capabilities.metrics {
            return Err(PmuError::Unsupported("PERF_METRICS"));
        }
        self.write(registers, SLOTS, 0)?;
        write(registers, numbers::PERF_METRICS, 0)
    }
}
