//! What many measurements of one time came to.

use serde::{Deserialize, Serialize};

/// Measurements of one time, in ticks of the TSC unless it says something else.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// How many there are.
    pub runs: u32,
    /// The least.
    pub least: u64,
    /// The middle one.
    pub median: u64,
    /// Nine of ten are not longer.
    pub ninetieth: u64,
    /// The greatest.
    pub most: u64,
}

impl Times {
    /// Of these, which get sorted; all zero of none.
    #[must_use]
    pub fn of(samples: &mut [u64]) -> Self {
        samples.sort_unstable();
        let count = samples.len();
        let (Some(&least), Some(&most)) = (samples.first(), samples.last()) else {
            return Self::default();
        };
        let (median, ninetieth) = (samples[(count - 1) / 2], samples[(count * 9).div_ceil(10) - 1]);
        Self { runs: count as u32, least, median, ninetieth, most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d3_d4_times_are_told_by_their_ranks() {
        let mut samples: [u64; 11] = core::array::from_fn(|index| 100 - index as u64 * 10);
        let times = Times::of(&mut samples);
        let expected = Times { runs: 11, least: 0, median: 50, ninetieth: 90, most: 100 };
        assert_eq!(times, expected);
        let one = Times::of(&mut [7]);
        assert_eq!((one.runs, one.least, one.median, one.ninetieth, one.most), (1, 7, 7, 7, 7));
        // Of three the second is not longer than two thirds of them alone.
        assert_eq!(Times::of(&mut [3, 1, 2]).ninetieth, 3);
        assert_eq!(Times::of(&mut [2, 1]).median, 1, "the lower one of two");
        assert_eq!(Times::of(&mut []), Times::default());
    }
}
