//! Whether two lots of runs differ: the Mann–Whitney U test, as the interval of the shift that it does not reject.
//!
//! The runs of each report are taken as independent of each other, nothing is assumed of how they are spread, and nothing
//! is drawn at random. The interval is from the k-th least to the k-th greatest of all differences of a new run and an old
//! one, where k follows from the distribution of U (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*,
//! third edition, 4.1 and 4.3). Equal values make it wider than it had to be, never narrower: it includes its ends. So the
//! shift is beyond a bound with the stated confidence if the whole interval does.

use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::HashMap;

/// Up to so many pairs of an old and a new run the distribution of U is summed up; beyond that it is close to a normal one.
const MAX_EXACT_PAIRS: usize = 10_000;

/// From the least to the greatest shift that the runs do not contradict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Whether it tells nothing: there are too few runs for the confidence.
    #[must_use]
    pub fn is_unbounded(&self) -> bool {
        self.low.is_infinite() || self.high.is_infinite()
    }
}

/// The test at one confidence.
pub struct Test {
    /// Probability with which an interval may miss the true shift.
    alpha: f64,
    /// What [`Test::rank`] came to, by the numbers of runs.
    ranks: HashMap<(usize, usize), usize>,
}

impl Test {
    /// A test with which each of `figures` intervals misses with at most (1 - `confidence`) / `figures`: all of them
    /// together hold with the confidence (Bonferroni's inequality).
    #[must_use]
    pub fn new(confidence: f64, figures: usize) -> Self {
        Self { alpha: (1.0 - confidence) / figures.max(1) as f64, ranks: HashMap::new() }
    }

    /// The interval of the shift from `old` to `new`.
    pub fn shift(&mut self, old: &[f64], new: &[f64]) -> Interval {
        let rank = self.rank(old.len(), new.len());
        if rank == 0 {
            return Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        let mut all: Vec<f64> =
            new.iter().flat_map(|new| old.iter().map(move |old| new - old)).collect();
        let last = all.len() - rank;
        let (_, low, _) = all.select_nth_unstable_by(rank - 1, f64::total_cmp);
        let low = *low;
        let (_, high, _) = all.select_nth_unstable_by(last, f64::total_cmp);
        Interval { low, high: *high }
    }

    /// The same if of the runs only the least and the greatest are known: every difference of two runs lies between these
    /// ends.
    pub fn shift_of_ranges(&mut self, old: ([f64; 2], usize), new: ([f64; 2], usize)) -> Interval {
        if self.rank(old.1, new.1) == 0 {
            return Interval { low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        Interval { low: new.0[0] - old.0[1], high: new.0[1] - old.0[0] }
    }

    /// The greatest k with P(U < k) of at most half of alpha; 0: not even complete separation is as unlikely.
    fn rank(&mut self, old: usize, new: usize) -> usize {
        if old == 0 || new == 0 {
            return 0;
        }
        let half = self.alpha / 2.0;
        // U has the same distribution whichever of the two is the new one.
        let numbers = (old.min(new), old.max(new));
        *self.ranks.entry(numbers).or_insert_with(|| match numbers.0 * numbers.1 {
            ..=MAX_EXACT_PAIRS => exact_rank(numbers, half),
            _ => normal_rank(numbers, half),
        })
    }
}

fn exact_rank((few, many): (usize, usize), half: f64) -> usize {
    let mut below = 0.0;
    let least_unlikely = distribution(few, many).into_iter().position(|probability| {
        below += probability;
        below > half
    });
    least_unlikely.unwrap_or(0)
}

/// P(U = u) for each u, if no two runs are equal: the greatest of all runs is one of either lot (Mann and Whitney 1947).
fn distribution(few: usize, many: usize) -> Vec<f64> {
    // Of i runs of the one and j of the other lot, for the last i and every j.
    let mut by_many = vec![vec![1.0]; many + 1];
    for i in 1..=few {
        let mut last: Vec<f64> = vec![1.0];
        for (j, fewer) in by_many.iter_mut().enumerate().skip(1) {
            let share = i as f64 / (i + j) as f64;
            let mut all = vec![0.0; i * j + 1];
            // The greatest is one of the i, and above all j of the others; or one of the j.
            fewer.iter().zip(&mut all[j..]).for_each(|(p, place)| *place += share * p);
            last.iter().zip(&mut all).for_each(|(p, place)| *place += (1.0 - share) * p);
            last.clone_from(&all);
            *fewer = all;
        }
    }
    by_many.swap_remove(many)
}

fn normal_rank((few, many): (usize, usize), half: f64) -> usize {
    let (few, many) = (few as f64, many as f64);
    let deviation = (few * many * (few + many + 1.0) / 12.0).sqrt();
    let below = Normal::standard().inverse_cdf(half);
    // P(U <= k - 1) with a continuity correction of one half.
    let rank = few * many / 2.0 + below * deviation + 0.5;
    if rank < 1.0 { 0 } else { rank as usize }
}

#[cfg(test)]
mod tests;
