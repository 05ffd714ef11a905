//! What a series of counts comes to.
//!
//! Counts are taken as two's complement: a model-specific register may fall during a run, and no counter gets as far as 2^63.

use alloc::vec::Vec;
use protocol::record::{Aggregates, Series};

/// Part of the runs that the trimmed mean leaves out at either end: a fifth, as nanoBench does.
const TRIM_PART: usize = 5;

/// A series in rising order, for taking aggregates.
struct Sorted(Vec<i64>);

impl Sorted {
    fn new(values: &[u64]) -> Self {
        let mut sorted = signed(values);
        // Most series hold one and the same value.
        if !sorted.is_sorted() {
            sorted.sort_unstable();
        }
        Self(sorted)
    }

    fn median(&self) -> f64 {
        let (low, high) = (self.0[(self.0.len() - 1) / 2], self.0[self.0.len() / 2]);
        (i128::from(low) + i128::from(high)) as f64 / 2.0
    }

    fn trimmed_mean(&self) -> f64 {
        let trim = self.0.len() / TRIM_PART;
        let kept = &self.0[trim..self.0.len() - trim];
        kept.iter().map(|&v| i128::from(v)).sum::<i128>() as f64 / kept.len() as f64
    }

    fn distinct(&self) -> u32 {
        1 + self.0.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32
    }
}

fn signed(values: &[u64]) -> Vec<i64> {
    values.iter().map(|value| value.cast_signed()).collect()
}

/// The value of a series that holds one and the same.
fn constant(values: &[u64]) -> Option<i64> {
    let (first, rest) = values.split_first()?;
    rest.iter().all(|value| value == first).then_some(first.cast_signed())
}

/// The same, if the sum of the series is a whole number of 64-bit floating point as well: then its median and each mean of
/// its values are that value exactly.
fn exactly_constant(values: &[u64]) -> Option<i64> {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    constant(values)
        .filter(|value| value.unsigned_abs().saturating_mul(values.len() as u64) <= EXACT)
}

/// The series' bounds and number of distinct values; with `list`, the values too.
///
/// # Panics
/// If `values` is empty.
#[must_use]
pub fn series(values: &[u64], list: bool) -> Series {
    if let Some(value) = constant(values) {
        let values = list.then(|| signed(values));
        return Series { min: value, max: value, distinct: 1, values };
    }
    let sorted = Sorted::new(values);
    Series {
        min: sorted.0[0],
        max: sorted.0[sorted.0.len() - 1],
        distinct: sorted.distinct(),
        values: list.then(|| signed(values)),
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
    // Nearly all series of an emulator, and most of a processor. A division takes some 180 instructions without an FPU.
    if let (Some(small), Some(large)) = (exactly_constant(small), exactly_constant(large)) {
        let each = (large as f64 - small as f64) / per as f64;
        return Aggregates { min: each, median: each, mean: each, max: each };
    }
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

    proptest! {
        /// What is said of a series of equal values without looking further is what the long way gives, to the last bit.
        #[test]
        fn a_constant_series_has_the_aggregates_of_any(
            small in 0u64..1 << 60, large in 0u64..1 << 60, runs in 1usize..40, per in 1u64..100_000,
        ) {
            let long = |value: u64| Sorted::new(&vec![value; runs]);
            let (one, other) = (long(small), long(large));
            let each = |of: fn(&Sorted) -> f64| ((of(&other) - of(&one)) / per as f64).to_bits();
            let seen = difference(&vec![small; runs], &vec![large; runs], per);
            prop_assert_eq!(seen.min.to_bits(), each(|s| s.0[0] as f64));
            prop_assert_eq!(seen.median.to_bits(), each(Sorted::median));
            prop_assert_eq!(seen.mean.to_bits(), each(Sorted::trimmed_mean));
            prop_assert_eq!(seen.max.to_bits(), each(|s| s.0[s.0.len() - 1] as f64));
            let series = series(&vec![small; runs], false);
            let value = small.cast_signed();
            prop_assert_eq!((series.min, series.max, series.distinct), (value, value, 1));
        }
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

    /// As an MSR does that counts down, from which the figure is negative; and one that now falls, now rises.
    #[test]
    fn i10_counts_that_fall_are_negative() {
        let counts =
            |all: &[i64]| all.iter().map(|count| count.cast_unsigned()).collect::<Vec<_>>();
        let [small, large] = [counts(&[-100, -101, -99]), counts(&[-200, -201, -199])];
        let seen = difference(&small, &large, 100);
        assert_eq!((seen.min, seen.median, seen.mean, seen.max), (-1.0, -1.0, -1.0, -1.0));
        let constant = difference(&counts(&[-100; 3]), &counts(&[-300; 3]), 100);
        assert_eq!((constant.median, constant.mean), (-2.0, -2.0));
        let mixed = counts(&[3, -1, 0, -4]);
        assert_eq!(spread(&mixed), [-4.0, -0.5, 3.0]);
        let seen = series(&mixed, true);
        assert_eq!((seen.min, seen.max, seen.distinct), (-4, 3, 4));
        assert_eq!(seen.values, Some(vec![3, -1, 0, -4]));
    }

    /// Two values whose sum has more than 64 bits.
    #[test]
    fn a_median_of_large_values_does_not_wrap() {
        let most = i64::MAX.cast_unsigned();
        assert_eq!(spread(&[most, most])[1], i64::MAX as f64);
        let least = i64::MIN.cast_unsigned();
        assert_eq!(spread(&[least, least])[1], i64::MIN as f64);
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
