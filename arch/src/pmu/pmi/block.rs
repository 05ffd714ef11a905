//! What the handler needs, worked out beforehand.

mod clear;
mod destinations;
mod empty;
pub(super) mod offset;
mod sample;
mod slot;

pub use sample::Sample;
pub use slot::Slot;

use super::accesses::{Accesses, Outcome};
use super::carry::Stands;
use super::chains::Chain;
use super::edges::Edges;
use super::groups::GroupLog;
use super::handling::{AroundAll, Handling};
use super::histogram::Histogram;
use super::ibs::Sampling;
use super::records_by_task::RecordsByTask;
use super::retired::RetiredByCounter;
use super::service::REGISTERS;
use super::table::Table;
use super::throttle::Throttle;
use super::timer::Times;
use crate::pmu::capabilities::Counter;
use crate::pmu::data_source::Datum;
use crate::pmu::driver::{Driver, Gate, PmuError, Write};
use crate::pmu::pebs::Drain;
use crate::pmu::window;
use core::ops::Range;

/// A function that is called in the interrupt, with the interrupted instruction's address and the counters that had
/// overflowed, as bits of the global status. It may take no lock and not allocate: it interrupts whoever does.
pub type Notify = fn(rip: u64, status: u64);

/// Bits of the global registers.
pub(super) const SLOTS: usize = 64;

/// What one processor's handler works with. The assembly of `entry` reads it by offset.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct ControlBlock {
    /// Status register; 0: there is none.
    pub(super) status: u32,
    /// Register that clears it.
    pub(super) clear: u32,
    /// Bits of the status that are counters of ours; never the frozen ones.
    pub(super) mask: u64,
    /// Where the handler continues when it has found an overflow, worked out by whoever installs it.
    pub(super) found: u64,
    /// Lets the counters continue: a register, 0 if nothing must be done, and its value.
    pub(super) resume: Write,
    /// Stops the counters at the beginning: likewise.
    pub(super) stop: Write,
    /// For processors without a global control: writes that stop the counters, and that let them continue.
    pub(super) gate: Gate,
    /// How many of these the handler makes; 0: it does not stop the counters.
    pub(super) stops: u32,
    /// Not 0: the gate is closed, whatever was interrupted.
    pub(super) shut: u32,
    /// Code in which the gate is closed: its first address, and how many bytes.
    pub(super) closed: [u64; 2],
    /// Who is interrupted, for the samples; set by whoever switches between tasks.
    pub task: u32,
    /// Address of the APIC's page; 0: x2APIC.
    pub(super) apic: u64,
    /// LVTPC without its mask bit.
    pub(super) lvt: u32,
    /// LVTPC stays unmasked at delivery: AMD's.
    pub(super) stays_unmasked: bool,
    /// The interrupt is an NMI, and gets no EOI.
    pub(super) nmi: u32,
    /// PMIs that found an overflow.
    pub pmis: u64,
    /// Interrupts that found none.
    pub spurious: u64,
    /// Overflows that came while an interrupt was being handled, and were found before its end.
    pub back_to_back: u64,
    /// Samples that did not fit the log.
    pub dropped: u64,
    /// Sums of retire latencies; null: they are not added up.
    pub(super) retired: *mut RetiredByCounter,
    /// Counting stopped because the log was full.
    pub stopped: bool,
    /// A full log stops counting.
    pub(super) stops_when_full: bool,
    /// Registers of each sample of the log; null: they are not kept.
    pub(super) registers: *mut [u64; REGISTERS],
    /// Further groups of the records of the log's samples.
    pub(super) groups: GroupLog,
    /// The log's beginning.
    pub(super) start: u64,
    /// Addresses, counted.
    pub(super) histogram: Option<Histogram>,
    /// PEBS records to take out.
    pub(super) records: Option<Drain>,
    /// The unit of instruction-based sampling that samples in addition to the counters.
    pub(super) ibs: Option<Sampling>,
    /// Branches that were recorded before each sample, counted.
    pub(super) edges: Option<Edges>,
    /// Those of tasks that do not run.
    pub(super) by_task: Option<RecordsByTask>,
    /// Data addresses of records, counted.
    pub(super) data: Option<Histogram>,
    /// Data accesses of samples, counted with their sources.
    pub(super) accesses: Option<Accesses>,
    /// What became of sampled branches, counted.
    pub(super) outcomes: Option<Table<Outcome>>,
    /// Call stacks of samples, counted.
    pub(super) chains: Option<Table<Chain>>,
    /// Data access of each sample of the log; null: they are not kept.
    pub(super) data_log: *mut Datum,
    /// The limit of the rate.
    pub throttle: Throttle,
    /// Called at each interrupt.
    pub(super) notify: Option<Notify>,
    /// Ticks of the timer, if it samples.
    pub times: Times,
    /// Where the next sample goes; equal to `end`: the log is full.
    pub(super) cursor: u64,
    /// After the log; 0: there is none.
    pub(super) end: u64,
    /// Top bit of the counters, for processors without a status register.
    pub(super) top: u64,
    /// When counters stand.
    pub(super) stands: Stands,
    /// Some distances from an overflow do not work (errata): counters are set to those of the periods alone.
    pub(super) keeps_periods: bool,
    pub(super) slots: [Slot; SLOTS],
    /// The writes around the handlers in Rust, worked out by whoever installs it.
    pub(super) around: AroundAll,
}

impl ControlBlock {
    /// The block for the counters that `driver` has programmed: overflows are counted, counters continue from where
    /// they are.
    #[must_use]
    pub fn of(driver: &Driver) -> Self {
        let has = driver.capabilities();
        let mut block = Self::EMPTY;
        if let Some(global) = driver.layout().global {
            block.status = global.status.0;
            block.clear = global.clear.0;
        }
        // Without a status register only counters that are reloaded tell by their top bit that they overflowed.
        block.mask = if block.status == 0 { 0 } else { driver.programmed() & !has.no_overflow };
        block.top = (u64::MAX >> (64 - has.general_bits.clamp(1, 64)) >> 1) + 1;
        block.stays_unmasked = !has.is_intel();
        block.gate = driver.gate();
        block.closes_in(&window::closed());
        for counter in has.counters().filter(|counter| driver.programmed() & counter.bit() != 0) {
            let slot = &mut block.slots[counter.index()];
            slot.look_at = driver.layout().counter(counter).0;
            slot.width = has.mask(counter);
            slot.ring_0 = driver.counts_ring_0(counter);
            slot.extends_sign = driver.layout().extends_sign(counter);
        }
        block
    }

    /// Counter `counter` starts again from `preset` at each overflow.
    ///
    /// # Errors
    /// The counter is not programmed.
    pub fn reload(
        &mut self,
        driver: &Driver,
        counter: Counter,
        preset: u64,
    ) -> Result<(), PmuError> {
        if driver.programmed() & counter.bit() == 0 {
            return Err(PmuError::NoCounter(counter));
        }
        let slot = &mut self.slots[counter.index()];
        slot.reload = driver.layout().counter(counter).0;
        slot.preset = preset;
        slot.carry_over(self.stands, self.keeps_periods);
        self.mask |= counter.bit();
        Ok(())
    }

    /// The counters that interrupt are `counters`, as bits of the status, from now on, and the global control that lets
    /// them run is `enabled`. None of them is reloaded, nor was one before, and there is a status register.
    #[inline]
    pub fn follow(&mut self, counters: u64, enabled: u64) {
        self.mask = counters;
        self.gate.follow(enabled);
    }

    /// Whether samples have registers.
    pub(in crate::pmu) fn needs_registers(&self) -> bool {
        !self.registers.is_null()
    }

    /// Whether the assembly is not enough.
    pub(super) fn needs_service(&self) -> bool {
        self.stops_when_full
            || self.needs_registers()
            || self.histogram.is_some()
            || self.records.is_some()
            || self.edges.is_some()
            || self.chains.is_some()
            || self.throttle.limits()
            || self.notify.is_some()
    }

    /// The code in which the gate is closed again, in place of [`window::closed`]: an interrupt that comes there, because it was
    /// pending when the gate was closed, does not let the counters continue. Frozen counters stand as stopped ones do, so they
    /// do not tell.
    pub fn closes_in(&mut self, code: &Range<u64>) {
        self.closed = [code.start, code.end.saturating_sub(code.start)];
    }

    /// Whether the handler's end would start counters that a closed gate has stopped. The end of a streamlined freeze does not.
    pub(super) fn reopens(&self) -> bool {
        self.stops > 0 || self.resume.msr != 0 && self.gate.on().contains(&self.resume)
    }

    /// Whether the gate is closed where the code was interrupted, so that the counters are not to continue.
    pub(super) fn is_closed_at(&self, rip: u64) -> bool {
        let [start, bytes] = self.closed;
        self.reopens() && (self.shut != 0 || rip.wrapping_sub(start) < bytes)
    }

    /// What counters see of the handler.
    #[must_use]
    pub fn handling(&self) -> Handling {
        Handling::of(self)
    }

    /// One counter's slot, or the timer's.
    #[must_use]
    pub fn slot(&self, index: usize) -> &Slot {
        &self.slots[index & (SLOTS - 1)]
    }

    /// What a counter has counted since its overflows and no period has had yet ([`Slot::owed`]).
    #[must_use]
    pub fn owed(&self, counter: Counter) -> u64 {
        self.slots[counter.index()].owed()
    }

    /// How often a counter overflowed.
    #[must_use]
    pub fn overflows(&self, counter: Counter) -> u64 {
        self.slots[counter.index()].overflows
    }
}

#[cfg(test)]
mod tests;
