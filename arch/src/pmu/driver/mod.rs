//! One driver for every programming model.
//!
//! The differences are in [`Layout`] (where the registers are) and in three questions that [`Capabilities`]
//! answers: is there a global control, does a write extend the sign, how does a PMI freeze. A counter is programmed
//! with its own enable on and counts while the [`Gate`] is open: one WRMSR to the global control where there is one,
//! else one to each event select.

mod counters;
mod error;
mod freeze;
mod gate;
mod layout;
mod precise;
mod renew;
mod selection;
mod status;

pub use error::PmuError;
pub use freeze::Freeze;
pub use gate::{Gate, MAX_WRITES, Write};
pub use layout::{Global, Layout};
pub use selection::{Rings, Selection};

use super::access::Registers;
use super::capabilities::{Capabilities, Counter};
use super::registers::FixedControl;
use crate::msr::Msr;
use alloc::sync::Arc;

/// RDPMC's ECX for fixed counter 0 (SDM vol. 2, RDPMC).
pub const RDPMC_FIXED: u32 = 0x4000_0000;
/// RDPMC's ECX for MSR_PERF_METRICS.
pub const RDPMC_METRICS: u32 = 0x2000_0000;
/// The counter of slots, of which MSR_PERF_METRICS tells shares.
pub const SLOTS: Counter = Counter::Fixed(3);
/// GLOBAL_CTRL\[48\]: PERF_METRICS counts.
const METRICS_ENABLE: u64 = 1 << 48;

/// The driver: what is programmed, on which PMU.
#[derive(Clone, Debug)]
pub struct Driver {
    /// Shared, as a driver is copied for each group of events.
    capabilities: Arc<Capabilities>,
    layout: Layout,
    /// Event selects, enables on; 0 for a counter that is free.
    selects: [u64; 32],
    fixed: FixedControl,
    /// What the global control is while counting.
    enabled: u64,
    /// Counters that the gate leaves alone, as bits of the global registers.
    free_running: u64,
    /// Counters that are somebody else's, likewise.
    foreign: u64,
    /// IA32_PEBS_ENABLE.
    records: u64,
}

impl Driver {
    /// A driver with every counter free.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        let layout = Layout::of(&capabilities);
        Self {
            capabilities: Arc::new(capabilities),
            layout,
            selects: [0; 32],
            fixed: FixedControl(0),
            enabled: 0,
            free_running: 0,
            foreign: 0,
            records: 0,
        }
    }

    /// What the PMU can do.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Where its registers are.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The counters that are programmed, as bits of the global registers.
    #[must_use]
    pub fn programmed(&self) -> u64 {
        self.enabled & self.capabilities.counter_bits()
    }

    /// Gives `counter` an event. It counts from the next [`Driver::start`] on; its value stays as it is.
    ///
    /// # Errors
    /// The counter does not exist, lacks an attribute, or a register refuses the value.
    pub fn program(
        &mut self,
        registers: &mut dyn Registers,
        counter: Counter,
        selection: &Selection,
    ) -> Result<(), PmuError> {
        self.exists(counter)?;
        if selection.interrupt && !self.capabilities.overflows(counter) {
            let (attribute, reason) =
                ("usable interrupt at its overflow", "it was tried at the start");
            return Err(PmuError::Attribute { counter, attribute, reason });
        }
        self.renew(registers)?;
        self.write_records(registers, counter, selection)?;
        if let Some((msr, value)) = selection.extra {
            if !self.capabilities.extra.contains(&msr) {
                return Err(PmuError::Unsupported("extra register with this number for events"));
            }
            write(registers, msr, value)?;
        }
        match counter {
            Counter::General(n) => {
                let select = selection.encode(counter, &self.capabilities)?;
                // Without a global control the enable is the gate, and stays off until the start.
                let now = if self.layout.global.is_some() { select } else { select & !ENABLE };
                write(registers, self.layout.select(n), now)?;
                self.selects[usize::from(n)] = select;
            }
            Counter::Fixed(i) => {
                let field = selection.field(counter, &self.capabilities)?;
                let adaptive = selection.precise && self.capabilities.has_adaptive_records();
                let control = self.fixed.with(i, field).with_adaptive(i, adaptive);
                write(registers, super::numbers::FIXED_CTR_CTRL, control.0)?;
                self.fixed = control;
            }
        }
        self.enabled |= counter.bit();
        Ok(())
    }

    /// Frees `counter`: it does not count any more.
    ///
    /// # Errors
    /// The counter does not exist, or a register refuses.
    pub fn release(
        &mut self,
        registers: &mut dyn Registers,
        counter: Counter,
    ) -> Result<(), PmuError> {
        self.exists(counter)?;
        self.write_no_records(registers, counter)?;
        match counter {
            Counter::General(n) => {
                write(registers, self.layout.select(n), 0)?;
                self.selects[usize::from(n)] = 0;
            }
            Counter::Fixed(i) => {
                let none = super::registers::FixedField::empty();
                let control = self.fixed.with(i, none).with_adaptive(i, false);
                write(registers, super::numbers::FIXED_CTR_CTRL, control.0)?;
                self.fixed = control;
            }
        }
        self.enabled &= !counter.bit();
        if counter == SLOTS {
            self.enabled &= !METRICS_ENABLE;
        }
        self.free_running &= !counter.bit();
        Ok(())
    }

    /// Stops everything and frees every counter, the status and the freeze included. The counters keep their values.
    ///
    /// # Errors
    /// A register refuses.
    pub fn reset(&mut self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        self.free_running = 0;
        self.stop(registers)?;
        self.forget_store(registers)?;
        let foreign = self.foreign;
        let own = |counter: &Counter| foreign & counter.bit() == 0;
        for counter in self.capabilities.generals().filter(own) {
            self.release(registers, counter)?;
        }
        if self.capabilities.fixed != 0
            && self.foreign & u64::from(self.capabilities.fixed) << 32 == 0
        {
            write(registers, super::numbers::FIXED_CTR_CTRL, 0)?;
        }
        self.fixed = FixedControl(0);
        self.enabled = 0;
        if self.capabilities.is_intel() || self.capabilities.has_global() {
            self.no_freeze(registers)?;
        }
        let status = self.status(registers)?;
        self.acknowledge(registers, status)
    }

    /// Lets MSR_PERF_METRICS count along with fixed counter 3, which must be programmed as well.
    ///
    /// # Errors
    /// There is no such register.
    pub fn enable_metrics(&mut self) -> Result<(), PmuError> {
        if !self.capabilities.metrics {
            return Err(PmuError::Unsupported("PERF_METRICS"));
        }
        self.enabled |= METRICS_ENABLE;
        Ok(())
    }

    /// Whether MSR_PERF_METRICS counts along.
    #[must_use]
    pub fn has_metrics(&self) -> bool {
        self.enabled & METRICS_ENABLE != 0
    }

    fn exists(&self, counter: Counter) -> Result<(), PmuError> {
        if self.capabilities.has(counter) { Ok(()) } else { Err(PmuError::NoCounter(counter)) }
    }
}

/// Bit 22 of an event select, on both vendors.
const ENABLE: u64 = 1 << 22;

/// Reads a register that should be there.
pub(super) fn read(registers: &mut dyn Registers, msr: Msr) -> Result<u64, PmuError> {
    registers.rdmsr(msr).map_err(|_| PmuError::Read(msr))
}

/// Writes a register that should take the value.
pub(super) fn write(registers: &mut dyn Registers, msr: Msr, value: u64) -> Result<(), PmuError> {
    registers.wrmsr(msr, value).map_err(|_| PmuError::Write { msr, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SDM vol. 4, IA32_PERFEVTSEL0 (EN) and IA32_PERF_GLOBAL_CTRL (EN_PERF_METRICS); AMD's PERF_CTL has EN in the same place.
    #[test]
    fn the_bits_are_where_the_manual_has_them() {
        assert_eq!(ENABLE, 0x40_0000);
        assert_eq!(METRICS_ENABLE, 0x1_0000_0000_0000);
    }
}
