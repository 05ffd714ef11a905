//! Reading all counts of a bound set at once.
//!
//! What a read needs is worked out beforehand: for each counter its register, and what its value is added to. As long as
//! nothing has overflowed since then, that is all there is to do. Whether something has is asked of the counters' interrupt,
//! of the status register, and of each value, which must not be less than the last one. Then the counts are put together
//! anew ([`super::VirtualCounter`]), and the next read is planned from there.

use super::{Count, Platform, VirtualCounter};
use alloc::vec::Vec;
use arch::msr::Msr;
use arch::pmu::Driver;

/// One counter.
#[derive(Clone, Copy, Debug)]
struct Line {
    msr: Msr,
    /// The request that it counts.
    request: usize,
    /// Bits of its value.
    mask: u64,
    /// The count when the counter was at 0, modulo 2^64.
    base: u64,
    /// Its value at the last read: it wrapped if it is less now.
    last: u64,
    /// The request's times when they were last accounted for.
    counted: u64,
    enabled: u64,
}

/// A request that has no counter now.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: usize,
    count: Count,
    /// Whether its set's time is its time as well.
    timed: bool,
}

/// The plan.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// It is that of the counters' state: nothing was folded or programmed since.
    is_valid: bool,
    lines: Vec<Line>,
    waiting: Vec<Waiting>,
    /// Status register, and the bits in it that are counters of ours.
    status: Option<Msr>,
    bits: u64,
    /// The counters' interrupts up to which wraps are part of the bases.
    interrupts: u64,
}

/// What a read needs of the machine.
pub trait Access {
    /// RDMSR of a register that a plan names; `None`: it raised an exception.
    fn msr(&mut self, msr: Msr) -> Option<u64>;
    /// See [`Platform::interrupts`].
    fn interrupts(&mut self) -> u64;
}

/// By the platform's own accesses, one by one.
pub struct OneByOne<'a, P: ?Sized>(pub &'a mut P);

impl<P: Platform + ?Sized> Access for OneByOne<'_, P> {
    fn msr(&mut self, msr: Msr) -> Option<u64> {
        self.0.rdmsr(msr).ok()
    }

    fn interrupts(&mut self) -> u64 {
        self.0.interrupts()
    }
}

impl Reading {
    /// Room for so many requests.
    pub(super) fn with_capacity(requests: usize) -> Self {
        let (lines, waiting) = (Vec::with_capacity(requests), Vec::with_capacity(requests));
        Self { lines, waiting, ..Self::default() }
    }

    /// What was planned does not hold any more.
    pub(super) fn discard(&mut self) {
        self.is_valid = false;
    }

    /// Plans anew. `interrupts`: those before the counts of `active` were put together.
    pub(super) fn plan<'a>(
        &mut self,
        driver: &Driver,
        active: impl Iterator<Item = (usize, &'a VirtualCounter)>,
        totals: &[Count],
        timed: &[bool],
        interrupts: u64,
    ) {
        self.lines.clear();
        self.waiting.clear();
        (self.bits, self.interrupts) = (0, interrupts);
        self.status = driver.layout().global.map(|global| global.status);
        let has = driver.capabilities();
        // Of the first 64 requests, those that have a line: a switch between groups plans anew, and is to be quick.
        let mut counted = 0_u64;
        for (request, count) in active {
            let counter = count.counter();
            let total = &totals[request];
            let (last, base) = count.at_last_fold();
            self.lines.push(Line {
                msr: driver.layout().counter(counter),
                request,
                mask: has.mask(counter),
                base,
                last,
                counted: total.counted,
                enabled: total.enabled,
            });
            self.bits |= counter.bit();
            if request < 64 {
                counted |= 1 << request;
            }
        }
        self.bits &= !has.no_overflow;
        for (request, (&count, &timed)) in totals.iter().zip(timed).enumerate() {
            let is_counted = match request {
                0..64 => counted & 1 << request != 0,
                _ => self.lines.iter().any(|line| line.request == request),
            };
            if !is_counted {
                self.waiting.push(Waiting { request, count, timed });
            }
        }
        // Without a status register a wrap is found by its being less than at the last fold, so each read has to be one.
        self.is_valid = self.status.is_some();
    }

    /// Reads the counts of all requests, `ticks` after their times were last accounted for. Returns whether that is all: else
    /// something has overflowed, or nothing is planned, and what is in `to` is of no use.
    #[inline]
    pub fn run(&mut self, machine: &mut impl Access, ticks: u64, to: &mut [Count]) -> bool {
        if !self.is_valid || machine.interrupts() != self.interrupts {
            return false;
        }
        for line in &mut self.lines {
            let Some(value) = machine.msr(line.msr) else { return false };
            let value = value & line.mask;
            if value < line.last {
                return false;
            }
            line.last = value;
            let Some(count) = to.get_mut(line.request) else { return false };
            count.raw = line.base.wrapping_add(value);
            count.counted = line.counted.wrapping_add(ticks);
            count.enabled = line.enabled.wrapping_add(ticks);
        }
        for waiting in &self.waiting {
            let Some(count) = to.get_mut(waiting.request) else { return false };
            *count = waiting.count;
            count.enabled += if waiting.timed { ticks } else { 0 };
        }
        // Behind the values: a counter whose bit is set has wrapped before or behind its read.
        let status = match self.status {
            None => 0,
            Some(status) => match machine.msr(status) {
                None => return false,
                Some(status) => status & self.bits,
            },
        };
        status == 0 && machine.interrupts() == self.interrupts
    }
}
