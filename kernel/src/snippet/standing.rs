//! Counters that stand still between two runs. They need not be set to 0 for the next: WRMSR is the slowest instruction of a run,
//! above all below a hypervisor.

use alloc::vec::Vec;

/// What the counters of a pass held when the current run began, and whether that is still what they hold.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    begun: Vec<u64>,
    /// Whether `begun` is what they hold.
    is_known: bool,
}

impl Standing {
    /// Of so many counters, of whose values nothing is known.
    #[must_use]
    pub fn new(counters: usize) -> Self {
        Self { begun: alloc::vec![0; counters], is_known: false }
    }

    /// Begins a run; `greatest`: the greatest value of each counter. Returns whether all of them have to be set to 0 first:
    /// where their values are not known, or one has gone through more than a quarter of its range, so that the run might wrap it.
    #[must_use]
    pub fn begin(&mut self, greatest: impl IntoIterator<Item = u64>) -> bool {
        let mut all = self.begun.iter().zip(greatest);
        let stay = self.is_known && all.all(|(&value, greatest)| value <= greatest / 4);
        if !stay {
            self.begun.fill(0);
        }
        self.is_known = false;
        !stay
    }

    /// Events of counter number `index` since the run began; `value`: what it holds, `greatest`: the greatest that it can.
    ///
    /// # Panics
    /// If there is no such counter.
    #[must_use]
    pub fn since(&self, index: usize, value: u64, greatest: u64) -> u64 {
        value.wrapping_sub(self.begun[index]) & greatest
    }

    /// The counters stand still at these values until the next run.
    ///
    /// # Panics
    /// If there are more or fewer counters.
    pub fn stand(&mut self, values: &[u64]) {
        self.begun.copy_from_slice(values);
        self.is_known = true;
    }
}

#[cfg(test)]
mod tests {
    use super::Standing;
    use proptest::prelude::*;

    const GREATEST: u64 = (1 << 40) - 1;

    #[test]
    fn a_run_begins_where_the_last_ended() {
        let mut standing = Standing::new(2);
        assert!(standing.begin([GREATEST; 2]), "nothing is known at first");
        assert_eq!((standing.since(0, 7, GREATEST), standing.since(1, 0, GREATEST)), (7, 0));
        standing.stand(&[7, 0]);
        assert!(!standing.begin([GREATEST; 2]));
        assert_eq!((standing.since(0, 10, GREATEST), standing.since(1, 5, GREATEST)), (3, 5));
        assert!(standing.begin([GREATEST; 2]), "nobody said where they stand");
        assert_eq!(standing.since(0, 10, GREATEST), 10);
    }

    #[test]
    fn a_counter_that_has_gone_through_a_quarter_of_its_range_is_set_to_0() {
        // 40 and 32 bits: the second has less room.
        let greatest = [GREATEST, u64::from(u32::MAX)];
        for (values, set) in [
            ([GREATEST / 4, 0], false),
            ([GREATEST / 4 + 1, 0], true),
            ([0, u64::from(u32::MAX / 4)], false),
            ([0, u64::from(u32::MAX / 4) + 1], true),
        ] {
            let mut standing = Standing::new(2);
            standing.stand(&values);
            assert_eq!(standing.begin(greatest), set, "{values:?}");
            let begun = if set { 0 } else { values[0] };
            assert_eq!(standing.since(0, begun + 1, GREATEST), 1);
        }
    }

    proptest! {
        /// Whatever runs count, as long as each has three quarters of the range.
        #[test]
        fn the_counts_of_runs_are_those_of_counters_that_begin_at_0(
            runs in proptest::collection::vec(0..GREATEST / 4 * 3, 1..40)
        ) {
            let (mut standing, mut register) = (Standing::new(1), 0);
            for run in runs {
                if standing.begin([GREATEST]) {
                    register = 0;
                }
                prop_assert!(register + run <= GREATEST, "it does not wrap");
                register += run;
                prop_assert_eq!(standing.since(0, register, GREATEST), run);
                standing.stand(&[register]);
            }
        }
    }
}
