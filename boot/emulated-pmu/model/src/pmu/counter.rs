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

    /// How many of these and earlier events make another ten: a planted fault. No clock is counted, so the remainder is free.
    pub(crate) fn tenth(&mut self, count: u64) -> u64 {
        let sum = u64::from(self.phase) + count;
        self.phase = (sum % 10) as u32;
        sum / 10
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

/// What happens in one cycle of each of the four kinds: an instruction retires; it is still being executed; a
/// mispredicted branch is being recovered from; a load is being waited for.
struct PerCycle {
    retiring: u64,
    executing: u64,
    mispredicted: u64,
    memory: u64,
}

fn per_cycle(selection: Selection, ring: Ring, slots: u8) -> PerCycle {
    let slots = u64::from(slots);
    let mut sum = PerCycle { retiring: 0, executing: 0, mispredicted: 0, memory: 0 };
    let mut add = |bulk, retiring, executing, mispredicted, memory| {
        if selection.has_bulk(bulk) {
            sum.retiring += retiring;
            sum.executing += executing;
            sum.mispredicted += mispredicted;
            sum.memory += memory;
        }
    };
    let user = u64::from(ring == Ring::User);
    add(Bulk::Instructions, 1, 0, 0, 0);
    add(Bulk::Cycles, 1, 1, 1, 1);
    add(Bulk::UserCycles, user, user, user, user);
    add(Bulk::KernelCycles, 1 - user, 1 - user, 1 - user, 1 - user);
    add(Bulk::Slots, slots, slots, slots, slots);
    add(Bulk::BadSpeculationSlots, 0, 0, slots, 0);
    add(Bulk::BackendSlots, slots - 1, slots, 0, slots);
    add(Bulk::MemorySlots, 0, 0, 0, slots);
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
            sum -= delta.count(Occurrence::JccNotTaken);
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
                .wrapping_add(each.executing.wrapping_mul(stalls.execution))
                .wrapping_add(each.mispredicted.wrapping_mul(stalls.mispredict))
                .wrapping_add(each.memory.wrapping_mul(stalls.memory))
                .wrapping_add(seen)
                .wrapping_add(extra);
        };
        // Cycles that are alike, in order: so often, so many executing and then one retiring with so many occurrences; then
        // the stalls. An occurrence between two instructions has a cycle to itself, which no clock sees.
        let instructions = delta.instructions.max(u64::from(seen > 0));
        let share = seen.checked_div(instructions).unwrap_or(0);
        let odd = seen.checked_rem(instructions).unwrap_or(0);
        let base = if delta.instructions == 0 { 0 } else { each.retiring };
        let executing = stalls.execution.checked_div(delta.instructions).unwrap_or(0);
        let mut condition = Condition { threshold, above: counter.above, sum: 0 };
        condition.pairs(odd, (executing, each.executing), base + share + 1);
        condition.pairs(instructions - odd, (executing, each.executing), base + share);
        condition.run(stalls.memory, each.memory);
        condition.run(stalls.mispredict, each.mispredicted);
        counter.above = condition.above;
        let sum = condition.sum;
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
            let cycles = self.clock(selection).cycles_until(counter.phase, left);
            return cycles
                .map(|cycles| cycles.div_ceil(self.timing.instruction_cycles.get().into()));
        }
        let each = per_cycle(selection, ring, self.width_slots);
        let executing = u64::from(self.timing.instruction_cycles.get()) - 1;
        let Some(threshold) = threshold else {
            let rate = each.retiring.saturating_add(each.executing.saturating_mul(executing));
            return (rate > 0).then(|| left.div_ceil(rate));
        };
        // What one instruction counts, and then every further one, which finds the condition as the first has left it.
        let mut condition = Condition { threshold, above: counter.above, sum: 0 };
        condition.pairs(1, (executing, each.executing), each.retiring);
        let first = core::mem::take(&mut condition.sum);
        if first >= left {
            return Some(1);
        }
        condition.pairs(1, (executing, each.executing), each.retiring);
        let further = condition.sum;
        (further > 0).then(|| 1 + (left - first).div_ceil(further))
    }
}

/// A counter's condition over cycles.
struct Condition {
    threshold: Threshold,
    /// In the last cycle.
    above: bool,
    /// What was counted.
    sum: u64,
}

impl Condition {
    /// Cycles with so many occurrences each.
    fn run(&mut self, cycles: u64, occurrences: u64) {
        if cycles == 0 {
            return;
        }
        let met = self.threshold.met(occurrences);
        self.sum = self.sum.wrapping_add(match (met, self.threshold.edge) {
            (false, _) => 0,
            (true, false) => cycles,
            (true, true) => u64::from(!self.above),
        });
        self.above = met;
    }

    /// `count` times cycles of the one kind, and then one with `occurrences`.
    fn pairs(&mut self, count: u64, (cycles, before): (u64, u64), occurrences: u64) {
        if cycles == 0 {
            return self.run(count, occurrences);
        }
        if count == 0 {
            return;
        }
        self.run(cycles, before);
        self.run(1, occurrences);
        // The others are alike, as each begins where the one before it ended.
        let begun = self.sum;
        if count > 1 {
            self.run(cycles, before);
            self.run(1, occurrences);
            let each = self.sum.wrapping_sub(begun);
            self.sum = begun.wrapping_add(each.wrapping_mul(count - 1));
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
