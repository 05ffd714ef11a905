//! Counters that write PEBS records.

use super::{Driver, Layout, PmuError, Selection, read, write};
use crate::pmu::access::Registers;
use crate::pmu::capabilities::Counter;
use crate::pmu::data_source::PRECISE_STORE;
use crate::pmu::numbers;
use crate::pmu::pebs::{BufferIndex, Contents, Format, Store};

/// IA32_PEBS_ENABLE\[32 + n\]: counter n has a load-latency event (SDM vol. 3, 20.3.1.1.2). With adaptive records it is fixed
/// counter n's (20.9.1).
const LOAD_LATENCY: u32 = 32;
/// IA32_PEBS_ENABLE\[63\]: records of counter 3, which has the event of precise stores, state the store (SDM vol. 3, "Precise
/// Store Facility").
const PRECISE_STORES: u64 = 1 << 63;
const PRECISE_STORE_COUNTER: Counter = Counter::General(3);

impl Driver {
    /// Switches PEBS on for `counter` if `selection` requests it, else off.
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
        let fixed = self.capabilities.pebs_format().is_some_and(Format::has_groups);
        if matches!(counter, Counter::Fixed(_)) && !fixed {
            return refuse("only general-purpose counters have it");
        }
        if self.offered() & counter.bit() == 0 {
            return refuse("the processor does not offer it there");
        }
        if selection.interrupt {
            return refuse("the PEBS buffer raises its interrupts, not the counter");
        }
        let store = self.capabilities.memory.precise_stores
            && (selection.event, selection.umask) == PRECISE_STORE;
        if store && counter != PRECISE_STORE_COUNTER {
            return refuse("only counter 3 has precise stores");
        }
        if self.capabilities.architectural_pebs.is_some() {
            // What `use_store` wrote says the groups.
            let groups = read(registers, Layout::records(counter))?;
            write(registers, Layout::records(counter), groups | Contents::BASIC.bits())?;
            self.records |= counter.bit();
            return Ok(());
        }
        let latency = matches!(selection.extra, Some((numbers::LOAD_LATENCY, _)));
        let both = self.bits_of(counter);
        let bits = match (latency, store) {
            (true, _) => both & !PRECISE_STORES,
            (_, true) => counter.bit() | PRECISE_STORES,
            _ => counter.bit(),
        };
        self.records = self.records & !both | bits;
        write(registers, numbers::PEBS_ENABLE, self.records)
    }

    /// Switches PEBS off for `counter`.
    pub(super) fn write_no_records(
        &mut self,
        registers: &mut dyn Registers,
        counter: Counter,
    ) -> Result<(), PmuError> {
        // The common case first: each switch between groups comes here for each counter.
        if self.records == 0 {
            return Ok(());
        }
        let both = self.bits_of(counter);
        if self.records & both == 0 {
            return Ok(());
        }
        self.records &= !both;
        if self.capabilities.architectural_pebs.is_some() {
            return write(registers, Layout::records(counter), 0);
        }
        write(registers, numbers::PEBS_ENABLE, self.records)
    }

    /// Switches PEBS off and takes the debug store, or the buffer, away from the processor.
    pub(super) fn forget_store(&mut self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        if self.capabilities.pebs_format().is_none() {
            return Ok(());
        }
        self.records = 0;
        if self.capabilities.architectural_pebs.is_some() {
            for counter in self.can_record() {
                write(registers, Layout::records(counter), 0)?;
            }
            write(registers, numbers::PEBS_INDEX, 0)?;
            return write(registers, numbers::PEBS_BASE, 0);
        }
        write(registers, numbers::PEBS_ENABLE, 0)?;
        if self.capabilities.has_adaptive_records() {
            write(registers, numbers::PEBS_DATA_CFG, 0)?;
        }
        write(registers, numbers::DS_AREA, 0)
    }

    /// Names the memory that records go to, until [`Driver::reset`], and the groups that it is made for. It has to stay where
    /// it is, and mapped, as long. Architectural PEBS gets its counters' reset values here as well, so it comes before
    /// [`Driver::program`].
    ///
    /// # Errors
    /// There is no PEBS, the memory is for records of another kind, or a register refuses its value.
    pub fn use_store(&self, registers: &mut dyn Registers, store: &Store) -> Result<(), PmuError> {
        if self.capabilities.pebs_format().is_none() {
            return Err(PmuError::Unsupported("PEBS"));
        }
        let has = &self.capabilities;
        let groups = has.pebs_format().is_some_and(Format::has_groups);
        let base = store.base();
        if (groups || base.is_some()) && has.pebs_format() != Some(store.format()) {
            return Err(PmuError::Unsupported("PEBS with records of that format"));
        }
        if let Some(base) = base {
            if !has.record_groups().contains(store.config().groups) {
                return Err(PmuError::Unsupported("PEBS with records of those groups"));
            }
            for counter in self.can_record() {
                write(registers, Layout::records(counter), store.contents(counter).bits())?;
            }
            write(registers, numbers::PEBS_BASE, base.bits())?;
            return write(registers, numbers::PEBS_INDEX, store.index().0);
        }
        if groups {
            write(registers, numbers::PEBS_DATA_CFG, store.config().bits())?;
        }
        write(registers, numbers::DS_AREA, store.address())
    }

    /// Empties the buffer of architectural PEBS; the debug store's is emptied where it lies.
    ///
    /// # Errors
    /// A register refuses.
    pub fn empty_store(&self, registers: &mut dyn Registers) -> Result<(), PmuError> {
        if self.capabilities.architectural_pebs.is_none() || self.records == 0 {
            return Ok(());
        }
        let index = BufferIndex(read(registers, numbers::PEBS_INDEX)?).emptied();
        write(registers, numbers::PEBS_INDEX, index.0)
    }

    /// The counters that can write records.
    fn can_record(&self) -> impl Iterator<Item = Counter> + use<> {
        let offered = self.offered();
        self.capabilities.counters().filter(move |counter| offered & counter.bit() != 0)
    }

    /// The same, as bits of the global registers.
    fn offered(&self) -> u64 {
        u64::from(self.capabilities.pebs_counters())
            | u64::from(self.capabilities.pebs_fixed()) << 32
    }

    /// The bits of IA32_PEBS_ENABLE that are a counter's.
    fn bits_of(&self, counter: Counter) -> u64 {
        match counter {
            Counter::General(n)
                if !self.capabilities.pebs_format().is_some_and(Format::has_groups) =>
            {
                let store =
                    self.capabilities.memory.precise_stores && counter == PRECISE_STORE_COUNTER;
                let store = if store { PRECISE_STORES } else { 0 };
                1 << n | 1 << (LOAD_LATENCY + u32::from(n)) | store
            }
            Counter::General(_) | Counter::Fixed(_) => counter.bit(),
        }
    }

    /// The counters that write records, as bits of the global registers.
    #[must_use]
    pub fn recording(&self) -> u64 {
        self.records & self.offered()
    }
}
