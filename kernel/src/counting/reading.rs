//! Reading all counts of a bound group at once.
//!
//! What a read needs is worked out beforehand: for each counter its register, and what its value is added to. As long as
//! nothing has overflowed since then, that is all there is to do. Whether something has is asked of the counters' interrupt,
//! of the status register, and of each value, which must not be less than the last one. Then the counts are put together
//! anew ([`super::VirtualCounter`]), and the next read is planned from there.

use super::access::Access;
use super::charged::Charged;
use super::{Count, Counts, VirtualCounter};
use alloc::vec::Vec;
use arch::msr::Msr;
use arch::pmu::Driver;

/// No interrupt has this number: nothing is planned.
pub(super) const NEVER: u64 = u64::MAX;

/// One counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Bits of its value.
    mask: u64,
    /// The count when the counter was at 0, modulo 2^64.
    base: u64,
    /// Its value at the last read: it wrapped if it is less now.
    last: u64,
    pub msr: Msr,
    /// The request that it counts.
    request: u32,
}

/// One step of a read is one index further.
const _: () = assert!(size_of::<Line>() == size_of::<Count>());

impl Line {
    /// The request that it counts.
    #[inline]
    pub const fn request(&self) -> usize {
        self.request as usize
    }

    /// The count now; `None`: the counter has wrapped, or cannot be read.
    #[inline]
    pub fn read(&mut self, machine: &mut impl Access) -> Option<u64> {
        let value = machine.read(self.msr)? & self.mask;
        if value < self.last {
            return None;
        }
        self.last = value;
        Some(self.base.wrapping_add(value))
    }

    /// The count when the counter was at 0.
    #[inline]
    pub const fn at_zero(&self) -> u64 {
        self.base
    }

    /// The counter is at 0, and the count at `raw`.
    #[inline]
    pub fn begin(&mut self, raw: u64) {
        (self.base, self.last) = (raw, 0);
    }
}

/// The plan of a group.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// In the order of their requests.
    pub lines: Vec<Line>,
    /// The set's number, if each of its requests has a line and was counted all the time that the set counted; else 0, which
    /// no set has.
    whole: u64,
    /// Status register, and the bits in it that are counters of ours.
    status: Msr,
    bits: u64,
    /// The counters' interrupts up to which wraps are part of the bases.
    interrupts: u64,
    /// TSC from which on the times go.
    since: u64,
    /// Where `whole`: that time less the TSC.
    elapsed: u64,
}

impl Reading {
    /// Room for so many requests.
    pub fn with_capacity(requests: usize) -> Self {
        let lines = Vec::with_capacity(requests);
        let (status, bits) = (Msr(0), 0);
        Self { lines, whole: 0, status, bits, interrupts: NEVER, since: 0, elapsed: 0 }
    }

    /// What was planned does not hold any more.
    #[inline]
    pub fn discard(&mut self) {
        self.interrupts = NEVER;
    }

    /// There is no plan for this group.
    pub fn plan_nothing(&mut self) {
        self.lines.clear();
        self.whole = 0;
        self.discard();
    }

    /// Plans anew. `interrupts`: those before the counts of `active`, which are in the order of their requests, were put
    /// together; `since`: when their times were accounted for. They run from then on.
    pub fn plan<'a>(
        &mut self,
        (driver, set): (&Driver, u64),
        active: impl Iterator<Item = (usize, &'a VirtualCounter)>,
        totals: &[Count],
        [interrupts, since]: [u64; 2],
    ) {
        self.lines.clear();
        let has = driver.capabilities();
        self.bits = 0;
        for (request, count) in active {
            let counter = count.counter();
            let (last, base) = count.at_last_fold();
            let (msr, mask) = (driver.layout().counter(counter), has.mask(counter));
            self.lines.push(Line { mask, base, last, msr, request: request as u32 });
            self.bits |= counter.bit();
        }
        self.bits &= !has.no_overflow;
        let time = totals.first().map_or(0, |first| first.enabled);
        let all_the_time = |count: &Count| [count.counted, count.enabled] == [time; 2];
        let whole = self.lines.len() == totals.len() && totals.iter().all(all_the_time);
        self.whole = if whole { set } else { 0 };
        self.elapsed = time.wrapping_sub(since);
        // Without a status register a wrap is found by its being less than at the last fold, so each read has to be one.
        let Some(global) = driver.layout().global else { return self.discard() };
        (self.status, self.interrupts, self.since) = (global.status, interrupts, since);
    }

    /// The group goes on at `since`, all lines at their [`Line::begin`]. It is one of several, and so not `whole`.
    #[inline]
    pub fn resume(&mut self, interrupts: u64, since: u64) {
        (self.interrupts, self.since) = (interrupts, since);
    }

    /// Whether the plan still holds: no interrupt has found an overflow, and none waits to be found. `others`: bits of the
    /// status that are not to be set either.
    #[inline]
    pub fn is_quiet(&self, machine: &mut impl Access, others: u64) -> bool {
        let Some(status) = machine.read(self.status) else { return false };
        let found = status & (self.bits | others);
        found | (machine.interrupts() ^ self.interrupts) == 0
    }

    /// Whether the group is all of the set that `counts` is of, each request counted all the time that the set counted.
    #[inline]
    pub fn is_whole(&self, counts: &Counts) -> bool {
        counts.is_of(self.whole)
    }

    /// Reads the counts of all requests, the group being the whole set. Returns whether that is all: else something has
    /// overflowed, or nothing is planned, and what is in `to` is of no use.
    #[inline]
    pub fn run(&mut self, machine: &mut impl Access, now: u64, to: &mut [Count]) -> bool {
        let time = now.wrapping_add(self.elapsed);
        if self.lines.len() != to.len() {
            return false;
        }
        for (line, count) in self.lines.iter_mut().zip(to) {
            let Some(raw) = line.read(machine) else { return false };
            *count = Count { raw, counted: time, enabled: time };
        }
        // Behind the values: a counter whose bit is set has wrapped before or after its read.
        self.is_quiet(machine, 0)
    }

    /// Reads them where some requests wait for their turn, or have not been counted all the time. `totals` and `timed`: all
    /// counts when they were put together, and whether the set's time is each one's as well.
    pub fn run_some(
        &mut self,
        machine: &mut impl Access,
        now: u64,
        totals: &[Count],
        timed: &[bool],
        to: &mut [Count],
    ) -> bool {
        if self.interrupts == NEVER {
            return false;
        }
        let ticks = now.wrapping_sub(self.since);
        for ((count, total), timed) in to.iter_mut().zip(totals).zip(timed) {
            let enabled = total.enabled + if *timed { ticks } else { 0 };
            *count = Count { enabled, ..*total };
        }
        for line in &mut self.lines {
            let (Some(raw), Some(count)) = (line.read(machine), to.get_mut(line.request())) else {
                return false;
            };
            (count.raw, count.counted) = (raw, count.counted.wrapping_add(ticks));
        }
        self.is_quiet(machine, 0)
    }

    /// The group's turn is over after `ticks`, its counters stand still and nothing has overflowed: the counts go to `totals`.
    /// Returns whether that is all: else no times were counted.
    #[inline(always)]
    pub fn end(&mut self, machine: &mut impl Access, ticks: u64, totals: &mut [Count]) -> bool {
        for index in 0..self.lines.len() {
            let line = &mut self.lines[index];
            let (Some(raw), Some(total)) = (line.read(machine), totals.get_mut(line.request()))
            else {
                self.take_back(index, ticks, totals);
                return false;
            };
            (total.raw, total.counted) = (raw, total.counted.wrapping_add(ticks));
        }
        true
    }

    /// The time of the first `lines` was not counted.
    #[cold]
    fn take_back(&self, lines: usize, ticks: u64, totals: &mut [Count]) {
        for line in &self.lines[..lines] {
            let total = &mut totals[line.request()];
            total.counted = total.counted.wrapping_sub(ticks);
        }
    }

    /// Adds what was counted since `last` to `to`, and brings `last` up to date, the group being the whole set. Returns
    /// whether that is all: else what is missing lies between `last` and the counts, as before.
    #[inline(always)]
    pub fn charge(
        &mut self,
        machine: &mut impl Access,
        now: u64,
        last: &mut Charged,
        to: &mut [Count],
    ) -> bool {
        let Some(before) = last.time() else { return false };
        let time = now.wrapping_add(self.elapsed);
        let passed = time.wrapping_sub(before);
        let raw = last.raw();
        if self.lines.len() != raw.len() || self.lines.len() != to.len() {
            return false;
        }
        let mut charged = 0;
        let all = 'lines: {
            for ((line, last), to) in self.lines.iter_mut().zip(raw).zip(to) {
                let Some(raw) = line.read(machine) else { break 'lines false };
                to.raw = to.raw.wrapping_add(raw).wrapping_sub(last.raw);
                to.counted = to.counted.wrapping_add(passed);
                to.enabled = to.enabled.wrapping_add(passed);
                last.raw = raw;
                charged += 1;
            }
            true
        };
        if all && self.is_quiet(machine, 0) {
            last.pass(time);
            return true;
        }
        // As before: `pass` was not called.
        last.part(charged, [time, last.time().unwrap_or_default()]);
        false
    }
}
