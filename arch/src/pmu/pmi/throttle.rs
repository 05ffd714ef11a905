//! A limit of the rate of samples: whoever comes too fast gets a longer period, and the old one back when the rush is
//! over.

use super::block::Slot;

/// The limit and what became of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Throttle {
    /// Ticks of the TSC in which [`Throttle::most`] samples may come; 0: there is no limit.
    pub window: u64,
    /// Most samples in a window.
    pub most: u64,
    /// How often the periods were doubled.
    pub raised: u32,
    /// How often they were halved again.
    pub eased: u32,
    /// TSC when the current window began.
    began: u64,
    /// Samples in it.
    seen: u64,
}

impl Throttle {
    /// No limit.
    pub const NONE: Self = Self { window: 0, most: 0, raised: 0, eased: 0, began: 0, seen: 0 };

    /// At most `most` samples in `window` ticks of the TSC.
    #[must_use]
    pub const fn new(window: u64, most: u64) -> Self {
        Self { window, most, ..Self::NONE }
    }

    /// Whether there is a limit.
    #[must_use]
    pub const fn limits(&self) -> bool {
        self.window != 0
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.window, self.most);
    }

    /// A sample at `now`. Says whether it is one too many, or whether the last ones came so slowly that half the period
    /// stays well below the limit.
    #[inline]
    pub(super) fn judge(&mut self, now: u64) -> Pace {
        if !self.limits() {
            return Pace::Right;
        }
        let elapsed = now.wrapping_sub(self.began);
        let mut pace = Pace::Right;
        if elapsed >= self.window {
            // Less than a quarter of the limit: half the period makes it less than half. A sample began the window, even if
            // it was counted in the one before.
            let (seen, most) = (u128::from(self.seen.max(1)), u128::from(self.most));
            if seen * 4 * u128::from(self.window) < most * u128::from(elapsed) {
                pace = Pace::Slow;
            }
            (self.began, self.seen) = (now, 0);
        }
        self.seen += 1;
        if self.seen > self.most {
            // The longer periods get a window of their own.
            (self.began, self.seen) = (now, 0);
            pace = Pace::Fast;
        }
        pace
    }
}

/// How samples come, measured by a [`Throttle`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pace {
    /// Neither of the others.
    Right,
    /// Above the limit.
    Fast,
    /// Below a quarter of it.
    Slow,
}

impl Slot {
    /// Doubles the period, if the counter can be set so far back. It takes effect at the next overflow.
    pub(super) fn double(&mut self) -> bool {
        let preset = self.preset << 1 & self.width;
        // A write that extends a sign takes values whose upper bits, from 31 on, are all equal.
        let ones = match self.extends_sign {
            true => self.width & !0x7fff_ffff,
            false => (self.width >> 1) + 1,
        };
        // 2^width - 2p is twice 2^width - p, as long as the period fits.
        let fits = preset != 0 && preset & ones == ones;
        if !self.is_reloaded() || !fits {
            return false;
        }
        (self.preset, self.level) = (preset, self.level + 1);
        true
    }

    /// Halves the period if it was doubled. It takes effect at the next overflow.
    pub(super) fn halve(&mut self) -> bool {
        if self.level == 0 {
            return false;
        }
        // 2^width - p/2 is half of 2^width - p, and half of 2^width.
        self.preset = (self.preset >> 1) | ((self.width >> 1) + 1);
        self.level -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn m8_a_window_with_too_many_samples_exceeds_and_a_new_one_begins() {
        let mut throttle = Throttle::new(100, 2);
        let seen: Vec<_> =
            [10, 20, 30, 40, 50, 60, 200, 210].map(|now| throttle.judge(1000 + now)).into();
        // The first window is as long as the clock is old.
        let [slow, right, fast] = [Pace::Slow, Pace::Right, Pace::Fast];
        assert_eq!(seen, [slow, right, fast, right, right, fast, right, right]);
        let mut none = Throttle::NONE;
        assert_eq!(none.judge(5), Pace::Right);
    }

    #[test]
    fn m8_samples_below_a_quarter_of_the_limit_are_slow() {
        let pace = |step: u64| {
            let mut throttle = Throttle::new(100, 8);
            (throttle.began, throttle.seen) = (1000, 1);
            let mut last = Pace::Right;
            for sample in 1..=100 / step + 1 {
                last = throttle.judge(1000 + sample * step);
            }
            last
        };
        // 8, 2 and somewhat less than 2 in 100 ticks; one in ten windows.
        assert_eq!(
            [13, 50, 51, 1000].map(pace),
            [Pace::Right, Pace::Right, Pace::Slow, Pace::Slow]
        );
    }

    /// Two of eight in a window are a quarter, which is not below it; a limit that is cleared is as it was at first.
    #[test]
    fn m8_a_quarter_of_the_limit_is_not_slow_and_a_limit_begins_anew() {
        let paces = |times: &[u64]| {
            let mut throttle = Throttle::new(100, 8);
            (throttle.began, throttle.seen) = (1000, 1);
            times.iter().map(|time| throttle.judge(1000 + time)).collect::<Vec<_>>()
        };
        assert_eq!(paces(&[50, 100]), [Pace::Right, Pace::Right]);
        assert_eq!(paces(&[50, 101]), [Pace::Right, Pace::Slow]);
        let mut throttle = Throttle::new(100, 2);
        for time in 0..9 {
            throttle.judge(1000 + time);
        }
        (throttle.raised, throttle.eased) = (3, 1);
        assert_ne!(throttle, Throttle::new(100, 2));
        throttle.clear();
        assert_eq!(throttle, Throttle::new(100, 2));
    }

    proptest! {
        #[test]
        fn m8_doubling_a_period_keeps_to_what_the_counter_takes(
            bits in 33u32..=48, period in 1u64..1 << 47, legacy: bool,
        ) {
            let width = (1u64 << bits) - 1;
            let ones = if legacy { width & !0x7fff_ffff } else { 1 << (bits - 1) };
            let preset = period.wrapping_neg() & width;
            prop_assume!(preset & ones == ones);
            let mut slot = Slot { reload: 1, preset, width, extends_sign: legacy, ..Slot::default() };
            while slot.double() {
                prop_assert_eq!(slot.preset, (period << slot.level).wrapping_neg() & width);
                prop_assert!(slot.preset & ones == ones && slot.level < 64);
            }
            let mut eased = slot;
            while eased.halve() {
                prop_assert_eq!(eased.preset, (period << eased.level).wrapping_neg() & width);
            }
            prop_assert_eq!((eased.preset, eased.level), (preset, 0));
            // One more would not fit.
            let next = (u128::from(period) << (slot.level + 1)) as u64;
            prop_assert!(next.wrapping_neg() & width & ones != ones || next > width / 2);
        }
    }
}
