//! Counters that write PEBS records.

use super::{Driver, PmuError, Selection, write};
use crate::pmu::access::Registers;
use crate::pmu::capabilities::Counter;
use crate::pmu::numbers;
use crate::pmu::pebs::Store;

/// IA32_PEBS_ENABLE\[32 + n\]: counter n has a load-latency event (SDM vol. 3, 20.3.1.1.2).
const LOAD_LATENCY: u32 = 32;

impl Driver {
    /// Switches PEBS on for `counter` if `selection` asks for it, else off.
    pub(super) fn write_records(
        &mut self,
        registers: &mut dyn Registers,
        counter: Counter,
        selection: &Selection,
    ) -> Result<(), PmuError> {
        if !selection.precise {
            return self.write_no_records(registers, counter);
        }
        let refuse = |reason| Err(PmuError::Attribute { counter, attribute: "PEBS", reason });
        let Counter::General(n) = counter else {
            return refuse("only general-purpose counters have it");
        };
        if self.capabilities.pebs_counters() & 1 << n == 0 {
            return refuse("the processor does not offer it there");
        }
        if selection.interrupt {
            return refuse("its buffer interrupts, and not the counter");
        }
        let latency = matches!(selection.extra, Some((numbers::LOAD_LATENCY, _)));
        let bits = counter.bit() | u64::from(latency) << (LOAD_LATENCY + u32::from(n));
        self.records = self.records & !both(counter) | bits;
        write(registers, numbers::PEBS_ENABLE, self.records)
    }

    /// Switches PEBS off for `counter`.
    pub(super) fn write_no_records(
        &mut self,
        registers: &mut dyn Registers,
        counter: Counter,
    ) -> Result<(), PmuError> {
        if self.records & both(counter) == 0 {
            return Ok(());
        }
        self.records &= !both(counter);
        write(registers, numbers::PEBS_ENABLE, self.records)
    }

    /// Switches PEBS off and takes the debug store away from the processor.
    pub(super) fn forget_store(&mut self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        if self.capabilities.pebs_format().is_none() {
            return Ok(());
        }
        self.records = 0;
        write(registers, numbers::PEBS_ENABLE, 0)?;
        write(registers, numbers::DS_AREA, 0)
    }

    /// Names the memory that records go to, until [`Driver::reset`]. It has to stay where it is, and mapped, as long.
    ///
    /// # Errors
    /// There is no PEBS, or the register refuses the address.
    pub fn use_store(&self, registers: &mut dyn Registers, store: &Store) -> Result<(), PmuError> {
        if self.capabilities.pebs_format().is_none() {
            return Err(PmuError::Unsupported("PEBS"));
        }
        write(registers, numbers::DS_AREA, store.address())
    }

    /// The counters that write records, as bits of the global registers.
    #[must_use]
    pub fn recording(&self) -> u64 {
        self.records & u64::from(self.capabilities.pebs_counters())
    }
}

/// The bits of a counter.
const fn both(counter: Counter) -> u64 {
    match counter {
        Counter::General(n) => 1 << n | 1 << (LOAD_LATENCY + n as u32),
        Counter::Fixed(_) => 0,
    }
}
