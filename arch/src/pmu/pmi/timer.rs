//! Sampling at intervals of time: the local APIC's timer as one more source of samples.

use super::serviced;
use crate::apic::{self, Register};
use crate::interrupts;

/// Vector of the timer that samples.
pub const TIMER_VECTOR: u8 = 0xe1;
/// Slot that counts its ticks.
pub const TIMER_SLOT: usize = 63;
/// Its bit in a sample's status, which is not a counter's.
pub const TIMER_BIT: u64 = 1 << TIMER_SLOT;

/// LVT timer: periodic (bits 18:17, SDM vol. 3, 10.5.1).
const PERIODIC: u32 = 0b01 << 17;
/// LVT mask bit.
const MASKED: u32 = 1 << 16;

/// Ticks in a row that come late before the interval is doubled.
const LATE: u32 = 4;

/// When the first ticks came, and whether they come late: then the handler takes as long as the interval, and the
/// machine would do nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Where the first ticks' times go, how many fit, and how many are there.
    tsc: *mut u64,
    room: usize,
    len: usize,
    /// The interval in ticks of the TSC; 0: not watched.
    interval: u64,
    last: u64,
    /// Where the last tick came.
    place: u64,
    late: u32,
    /// How often the interval was doubled.
    pub doubled: u32,
}

impl Times {
    /// None yet, and no interval to watch.
    pub const EMPTY: Self = Self {
        tsc: core::ptr::null_mut(),
        room: 0,
        len: 0,
        interval: 0,
        last: 0,
        place: 0,
        late: 0,
        doubled: 0,
    };

    /// Watches an interval of so many ticks of the TSC, and keeps the times of the first ticks in `kept`, which has to
    /// outlive the block's use.
    #[must_use]
    pub fn watching(interval: u64, kept: &mut [u64]) -> Self {
        Self { tsc: kept.as_mut_ptr(), room: kept.len(), interval, ..Self::EMPTY }
    }

    pub(super) fn clear(&mut self) {
        let Self { tsc, room, interval, .. } = *self;
        *self = Self { tsc, room, interval, ..Self::EMPTY };
    }

    /// A tick at `now`, in front of the instruction at `place`. Says whether the interval is to be doubled: where nothing
    /// gets on between two ticks, the next one is always due already, and that it is late at all is enough.
    pub(super) fn add(&mut self, now: u64, place: u64) -> bool {
        if self.len < self.room {
            // SAFETY: within the slice that `watching` took.
            unsafe { self.tsc.add(self.len).write(now) };
            self.len += 1;
        }
        let interval = self.interval << self.doubled;
        let allowed = if place == self.place { interval / 256 } else { interval / 4 };
        let late = self.last != 0 && now.wrapping_sub(self.last) > interval + allowed;
        (self.last, self.place) = (now, place);
        self.late = if late && self.interval != 0 { self.late + 1 } else { 0 };
        if self.late < LATE || self.doubled >= 16 {
            return false;
        }
        (self.late, self.last) = (0, 0);
        self.doubled += 1;
        true
    }

    /// TSC at the first ticks.
    #[must_use]
    pub fn seen(&self) -> &[u64] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: so many were written to the slice that `watching` took.
        unsafe { core::slice::from_raw_parts(self.tsc, self.len) }
    }
}

/// What the timer can do about an interval that is requested.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Interval {
    /// Value of the initial count.
    pub count: u32,
    /// The divider's power of two, 0 to 7.
    pub divider: u8,
    /// The interval that these make, in nanoseconds, rounded.
    pub ns: u64,
}

impl Interval {
    /// The interval nearest to `ns` of a timer that counts at `hz` before the divider. `None`: the timer does not
    /// count, or the interval is 0, shorter than one count, or longer than the timer can wait.
    #[must_use]
    pub fn nearest(ns: u64, hz: u64) -> Option<Self> {
        const SECOND: u128 = 1_000_000_000;
        let wanted = u128::from(ns) * u128::from(hz);
        for divider in 0..8u8 {
            let count = (wanted + (SECOND << divider >> 1)) / (SECOND << divider);
            if count == 0 {
                return None;
            }
            if let Ok(count) = u32::try_from(count) {
                let real = (u128::from(count) << divider) * SECOND;
                let ns = (real + u128::from(hz) / 2) / u128::from(hz);
                return Some(Self { count, divider, ns: ns as u64 });
            }
        }
        None
    }

    /// Value of the divide configuration register: bits 3, 1 and 0, where 0b111 divides by 1 and 0b000 by 2 (SDM
    /// vol. 3, figure 10-10).
    const fn configuration(self) -> u32 {
        let value = (self.divider as u32).wrapping_sub(1) & 0b111;
        (value & 0b100) << 1 | value & 0b11
    }
}

/// Starts the timer that samples, for the block that [`super::install`] took.
///
/// # Safety
/// Ring 0, interrupt table loaded, APIC on, its timer used by nobody else; a block installed until [`stop_timer`].
pub unsafe fn start_timer(interval: Interval) {
    // SAFETY: the table is loaded, the timer still masked; the entry leaves the interrupted code as it was.
    unsafe { interrupts::set_entry(TIMER_VECTOR, serviced::on_tick as *const () as u64) };
    apic::write(Register::TimerDivide, interval.configuration());
    apic::write(Register::LvtTimer, PERIODIC | u32::from(TIMER_VECTOR));
    apic::write(Register::TimerInitialCount, interval.count);
}

/// Stops it. Says whether it is the one that samples, of which a last tick may be waiting.
pub fn stop_timer() -> bool {
    let samples = apic::read(Register::LvtTimer) & 0xff == u32::from(TIMER_VECTOR);
    if samples {
        apic::write(Register::LvtTimer, MASKED | u32::from(TIMER_VECTOR));
        apic::write(Register::TimerInitialCount, 0);
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn m8_the_interval_is_rounded_to_what_the_timer_can_do() {
        let seen = Interval::nearest(1_000_000, 62_500_000).unwrap();
        assert_eq!(seen, Interval { count: 62_500, divider: 0, ns: 1_000_000 });
        // 16 ns a count.
        assert_eq!(Interval::nearest(1_001, 62_500_000).unwrap().ns, 1_008);
        assert_eq!(Interval::nearest(7, 62_500_000), None);
        assert_eq!(Interval::nearest(1_000, 0), None);
        // 2 counts of a clock of 7 Hz are 285,714,285.7 ns.
        assert_eq!(Interval::nearest(300_000_000, 7).unwrap().ns, 285_714_286);
        let long = Interval::nearest(100_000_000_000, 1_000_000_000).unwrap();
        assert_eq!((long.divider, long.ns), (5, 100_000_000_000));
        assert_eq!(Interval::nearest(u64::MAX, 1_000_000_000), None);
    }

    #[test]
    fn m8_ticks_that_come_late_again_and_again_double_the_interval() {
        let mut kept = [0; 3];
        let mut times = Times::watching(100, &mut kept);
        // On time, and once late.
        let steady = [1000, 1100, 1200, 1400, 1500].map(|now| times.add(now, now));
        assert_eq!((steady, times.doubled), ([false; 5], 0));
        let late: Vec<_> = (1..=5).map(|n| times.add(1500 + 130 * n, n)).collect();
        assert_eq!((late, times.doubled), (vec![false, false, false, true, false], 1));
        assert_eq!(times.seen(), [1000, 1100, 1200]);
        // 130 is not late any more.
        assert!((6..40).all(|n| !times.add(1500 + 130 * n, n)));
        assert!((0..40).all(|n| !{
            let mut none = Times::EMPTY;
            none.add(n * n, n)
        }));
    }

    /// Begun again, the interval is watched as before, and the first ticks are kept where they were.
    #[test]
    fn c5_ticks_begin_anew_with_their_interval_and_their_place() {
        let mut kept = [0; 3];
        let mut times = Times::watching(100, &mut kept);
        let late = |times: &mut Times| (1..=6).filter(|n| times.add(1000 + 200 * n, *n)).count();
        assert_eq!((late(&mut times), times.doubled), (1, 1));
        times.clear();
        assert_eq!((times.doubled, times.seen()), (0, &[][..]));
        assert_eq!((late(&mut times), times.doubled), (1, 1));
        assert_eq!(times.seen(), [1200, 1400, 1600]);
    }

    /// The handler takes a little longer than the interval, and nothing else is done.
    #[test]
    fn m8_ticks_that_let_nothing_get_on_double_the_interval() {
        let doubled = |place: fn(u64) -> u64, step: u64| {
            let mut times = Times::watching(1000, &mut []);
            for n in 1..=12 {
                times.add(step * n, place(n));
            }
            times.doubled
        };
        assert_eq!(doubled(|_| 7, 1010), 1);
        // On time in one place, as in a loop that waits; late by so little, but elsewhere each time.
        assert_eq!((doubled(|_| 7, 1003), doubled(|n| n, 1010)), (0, 0));
    }

    #[test]
    fn m8_the_divider_is_written_as_the_manual_draws_it() {
        let value = |divider| Interval { count: 1, divider, ns: 0 }.configuration();
        let all: Vec<u32> = (0..8).map(value).collect();
        assert_eq!(all, [0b1011, 0b0000, 0b0001, 0b0010, 0b0011, 0b1000, 0b1001, 0b1010]);
    }

    proptest! {
        #[test]
        fn m8_rounding_is_off_by_half_a_count_at_most(ns in 1u64..1 << 40, hz in 1u64..5_000_000_000) {
            let Some(interval) = Interval::nearest(ns, hz) else { return Ok(()) };
            let count_ns = 1e9 * f64::from(1 << interval.divider) / hz as f64;
            let off = (interval.ns as f64 - ns as f64).abs();
            prop_assert!(off <= count_ns / 2.0 + 1.5 + ns as f64 * 1e-12, "{interval:?} for {ns} at {hz}");
        }
    }

    /// SDM vol. 3, 10.5.1: bits 18:17 are the mode, 01 is periodic; bit 16 is the mask. Bit 63 of a status is not a counter's.
    #[test]
    fn the_fields_of_the_timers_entry_are_where_the_manual_has_them() {
        assert_eq!((PERIODIC, MASKED), (0x2_0000, 0x1_0000));
        assert_eq!(TIMER_BIT, 0x8000_0000_0000_0000);
    }
}
