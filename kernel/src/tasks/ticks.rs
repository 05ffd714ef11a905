//! When the timer comes, and how far apart it really came.

use super::{Cause, Timer};
use crate::random::Random;
use alloc::vec::Vec;
use protocol::job::workload::Workload;
use protocol::record::Ticks;

/// Says when the next tick is to come.
#[derive(Debug)]
pub struct Ticker {
    /// TSC ticks from one to the next; 0: none comes.
    interval: u64,
    /// The same as the workload asks.
    asked: u64,
    random: Option<Random>,
}

/// Longest interval that is made out of a shorter one, in TSC ticks: some seconds.
const LONGEST: u64 = 1 << 34;

impl Ticker {
    /// The ticks that `workload` asks for on processor `cpu`: each has a series of its own.
    #[must_use]
    pub fn new(workload: &Workload, tsc_hz: u64, cpu: u16) -> Self {
        let tsc = u128::from(workload.tick_ns) * u128::from(tsc_hz) / 1_000_000_000;
        let interval = if workload.tick_ns == 0 { 0 } else { (tsc as u64).max(2) };
        let seed = |seed: u64| seed.wrapping_add(u64::from(cpu) << 32);
        let random = workload.jitter.map(|jitter| Random::new(seed(jitter)));
        Self { interval, asked: interval, random }
    }

    /// Ticks come half as often from now on. Returns whether they do.
    pub fn lengthen(&mut self) -> bool {
        let longer = self.ticks() && self.interval < LONGEST;
        if longer {
            self.interval *= 2;
        }
        longer
    }

    /// The interval, in TSC ticks, if it is longer than was asked.
    #[must_use]
    pub fn lengthened(&self) -> Option<u64> {
        (self.interval != self.asked).then_some(self.interval)
    }

    /// Whether there are ticks.
    #[inline]
    #[must_use]
    pub const fn ticks(&self) -> bool {
        self.interval > 0
    }

    /// Whether each tick has to ask when the next one comes.
    #[inline]
    #[must_use]
    pub const fn asks(&self) -> bool {
        self.random.is_some()
    }

    /// What the timer is to do after `cause`.
    pub fn timer(&mut self, cause: Cause) -> Timer {
        match (cause, &mut self.random) {
            (Cause::Start, None) => Timer::Every(self.interval),
            (Cause::Start | Cause::Tick | Cause::Stall, Some(random)) => {
                Timer::Once(self.interval / 2 + random.bits() % (self.interval + 1))
            }
            _ => Timer::Leave,
        }
    }
}

/// Ticks in a row at which no task had got on, that are too many. One tick may be pending when a task gets the processor.
const TOO_MANY: u32 = 8;

/// Notices that the tasks do not get on, because the next tick is due before the kernel has dealt with one.
#[derive(Debug, Default)]
pub struct Stalls(u32);

impl Stalls {
    /// Returns whether there have been too many.
    #[inline]
    pub fn note(&mut self, cause: Cause) -> bool {
        self.0 = if cause == Cause::Stall { self.0 + 1 } else { 0 };
        let too_many = self.0 == TOO_MANY;
        if too_many {
            self.0 = 0;
        }
        too_many
    }
}

/// Intervals that are kept.
const KEPT: usize = 4_096;

/// Times between ticks, without allocating as they come: of more than fit, every second is forgotten, and from then on
/// only every second, fourth, ... is kept.
#[derive(Debug)]
pub struct Intervals {
    count: u64,
    last: u64,
    min: u64,
    max: u64,
    kept: Vec<u64>,
    /// One of so many is kept.
    every: u64,
}

impl Default for Intervals {
    fn default() -> Self {
        Self::new()
    }
}

impl Intervals {
    /// No tick has come.
    #[must_use]
    pub fn new() -> Self {
        Self { count: 0, last: 0, min: u64::MAX, max: 0, kept: Vec::with_capacity(KEPT), every: 1 }
    }

    /// Takes a tick at TSC `now`. Always inlined: a call of its own costs a tick 15 instructions.
    #[inline(always)]
    pub fn add(&mut self, now: u64) {
        let before = self.count;
        self.count += 1;
        let interval = now.wrapping_sub(self.last);
        self.last = now;
        if before == 0 {
            return;
        }
        self.min = self.min.min(interval);
        self.max = self.max.max(interval);
        // It is a power of two.
        if (before - 1) & (self.every - 1) != 0 {
            return;
        }
        if self.kept.len() == KEPT {
            // 4,096 is even, so this one is one that is kept still.
            self.forget();
        }
        self.kept.push(interval);
    }

    /// Every second of those that are kept goes.
    #[cold]
    #[inline(never)]
    fn forget(&mut self) {
        let mut index = 0;
        self.kept.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.every *= 2;
    }
}

/// What the intervals of several processors came to together.
#[must_use]
pub fn together<'a>(all: impl Iterator<Item = &'a Intervals> + Clone) -> Ticks {
    let count = all.clone().map(|one| one.count).sum();
    let mut kept: Vec<u64> = all.clone().flat_map(|one| one.kept.iter().copied()).collect();
    kept.sort_unstable();
    let Some(&median) = kept.get(kept.len() / 2) else {
        return Ticks { count, ..Ticks::default() };
    };
    let min = all.clone().map(|one| one.min).min().unwrap_or_default();
    Ticks {
        count,
        min,
        median,
        max: all.map(|one| one.max).max().unwrap_or_default(),
        lengthened: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::job::workload::Workload;

    fn ticker(tick_ns: u64, jitter: Option<u64>) -> Ticker {
        Ticker::new(&Workload { tasks: vec![], tick_ns, jitter }, 2_000_000_000, 0)
    }

    #[test]
    fn without_jitter_ticks_are_periodic_and_with_it_they_fill_the_range() {
        assert_eq!(ticker(1_000, None).timer(Cause::Start), Timer::Every(2_000));
        assert_eq!(ticker(1_000, None).timer(Cause::Tick), Timer::Leave);
        assert!(!ticker(0, None).ticks());
        for seed in [0, 1, 2, u64::MAX] {
            let mut ticker = ticker(1_000, Some(seed));
            let mut draws: Vec<u64> = (0..2_000)
                .map(|_| match ticker.timer(Cause::Tick) {
                    Timer::Once(draw) => draw,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(ticker.timer(Cause::Yield), Timer::Leave);
            draws.sort_unstable();
            assert!(draws[0] >= 1_000 && draws[1_999] <= 3_000);
            // Quartiles of an even distribution, within a tenth of the range.
            for (index, wanted) in [(500, 1_500), (1_000, 2_000), (1_500, 2_500)] {
                assert!(draws[index].abs_diff(wanted) < 200, "{seed}: {}", draws[index]);
            }
        }
    }

    #[test]
    fn intervals_keep_their_median_over_any_number_of_ticks() {
        assert_eq!(together([&Intervals::new()].into_iter()), Ticks::default());
        let mut intervals = Intervals::new();
        let (mut now, total) = (77, 100_000_u64);
        intervals.add(now);
        for index in 0..total {
            // Growing from 1,000 to 1,999, so that early and late ones have to count the same, and one that stands out.
            now += if index == 5 { 9 } else { 1_000 + index / 100 };
            intervals.add(now);
        }
        let ticks = together([&intervals].into_iter());
        assert_eq!((ticks.count, ticks.min, ticks.max), (total + 1, 9, 1_999));
        assert!(ticks.median.abs_diff(1_500) <= 5, "{}", ticks.median);
        assert!(intervals.kept.len() <= KEPT && intervals.kept.capacity() == KEPT);
    }
}
