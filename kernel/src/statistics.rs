//! What a series of counts comes to.

use alloc::vec::Vec;
use protocol::record::{Aggregates, Series};

/// Part of the runs that the trimmed mean leaves out at either end: a fifth, as nanoBench does.
const TRIM_PART: usize = 5;

/// A series in rising order, for taking aggregates.
struct Sorted(Vec<u64>);

impl Sorted {
    fn new(values: &[u64]) -> Self {
        let mut sorted = values.to_vec();
        // Most series hold one and the same value.
        if !sorted.is_sorted() {
            sorted.sort_unstable();
        }
        Self(sorted)
    }

    fn median(&self) -> f64 {
        let (low, high) = (self.0[(self.0.len() - 1) / 2], self.0[self.0.len() / 2]);
        // Two counts whose sum overflows 64 bits would take centuries to count.
        (low + high) as f64 / 2.0
    }

    fn trimmed_mean(&self) -> f64 {
        let trim = self.0.len() / TRIM_PART;
        let kept = &self.0[trim..self.0.len() - trim];
        kept.iter().map(|&v| u128::from(v)).sum::<u128>() as f64 / kept.len() as f64
    }

    fn distinct(&self) -> u32 {
        1 + self.0.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32
    }
}

/// The series' bounds and number of distinct values; with `list`, the values too.
///
/// # Panics
/// If `values` is empty.
#[must_use]
pub fn series(values: &[u64], list: bool) -> Series {
    let sorted = Sorted::new(values);
    Series {
        min: sorted.0[0],
        max: sorted.0[sorted.0.len() - 1],
        distinct: sorted.distinct(),
        values: list.then(|| values.to_vec()),
    }
}

/// Least, median and greatest of the values.
///
/// # Panics
/// If `values` is empty.
#[must_use]
pub fn spread(values: &[u64]) -> [f64; 3] {
    let sorted = Sorted::new(values);
    [sorted.0[0] as f64, sorted.median(), sorted.0[sorted.0.len() - 1] as f64]
}

/// Cost of one execution of the body: each aggregate of the `large` series minus that of the `small` one,
/// divided by the `per` executions that the two differ in.
///
/// # Panics
/// If a series is empty.
#[must_use]
pub fn difference(small: &[u64], large: &[u64], per: u64) -> Aggregates {
    let (small, large) = (Sorted::new(small), Sorted::new(large));
    let each = |of: fn(&Sorted) -> f64| (of(&large) - of(&small)) / per as f64;
    Aggregates {
        min: each(|s| s.0[0] as f64),
        median: each(Sorted::median),
        mean: each(Sorted::trimmed_mean),
        max: each(|s| s.0[s.0.len() - 1] as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn aggregates_of_a_known_series() {
        let seen = difference(&[0; 10], &[50, 10, 20, 30, 40, 60, 70, 80, 90, 1000], 10);
        assert_eq!(seen.min, 1.0);
        assert_eq!(seen.median, 5.5);
        assert_eq!(seen.max, 100.0);
        // Without 10, 20 and 90, 1000: the mean of 30 to 80.
        assert_eq!(seen.mean, 5.5);
    }

    /// Twenty runs, whose means differ by how many are left out: a fifth at either end is 4, a quarter 5.
    #[test]
    fn n1_the_trimmed_mean_leaves_a_fifth_out_at_either_end() {
        let squares: Vec<u64> = (0..20).map(|n| n * n).collect();
        let mean = |kept: core::ops::Range<u64>| {
            let count = kept.end - kept.start;
            kept.map(|n| n * n).sum::<u64>() as f64 / count as f64
        };
        let seen = difference(&[0; 20], &squares, 1).mean;
        assert_eq!(seen, mean(4..16));
        assert_ne!(seen, mean(5..15));
    }

    #[test]
    fn one_run_is_its_own_aggregate() {
        let seen = difference(&[7], &[107], 100);
        assert_eq!((seen.min, seen.median, seen.mean, seen.max), (1.0, 1.0, 1.0, 1.0));
    }

    #[test]
    fn distinct_values_are_counted_and_listed_in_order() {
        let seen = series(&[3, 1, 3, 2], true);
        assert_eq!((seen.min, seen.max, seen.distinct), (1, 3, 3));
        assert_eq!(seen.values, Some(vec![3, 1, 3, 2]));
        assert_eq!(series(&[5, 5], false).distinct, 1);
    }

    proptest! {
        #[test]
        fn aggregates_keep_their_order(values in prop::collection::vec(0u64..1 << 50, 1..100)) {
            let zero = vec![0; values.len()];
            let seen = difference(&zero, &values, 1);
            prop_assert!(seen.min <= seen.median && seen.median <= seen.max);
            prop_assert!(seen.min <= seen.mean + 1.0 && seen.mean <= seen.max + 1.0);
        }

        #[test]
        fn a_constant_overhead_cancels_exactly(
            overhead in 0u64..1 << 40, cost in 0u64..1000, unroll in 1u64..10_000, runs in 1usize..20,
        ) {
            let seen = difference(
                &vec![overhead + cost * unroll; runs], &vec![overhead + 2 * cost * unroll; runs], unroll,
            );
            prop_assert_eq!(seen.median, cost as f64);
            prop_assert_eq!(seen.mean, cost as f64);
        }
    }
}
