//! What the handler needs, worked out beforehand.

use super::accesses::{Accesses, Outcome};
use super::carry::Stands;
use super::chains::Chain;
use super::edges::Edges;
use super::groups::GroupLog;
use super::handling::{AroundAll, Handling};
use super::histogram::{Bucket, Histogram};
use super::ibs::Sampling;
use super::records_by_task::RecordsByTask;
use super::retired::RetiredByCounter;
use super::service::REGISTERS;
use super::table::Table;
use super::throttle::Throttle;
use super::timer::Times;
use crate::descriptors::is_compatibility;
use crate::pmu::capabilities::Counter;
use crate::pmu::data_source::Datum;
use crate::pmu::driver::{Driver, Gate, PmuError, Write};
use crate::pmu::pebs::Drain;
use crate::pmu::window;
use core::ops::Range;

/// One counter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Slot {
    /// The counter's MSR, to be set to `preset` at each overflow; 0: it just continues, unless something is carried over.
    pub reload: u32,
    /// The counter's MSR, to look at for an overflow where there is no status register; 0: the counter is not in use.
    pub look_at: u32,
    /// Where it starts from.
    pub preset: u64,
    /// How often it overflowed.
    pub overflows: u64,
    /// Of these, how many found the log full.
    pub dropped: u64,
    /// Periods that went by without an overflow of their own, because throttling had made the period longer.
    pub throttled: u64,
    /// How often the preset's period was doubled.
    pub level: u8,
    /// The same of the period that the counter runs now: a preset takes effect at the next overflow.
    pub(super) running: u8,
    /// It counts in ring 0.
    pub(super) ring_0: bool,
    /// A write of the counter extends its sign from bit 31.
    pub(super) extends_sign: bool,
    /// Most of what it has counted since an overflow that is added to the preset.
    pub(super) carry: u32,
    /// Bits of the counter's value.
    pub(super) width: u64,
    /// What it has counted since its overflows and no period has had yet.
    pub(super) owed: u64,
}

impl Slot {
    /// How often the period that the counter runs now was doubled.
    #[must_use]
    pub const fn running(&self) -> u32 {
        self.running as u32
    }
}

/// What one PMI leaves in the log.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[repr(C)]
pub struct Sample {
    /// The instruction at which the interrupt came.
    pub rip: u64,
    /// The counters that had overflowed, as bits of the global status.
    pub status: u64,
    /// The TSC.
    pub tsc: u64,
    /// What [`ControlBlock::task`] was.
    pub task: u32,
    /// The interrupted code's CS; its lowest two bits are the ring.
    pub cs: u16,
    /// The retire latency of a record that states it; else 0.
    pub retire_latency: u16,
}

impl Sample {
    /// Ring of the interrupted code.
    #[must_use]
    pub const fn ring(&self) -> u8 {
        (self.cs & 3) as u8
    }

    /// Whether 32-bit code was interrupted.
    #[must_use]
    pub const fn is_compatibility(&self) -> bool {
        is_compatibility(self.cs as u64)
    }
}

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

const NO_WRITE: Write = Write::new(crate::msr::Msr(0), 0);
const NO_SLOT: Slot = Slot {
    reload: 0,
    look_at: 0,
    preset: 0,
    overflows: 0,
    dropped: 0,
    throttled: 0,
    level: 0,
    running: 0,
    ring_0: false,
    extends_sign: false,
    carry: 0,
    width: 0,
    owed: 0,
};

impl ControlBlock {
    /// A block that finds every interrupt spurious.
    pub const EMPTY: Self = Self {
        status: 0,
        clear: 0,
        mask: 0,
        found: 0,
        resume: NO_WRITE,
        stop: NO_WRITE,
        gate: Gate::EMPTY,
        stops: 0,
        shut: 0,
        closed: [0; 2],
        task: 0,
        apic: 0,
        lvt: 0,
        stays_unmasked: false,
        nmi: 0,
        pmis: 0,
        spurious: 0,
        back_to_back: 0,
        dropped: 0,
        retired: core::ptr::null_mut(),
        stopped: false,
        stops_when_full: false,
        registers: core::ptr::null_mut(),
        groups: GroupLog::NONE,
        start: 0,
        histogram: None,
        records: None,
        ibs: None,
        edges: None,
        by_task: None,
        data: None,
        accesses: None,
        outcomes: None,
        chains: None,
        data_log: core::ptr::null_mut(),
        throttle: Throttle::NONE,
        notify: None,
        times: Times::EMPTY,
        cursor: 0,
        end: 0,
        top: 0,
        stands: Stands::Never,
        keeps_periods: false,
        slots: [NO_SLOT; SLOTS],
        around: AroundAll::NOTHING,
    };

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

    /// Takes the records of `drain` out at each interrupt of their buffer, and wherever the counters are stopped: each is
    /// an overflow of the counters that it is of, which do not interrupt by themselves. Its store has to outlive the
    /// block's use.
    pub fn take_records(&mut self, drain: Drain) {
        self.mask = self.mask & !drain.counters | drain.status().bits();
        self.records = Some(drain);
    }

    /// What was taken out, if PEBS records are.
    #[must_use]
    pub fn records(&self) -> Option<&Drain> {
        self.records.as_ref()
    }

    /// Counts the data addresses of records in the first 2^n of `buckets`, which have to outlive the block's use.
    pub fn count_data(&mut self, buckets: &mut [Bucket]) {
        self.data = Histogram::new(buckets);
    }

    /// The data addresses, if they are counted.
    #[must_use]
    pub fn data(&self) -> Option<&Histogram> {
        self.data.as_ref()
    }

    /// Keeps the data access of each sample as well. Needs a log that is not longer, and has to outlive
    /// the block's use.
    pub fn data_to(&mut self, accesses: &mut [Datum]) {
        let samples = (self.end - self.start) as usize / size_of::<Sample>();
        if accesses.len() >= samples {
            self.data_log = accesses.as_mut_ptr();
        }
    }

    /// Writes samples to `log` until it is full, and counts what does not fit. The log has to outlive the block's use.
    pub fn log_to(&mut self, log: &mut [Sample]) {
        let range = log.as_mut_ptr_range();
        self.start = range.start as u64;
        self.cursor = self.start;
        self.end = range.end as u64;
    }

    /// Keeps the registers of each sample as well, in the order of their encoding: RAX, RCX, RDX, RBX, RSP, RBP, RSI,
    /// RDI, R8 to R15. Needs a log that is not longer. As for the log, it has to outlive the block's use.
    pub fn registers_to(&mut self, registers: &mut [[u64; REGISTERS]]) {
        let samples = (self.end - self.start) as usize / size_of::<Sample>();
        if registers.len() >= samples {
            self.registers = registers.as_mut_ptr();
        }
    }

    /// A full log stops the counters, instead of dropping what comes after.
    pub fn stop_when_full(&mut self) {
        self.stops_when_full = true;
    }

    /// Counts addresses in `buckets`. They have to outlive the block's use.
    pub fn count_addresses(&mut self, buckets: &mut [Bucket]) {
        self.histogram = Histogram::new(buckets);
    }

    /// What was counted.
    #[must_use]
    pub fn histogram(&self) -> Option<&Histogram> {
        self.histogram.as_ref()
    }

    /// Calls `notify` at each interrupt.
    pub fn notify(&mut self, notify: Notify) {
        self.notify = Some(notify);
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

    /// Begins again with the same counters, presets and log: everything counted is 0, the log empty, the period what it
    /// was at first. The counters themselves are the driver's to set.
    pub fn clear(&mut self) {
        for slot in &mut self.slots {
            // The presets' doublings are undone: each was a shift within the counter's width.
            let period = slot.preset.wrapping_neg() & slot.width;
            slot.preset = (period >> slot.level).wrapping_neg() & slot.width;
            (slot.overflows, slot.dropped, slot.throttled) = (0, 0, 0);
            (slot.level, slot.running, slot.owed) = (0, 0, 0);
            slot.carry_over(self.stands, self.keeps_periods);
        }
        (self.pmis, self.spurious, self.back_to_back, self.dropped) = (0, 0, 0, 0);
        (self.cursor, self.stopped, self.shut) = (self.start, false, 0);
        self.clear_retired();
        self.throttle.clear();
        self.times.clear();
        for histogram in [&mut self.histogram, &mut self.data].into_iter().flatten() {
            histogram.clear();
        }
        if let Some(records) = &mut self.records {
            records.clear();
        }
        if let Some(sampling) = &mut self.ibs {
            sampling.clear();
        }
        if let Some(by_task) = &mut self.by_task {
            by_task.clear();
        }
        if let Some(edges) = &mut self.edges {
            edges.clear();
        }
        if let Some(accesses) = &mut self.accesses {
            accesses.clear();
        }
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.clear();
        }
        if let Some(chains) = &mut self.chains {
            chains.clear();
        }
    }

    /// One counter's slot, or the timer's.
    #[must_use]
    pub fn slot(&self, index: usize) -> &Slot {
        &self.slots[index & (SLOTS - 1)]
    }

    /// Samples written to a log that began at `start`.
    #[must_use]
    pub fn logged(&self, start: *const Sample) -> usize {
        (self.cursor as usize).saturating_sub(start as usize) / size_of::<Sample>()
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

/// Offsets for the assembly.
pub(super) mod offset {
    use super::{ControlBlock, Gate, Sample, Slot};
    use core::mem::offset_of;

    pub const STATUS: usize = offset_of!(ControlBlock, status);
    pub const CLEAR: usize = offset_of!(ControlBlock, clear);
    pub const MASK: usize = offset_of!(ControlBlock, mask);
    pub const FOUND: usize = offset_of!(ControlBlock, found);
    pub const RESUME: usize = offset_of!(ControlBlock, resume);
    pub const STOP: usize = offset_of!(ControlBlock, stop);
    pub const APIC: usize = offset_of!(ControlBlock, apic);
    pub const LVT: usize = offset_of!(ControlBlock, lvt);
    pub const NMI: usize = offset_of!(ControlBlock, nmi);
    pub const PMIS: usize = offset_of!(ControlBlock, pmis);
    pub const SPURIOUS: usize = offset_of!(ControlBlock, spurious);
    pub const BACK_TO_BACK: usize = offset_of!(ControlBlock, back_to_back);
    pub const DROPPED: usize = offset_of!(ControlBlock, dropped);
    pub const CURSOR: usize = offset_of!(ControlBlock, cursor);
    pub const END: usize = offset_of!(ControlBlock, end);
    pub const TASK: usize = offset_of!(ControlBlock, task);
    pub const STOPS: usize = offset_of!(ControlBlock, stops);
    pub const SHUT: usize = offset_of!(ControlBlock, shut);
    pub const CLOSED: usize = offset_of!(ControlBlock, closed);
    pub const ON: usize = offset_of!(ControlBlock, gate) + Gate::ON;
    pub const OFF: usize = offset_of!(ControlBlock, gate) + Gate::OFF;
    pub const UNSAMPLED: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, dropped);
    /// Its upper half: counters without a status register have 48 bits.
    pub const TOP_HIGH: usize = offset_of!(ControlBlock, top) + 4;
    pub const RELOAD: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, reload);
    pub const PRESET: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, preset);
    pub const LOOK_AT: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, look_at);
    pub const CARRY: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, carry);
    pub const OWED: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, owed);
    pub const OVERFLOWS: usize = offset_of!(ControlBlock, slots) + offset_of!(Slot, overflows);
    /// A slot is 2^6 bytes, which the assembly shifts by.
    const _: () = assert!(size_of::<Slot>() == 64);
    /// The assembly writes samples.
    const _: () = assert!(size_of::<Sample>() == 32 && offset_of!(Sample, task) == 24);
    /// CS with its upper half, which is 0, and so the latency.
    const _: () = assert!(offset_of!(Sample, cs) == 28 && offset_of!(Sample, retire_latency) == 30);
}

#[cfg(test)]
mod tests;
