//! One counter, and how much of a delta it counts.

use crate::delta::Delta;
use crate::events::Meaning;
use crate::mutation::{Mutation, Planted};
use crate::occurrence::{Bulk, Occurrence};
use crate::selection::Selection;
use crate::selector::Threshold;
use crate::timing::{Ratio, Stalls, Timing};
use crate::{Ring, RingMask};

/// A counter's value and the state of its event logic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    /// The count, below 2^width.
    pub value: u64,
    /// Event select register; 0 for a fixed counter.
    pub selector: u64,
    /// What the selector means.
    pub meaning: Meaning,
    /// Remainder of a clock that the counter follows.
    phase: u32,
    /// The condition of the last cycle, for the edge detector.
    above: bool,
}

impl Counter {
    pub(crate) const RESET: Self =
        Self { value: 0, selector: 0, meaning: Meaning::Unused, phase: 0, above: false };

    /// A new value; the clock's remainder starts over.
    pub(crate) fn set(&mut self, value: u64) {
        self.value = value;
        self.phase = 0;
    }

    /// A new event; edge detector and clock start over.
    pub(crate) fn program(&mut self, selector: u64, meaning: Meaning) {
        self.selector = selector;
        self.meaning = meaning;
        self.phase = 0;
        self.above = false;
    }

    /// A stopped counter, or one whose ring is left, sees its condition end.
    pub(crate) fn pause(&mut self) {
        self.above = false;
    }

    /// Takes from the count: a planted fault.
    pub(crate) fn take(&mut self, count: u64, width_bits: u8) {
        self.value = self.value.wrapping_sub(count) & ((1 << width_bits) - 1);
    }

    /// Adds to the count; true if it went through 0.
    pub(crate) fn add(&mut self, count: u64, width_bits: u8, planted: Planted) -> bool {
        let limit = 1u128 << width_bits;
        let early = u128::from(planted.is(Mutation::OverflowOneEarly));
        let sum = u128::from(self.value) + u128::from(count);
        let overflowed = sum >= limit - early && (u128::from(self.value) < limit - early);
        self.value = if overflowed && planted.is(Mutation::StopsAtOverflow) {
            0
        } else {
            (sum & (limit - 1)) as u64
        };
        overflowed
    }
}

/// What all counters share while a delta is counted.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub timing: &'a Timing,
    pub width_slots: u8,
    pub planted: Planted,
}

/// What happens in one cycle of each of the three kinds: an instruction retires; a mispredicted
/// branch is being recovered from; a load is being waited for.
struct PerCycle {
    retiring: u64,
    mispredicted: u64,
    memory: u64,
}

fn per_cycle(selection: Selection, ring: Ring, slots: u8) -> PerCycle {
    let slots = u64::from(slots);
    let mut sum = PerCycle { retiring: 0, mispredicted: 0, memory: 0 };
    let mut add = |bulk, retiring, mispredicted, memory| {
        if selection.has_bulk(bulk) {
            sum.retiring += retiring;
            sum.mispredicted += mispredicted;
            sum.memory += memory;
        }
    };
    let user = u64::from(ring == Ring::User);
    add(Bulk::Instructions, 1, 0, 0);
    add(Bulk::Cycles, 1, 1, 1);
    add(Bulk::UserCycles, user, user, user);
    add(Bulk::KernelCycles, 1 - user, 1 - user, 1 - user);
    add(Bulk::Slots, slots, slots, slots);
    add(Bulk::BadSpeculationSlots, 0, slots, 0);
    add(Bulk::BackendSlots, slots - 1, 0, slots);
    add(Bulk::MemorySlots, 0, 0, slots);
    sum
}

impl Context<'_> {
    fn clock(&self, selection: Selection) -> Ratio {
        if selection.has_bulk(Bulk::ReferenceClock) {
            if self.planted.is(Mutation::ReferenceClockFollowsCore) {
                Ratio::new(1, 1)
            } else {
                self.timing.reference_clock
            }
        } else {
            self.timing.bus_clock
        }
    }

    fn occurrences(&self, selection: Selection, delta: &Delta) -> u64 {
        let mut sum = delta.sum(selection);
        if self.planted.is(Mutation::NotTakenLost) && selection.has(Occurrence::JccNotTaken) {
            sum -= u64::from(delta.count(Occurrence::JccNotTaken));
        }
        sum
    }

    /// How much of a delta a counter counts that is on in the delta's ring.
    pub(crate) fn count(
        &self,
        counter: &mut Counter,
        selection: Selection,
        threshold: Option<Threshold>,
        delta: &Delta,
        stalls: Stalls,
    ) -> u64 {
        if selection.has_clock() {
            let cycles = delta.instructions.saturating_add(stalls.cycles());
            return self.clock(selection).advance(&mut counter.phase, cycles);
        }
        let each = per_cycle(selection, delta.ring, self.width_slots);
        let seen = self.occurrences(selection, delta);
        let extra = u64::from(
            self.planted.is(Mutation::InstructionsOffByOne)
                && selection.has_bulk(Bulk::Instructions)
                && delta.instructions > 0,
        );
        let Some(threshold) = threshold else {
            return (each.retiring.wrapping_mul(delta.instructions))
                .wrapping_add(each.mispredicted.wrapping_mul(stalls.mispredict))
                .wrapping_add(each.memory.wrapping_mul(stalls.memory))
                .wrapping_add(seen)
                .wrapping_add(extra);
        };
        // Runs of cycles that are alike, in order. An occurrence between two instructions has a
        // cycle to itself, which no clock sees.
        let instructions = delta.instructions.max(u64::from(seen > 0));
        let share = seen.checked_div(instructions).unwrap_or(0);
        let odd = seen.checked_rem(instructions).unwrap_or(0);
        let base = if delta.instructions == 0 { 0 } else { each.retiring };
        let runs = [
            (odd, base + share + 1),
            (instructions - odd, base + share),
            (stalls.memory, each.memory),
            (stalls.mispredict, each.mispredicted),
        ];
        let mut sum = 0u64;
        for (cycles, occurrences) in runs {
            if cycles > 0 {
                let met = threshold.met(occurrences);
                sum = sum.wrapping_add(match (met, threshold.edge) {
                    (false, _) => 0,
                    (true, false) => cycles,
                    (true, true) => u64::from(!counter.above),
                });
                counter.above = met;
            }
        }
        sum.wrapping_add(extra)
    }

    /// Instructions in `ring`, none of them stalling, until the counter has counted `left` more.
    /// `None`: never, or not by instructions alone.
    pub(crate) fn instructions_until(
        &self,
        counter: &Counter,
        selection: Selection,
        threshold: Option<Threshold>,
        ring: Ring,
        left: u64,
    ) -> Option<u64> {
        if selection.has_clock() {
            return self.clock(selection).cycles_until(counter.phase, left);
        }
        let rate = per_cycle(selection, ring, self.width_slots).retiring;
        match threshold {
            None if rate == 0 => None,
            None => Some(left.div_ceil(rate)),
            Some(threshold) if !threshold.met(rate) => None,
            Some(threshold) if threshold.edge => (left == 1 && !counter.above).then_some(1),
            Some(_) => Some(left),
        }
    }
}

/// Where a counter counts now, and what it does at overflow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gate {
    /// Rings in which it counts; none if it is stopped.
    pub rings: RingMask,
    /// An overflow requests a PMI.
    pub interrupt: bool,
}
