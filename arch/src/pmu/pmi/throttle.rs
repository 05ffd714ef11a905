//! A limit of the rate of samples: whoever comes too fast gets a longer period.

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
    /// TSC when the current window began.
    began: u64,
    /// Samples in it.
    seen: u64,
}

impl Throttle {
    /// No limit.
    pub const NONE: Self = Self { window: 0, most: 0, raised: 0, began: 0, seen: 0 };

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

    /// A sample at `now`. Says whether it is one too many.
    #[inline]
    pub(super) fn exceeds(&mut self, now: u64) -> bool {
        if !self.limits() {
            return false;
        }
        if now.wrapping_sub(self.began) >= self.window {
            (self.began, self.seen) = (now, 0);
        }
        self.seen += 1;
        if self.seen <= self.most {
            return false;
        }
        // The longer periods get a window of their own.
        (self.began, self.seen) = (now, 0);
        true
    }
}

impl Slot {
    /// Doubles the period, if the counter can be set so far back. It takes effect at the next overflow.
    pub(super) fn double(&mut self) -> bool {
        let preset = self.preset << 1 & self.width;
        // 2^width - 2p is twice 2^width - p, as long as the period fits.
        let fits = preset != 0 && preset & self.ones == self.ones;
        if self.reload == 0 || !fits {
            return false;
        }
        (self.preset, self.level) = (preset, self.level + 1);
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
            [10, 20, 30, 40, 50, 60, 200, 210].map(|now| throttle.exceeds(1000 + now)).into();
        assert_eq!(seen, [false, false, true, false, false, true, false, false]);
        let mut none = Throttle::NONE;
        assert!(!none.exceeds(5));
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
            let mut slot = Slot { reload: 1, preset, width, ones, ..Slot::default() };
            while slot.double() {
                prop_assert_eq!(slot.preset, (period << slot.level).wrapping_neg() & width);
                prop_assert!(slot.preset & ones == ones && slot.level < 64);
            }
            // One more would not fit.
            let next = (u128::from(period) << (slot.level + 1)) as u64;
            prop_assert!(next.wrapping_neg() & width & ones != ones || next > width / 2);
        }
    }
}
