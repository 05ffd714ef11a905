//! Time passing: counting, overflow, interrupt request.

use super::counter::Counter;
use super::gate::Which;
use super::{MAX_FIXED, Pmu, write};
use crate::RingMask;
use crate::delta::Delta;
use crate::metrics::{MOST_SLOTS, Shape};
use crate::mutation::Mutation;
use crate::occurrence::{Bulk, Occurrence};
use crate::selection::Selection;
use crate::timing::Stalls;

/// What a report of [`Pmu::advance`] led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// A performance monitoring interrupt is requested, through LVTPC; once, however many counters
    /// overflowed. Masking is the caller's: on Intel the local APIC sets LVTPC's mask bit at
    /// delivery, on AMD it does not.
    pub pmi: bool,
    /// Counters that overflowed, as bits of the global registers; also on models without a status
    /// register.
    pub overflowed: u64,
    /// An interrupt of instruction-based sampling is requested, through the entry of the extended local vector table that
    /// IBS_CTL names. Masking is the caller's.
    pub ibs: bool,
    /// Counters that want a PEBS record, and units that want a sample, of this instruction, as bits: [`Pmu::write_record`]. The event after the one
    /// that overflowed makes it (SDM volume 3, 20.3.1.1.1). Only a delta of a single instruction has any.
    pub due: u64,
    /// Instructions of this delta after its first bulk overflow. Not 0 means that the caller ran
    /// past the instruction at which it should have stopped.
    pub late_instructions: u64,
}

/// Slots that PERF_METRICS holds with the planted fault.
const EARLY: u64 = 0xFF;

impl Pmu {
    /// Counts what happened. Everything in the delta is counted with the registers as they are:
    /// report before you emulate a write. Record the branch of an instruction before reporting it.
    ///
    /// An overflow in the middle of a bulk delta is counted rightly, and freezes at the right
    /// instruction if freezing is on; only the interrupt comes late, by
    /// [`Outcome::late_instructions`].
    pub fn advance(&mut self, delta: &Delta) -> Outcome {
        self.advance_qualified(delta, None)
    }

    /// The same where counters are qualified, with the part of the delta that passes the qualifiers; `None`: nothing of it does.
    pub fn advance_qualified(&mut self, delta: &Delta, passed: Option<&Delta>) -> Outcome {
        let mut outcome = Outcome::default();
        let single = delta.instructions <= 1;
        let late = if single { 0 } else { self.late(delta) };
        let cut = if !single && self.freeze_is_armed() && delta.is_bulk() {
            self.until_pmi_in(delta.ring).filter(|cut| *cut < delta.instructions)
        } else {
            None
        };
        match cut {
            Some(cut) => {
                self.count(&delta.part(cut), passed, &mut outcome);
                self.count(&delta.part(delta.instructions - cut), None, &mut outcome);
            }
            None => self.count(delta, passed, &mut outcome),
        }
        outcome.late_instructions = late;
        outcome
    }

    /// Instructions of a delta after its first bulk overflow.
    fn late(&self, delta: &Delta) -> u64 {
        let first = self.until_bulk_overflow_in(delta.ring);
        first.map_or(0, |first| delta.instructions.saturating_sub(first))
    }

    fn count(&mut self, delta: &Delta, passed: Option<&Delta>, outcome: &mut Outcome) {
        let on = self.on();
        // PERF_METRICS counts where a fixed counter is on.
        let none = self.each_of(on).next().is_none();
        let stalls = if none { Stalls::default() } else { self.timing.stalls(delta) };
        let nothing =
            (passed.is_none() && self.qualifiers.is_on()).then(|| Delta::bulk(delta.ring, 0));
        let passed = passed.or(nothing.as_ref()).unwrap_or(delta);
        let of_passed = if self.qualifiers.is_on() { self.timing.stalls(passed) } else { stalls };
        let (mut overflowed, mut pmi) = (0, false);
        if delta.instructions > 0 {
            self.pause(!on);
        }
        for which in self.each_of(on) {
            let gate = self.gate(which);
            let (delta, stalls) = match self.qualifiers.selects(which.bit()) {
                true => (passed, of_passed),
                false => (delta, stalls),
            };
            if gate.rings.contains(delta.ring) {
                let mut counter = *self.counter(which);
                let (selection, threshold) = self.event(which);
                let count = self.context().count(&mut counter, selection, threshold, delta, stalls);
                let count = self.slow_loads(which, delta, count);
                let count = self.planted_count(which, selection, count);
                let count = self.planted_loss(&mut counter, selection, delta, count);
                let armed = self.is_armed(which);
                let wrapped = if self.is(Mutation::RunsBackwards) && which == Which::General(0) {
                    counter.take(count, self.bits(which));
                    false
                } else {
                    counter.add(count, self.bits(which), self.planted)
                };
                if armed && self.is_occasion(which, count, delta) {
                    outcome.due |= which.bit();
                } else if wrapped && self.writes_records(which) {
                    self.armed |= which.bit();
                } else if wrapped {
                    overflowed |= which.bit();
                    pmi |= gate.interrupt;
                }
                *self.counter_mut(which) = counter;
            } else if delta.instructions > 0 {
                self.counter_mut(which).pause();
            }
        }
        if outcome.due != 0 {
            self.note_tagged(delta, stalls);
        }
        self.count_metrics(delta, stalls);
        self.count_uncore(delta);
        if self.hwcr & write::HWCR_IRPERF != 0 {
            self.instructions_retired = self.instructions_retired.wrapping_add(delta.instructions);
        }
        self.latch(overflowed);
        self.freeze_late(delta.instructions);
        if self.is(Mutation::Shared) {
            self.records = self.records.wrapping_add(delta.instructions);
        }
        if pmi && self.is(Mutation::PmiDropped) {
            self.records += 1;
            pmi = !self.records.is_multiple_of(3);
        }
        if pmi {
            self.freeze_on_pmi();
        }
        self.storms |= pmi && self.is(Mutation::PmiNeverStops);
        outcome.overflowed |= overflowed;
        outcome.pmi |= pmi || self.is(Mutation::PmiNeverStops) && self.storms;
    }

    /// A count with the planted fault, if any.
    fn planted_count(&self, which: Which, selection: Selection, count: u64) -> u64 {
        let reference = selection.has_clock();
        let clock = reference || selection.has_bulk(Bulk::Cycles);
        let first = which == Which::General(0);
        let still = self.is(Mutation::AllStandStill)
            || first && self.is(Mutation::CounterStandsStill)
            || clock && self.is(Mutation::ClocksStandStill)
            || reference && self.is(Mutation::ReferenceStandsStill);
        match still {
            true => 0,
            false if first && self.is(Mutation::CountsTwice) => count.wrapping_mul(2),
            false if which == Which::Fixed(3) && self.is(Mutation::SlotsTwice) => {
                count.wrapping_mul(2)
            }
            false
                if matches!(which, Which::General(_))
                    && selection == Selection::bulk(Bulk::Slots)
                    && self.is(Mutation::SlotsEventDiffers) =>
            {
                count - count / u64::from(self.spec().width)
            }
            false => count,
        }
    }

    /// A count of branches without those that a planted fault loses.
    fn planted_loss(
        &self,
        counter: &mut super::Counter,
        selection: Selection,
        delta: &Delta,
        count: u64,
    ) -> u64 {
        /// Instructions from one slice of somebody else to the next, and of each slice.
        const SHARED: [u64; 2] = [256, 32];
        if selection.has_clock() || !selection.has(Occurrence::JccTakenBackward) {
            return count;
        }
        if self.is(Mutation::LosesATenth) {
            return count - counter.tenth(count);
        }
        if self.is(Mutation::Shared) {
            let [period, slice] = SHARED;
            // Instructions up to one that are in slices.
            let lost = |end: u64| end / period * slice + (end % period).min(slice);
            let lost = lost(self.records.wrapping_add(delta.instructions)) - lost(self.records);
            return count - (count * lost).checked_div(delta.instructions).unwrap_or(0);
        }
        count
    }

    /// Sets status bits, whether an interrupt is wanted or not.
    fn latch(&mut self, overflowed: u64) {
        let mut lost = 0;
        if self.is(Mutation::StatusBitNeverSets) {
            lost |= 1;
        }
        if self.is(Mutation::FixedStatusNeverSets) {
            lost |= ((1 << MAX_FIXED) - 1) << 32;
        }
        if self.has_global() {
            self.status |= overflowed & !lost;
        }
    }

    /// Whether PERF_METRICS counts, and in which rings: those of fixed counter 3, with both enables, unless frozen.
    pub(super) fn metrics_rings(&self) -> RingMask {
        const ENABLE: u64 = 1 << 48;
        let enabled = self.global_control & ENABLE != 0 || self.is(Mutation::MetricsEnableIgnored);
        if !enabled || self.spec().fixed() & 8 == 0 || self.metrics_fields() == 0 {
            return RingMask::NONE;
        }
        self.gate(Which::Fixed(3)).rings
    }

    /// Fields of PERF_METRICS; 0: there is no such register.
    pub(super) fn metrics_fields(&self) -> u8 {
        self.spec().intel().map_or(0, |intel| intel.metrics)
    }

    /// Counts the slots of PERF_METRICS, and sets its status bit with the one that it does not hold.
    fn count_metrics(&mut self, delta: &Delta, stalls: Stalls) {
        if self.metrics_rings().contains(delta.ring) {
            let shape = Shape {
                width: self.spec().width,
                fields: self.metrics_fields(),
                cycles: self.timing.instruction_cycles.get(),
            };
            let most = if self.is(Mutation::MetricsOverflowEarly) { EARLY } else { MOST_SLOTS };
            let overflowed = self.metrics.add_up_to(delta, stalls, shape, most);
            self.latch(u64::from(overflowed) << 48);
        }
    }

    /// What PERF_METRICS reads, with the planted fault, if any.
    pub(super) fn metrics_value(&self) -> u64 {
        let value = self.metrics.value();
        if self.is(Mutation::MetricsSumTooSmall) {
            // The back end loses a quarter of what it has.
            let backend = value >> 24 & 0xFF;
            return value & !(0xFF << 24) | (backend - backend / 4) << 24;
        }
        if self.is(Mutation::MetricsSecondLevelWrong) && self.metrics_fields() >= 8 {
            return value | 0xFF << 56;
        }
        if self.is(Mutation::MetricsMispredictsLost) {
            let field = |index: u32| value >> (8 * index) & 0xFF;
            return value & !(0xFF << 24 | 0xFF << 8) | (field(1) + field(3)).min(0xFF) << 24;
        }
        if self.is(Mutation::MetricsRetiringLost) {
            // It is taken for the back end's.
            let field = |index: u32| value >> (8 * index) & 0xFF;
            return value & !(0xFF << 24 | 0xFF) | (field(0) + field(3)).min(0xFF) << 24;
        }
        value
    }

    pub(super) fn counter(&self, which: Which) -> &Counter {
        match which {
            Which::General(n) => &self.counters[n],
            Which::Fixed(n) => &self.fixed[n],
            Which::IbsFetch | Which::IbsOp => self.ibs.counter(which),
        }
    }

    pub(super) fn counter_mut(&mut self, which: Which) -> &mut Counter {
        match which {
            Which::General(n) => &mut self.counters[n],
            Which::Fixed(n) => &mut self.fixed[n],
            Which::IbsFetch | Which::IbsOp => self.ibs.counter_mut(which),
        }
    }

    pub(super) fn bits(&self, which: Which) -> u8 {
        match which {
            Which::General(_) => self.counter_bits(),
            Which::Fixed(_) => self.fixed_bits(),
            Which::IbsFetch | Which::IbsOp => super::ibs::BITS,
        }
    }
}
