//! One timer for two purposes: the scheduler's ticks, and samples at intervals of time.
//!
//! A processor has one local APIC timer. The alternatives do not reach everywhere: a counter of cycles needs a PMU, and one that
//! counts while the processor halts; the HPET has few comparators, whose interrupts go through the I/O APIC to one
//! processor each. So the timer is set to whichever deadline comes first, and whoever takes its interrupt asks which are due.
//! Deadlines are times of the TSC, and follow each other by the interval, however late an interrupt is: they do not drift.

use super::Timer;

/// What is due at an interrupt of the timer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Due {
    /// The scheduler's tick.
    pub tick: bool,
    /// A sample.
    pub sample: bool,
}

/// The deadlines of one processor, in TSC ticks.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// The scheduler's next tick, and how long it was waited for.
    tick: Option<(u64, u64)>,
    /// There is one each time after so long; else each is asked for by itself.
    periodic: bool,
    /// The next sample.
    sample: u64,
    /// From one of them to the next.
    interval: u64,
}

/// An interrupt may come early by this part of the interval, as far as a timer's rate is known, and is the one that is due.
const EARLY: u64 = 256;

impl Deadlines {
    /// A sample every `interval` ticks of the TSC, the first one so long after `now`.
    #[must_use]
    pub fn new(interval: u64, now: u64) -> Self {
        let interval = interval.max(1);
        Self { tick: None, periodic: false, sample: now.wrapping_add(interval), interval }
    }

    /// Does at `now` what the scheduler says of the timer. Returns whether it is to be set anew.
    pub fn set(&mut self, timer: Timer, now: u64) -> bool {
        let after = |ticks: u64| Some((now.saturating_add(ticks), ticks));
        (self.tick, self.periodic) = match timer {
            Timer::Leave => return false,
            Timer::Once(ticks) => (after(ticks), false),
            Timer::Every(ticks) => (after(ticks.max(1)), true),
            Timer::Stop => (None, false),
        };
        true
    }

    /// The timer came at `now`: what is due, which is not any more then. One that is missed altogether is left out.
    pub fn take(&mut self, now: u64) -> Due {
        let interval = self.interval;
        let sample = is_due(self.sample, interval, now);
        if sample {
            self.sample = following(self.sample, interval, now);
        }
        let tick = self.tick.filter(|&(at, ticks)| is_due(at, ticks, now));
        if let Some((at, ticks)) = tick {
            self.tick = self.periodic.then(|| (following(at, ticks, now), ticks));
        }
        Due { tick: tick.is_some(), sample }
    }

    /// Ticks of the TSC from `now` to whatever is due first.
    #[must_use]
    pub fn next(&self, now: u64) -> u64 {
        let first = self.tick.map_or(self.sample, |(tick, _)| tick.min(self.sample));
        first.saturating_sub(now).max(1)
    }

    /// Samples come half as often from now on.
    pub fn double(&mut self) {
        self.interval = self.interval.saturating_mul(2);
    }
}

fn is_due(at: u64, interval: u64, now: u64) -> bool {
    at.saturating_sub(interval / EARLY) <= now
}

/// The deadline after `last`, with whatever has passed left out, as each is one interrupt at most.
fn following(last: u64, interval: u64, now: u64) -> u64 {
    let next = last.saturating_add(interval);
    if next > now { next } else { now.saturating_add(interval) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn m8_the_timer_is_set_to_whatever_is_due_first() {
        let mut deadlines = Deadlines::new(1_000, 10_000);
        assert_eq!(deadlines.next(10_000), 1_000);
        assert!(deadlines.set(Timer::Every(300), 10_000));
        assert!(!deadlines.set(Timer::Leave, 10_100));
        assert_eq!(deadlines.next(10_100), 200);
        let both = |tick, sample| Due { tick, sample };
        assert_eq!(deadlines.take(10_300), both(true, false));
        assert_eq!(deadlines.next(10_300), 300);
        // Late by 450: the tick at 10,600 and that at 10,900 are one.
        assert_eq!(deadlines.take(11_050), both(true, true));
        assert_eq!(deadlines.next(11_050), 300);
        // The samples do not drift: 12,000 is due, early by two.
        assert!(deadlines.set(Timer::Stop, 11_100));
        assert_eq!(deadlines.next(11_100), 900);
        assert_eq!(deadlines.take(11_998), both(false, true));
        assert_eq!(deadlines.next(11_998), 1_002);
        // What the scheduler asks for once is over then.
        assert!(deadlines.set(Timer::Once(100), 12_000));
        assert_eq!(deadlines.take(12_050), both(false, false));
        assert_eq!(deadlines.take(12_100), both(true, false));
        assert_eq!(deadlines.take(12_200), both(false, false));
        deadlines.double();
        assert_eq!(deadlines.take(13_000), both(false, true));
        assert_eq!(deadlines.next(13_000), 2_000);
        // A deadline that has passed is not waited for.
        assert_eq!(deadlines.next(99_000), 1);
    }

    proptest! {
        /// A timer that comes late by less than either interval: every tick and every sample comes once, in its own time.
        #[test]
        fn m8_ticks_and_samples_of_one_timer_are_those_of_two(
            interval in 600_u64..5_000, period in 600_u64..5_000, begin in 0_u64..1 << 40,
            late in prop::collection::vec(0_u64..500, 200),
        ) {
            let mut deadlines = Deadlines::new(interval, begin);
            deadlines.set(Timer::Every(period), begin);
            let (mut now, mut ticks, mut samples) = (begin, 0, 0);
            for late in late {
                now += deadlines.next(now) + late;
                let due = deadlines.take(now);
                prop_assert!(due.tick || due.sample);
                ticks += u64::from(due.tick);
                samples += u64::from(due.sample);
                // As many as have passed, by less than 500, or by a part of 256 too early.
                for (count, each) in [(ticks, period), (samples, interval)] {
                    prop_assert!(count * each <= now - begin + each / EARLY, "{count} of {each}");
                    prop_assert!((count + 1) * each > now - begin - each / EARLY, "{count} of {each}");
                }
            }
        }
    }
}
