//! What precise samples say of an event of some instructions only.

use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

/// How many of an event's samples passed `only`, and what that makes of its count: an estimate, and no count.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Qualified {
    /// What had to hold, as a job writes it.
    pub only: String,
    /// What took the samples: `PEBS` or `IBS`.
    pub by: String,
    /// Samples that were judged.
    pub samples: u64,
    /// Of these, how many passed.
    pub passed: u64,
    /// The event in all, of which the estimate is a share.
    pub counted: u64,
    /// `counted` × `passed` / `samples`, rounded.
    pub estimate: u64,
    /// Wilson's interval for the share, times `counted`: with 95 % the qualified count is between these two.
    pub between: [u64; 2],
}

impl Qualified {
    /// Of samples that were judged. `None`: there are none.
    #[must_use]
    pub fn new([only, by]: [&str; 2], counted: u64, samples: u64, passed: u64) -> Option<Self> {
        let estimate = rounded(counted, passed, samples)?;
        let between = wilson(counted, passed, samples);
        let [only, by] = [only, by].map(String::from);
        Some(Self { only, by, samples, passed, counted, estimate, between })
    }

    /// Of several processors' samples together, where all have some.
    #[must_use]
    pub fn sum<'a>(all: impl Iterator<Item = Option<&'a Self>>) -> Option<Self> {
        let all: Option<alloc::vec::Vec<&Self>> = all.collect();
        let all = all?;
        let first = all.first()?;
        let total = |of: fn(&Self) -> u64| all.iter().map(|one| of(one)).sum();
        let (samples, passed) = (total(|one| one.samples), total(|one| one.passed));
        Self::new([&first.only, &first.by], total(|one| one.counted), samples, passed)
    }
}

impl fmt::Display for Qualified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { only, by, samples, passed, counted, estimate, between: [from, to] } = self;
        write!(
            f,
            "{only}: about {estimate} of {counted}, estimated by {samples} {by} samples: {passed} passed; 95 % between {from} and {to}"
        )
    }
}

fn rounded(counted: u64, passed: u64, samples: u64) -> Option<u64> {
    let product = u128::from(counted) * u128::from(passed) + u128::from(samples / 2);
    product.checked_div(samples.into()).map(|quotient| quotient as u64)
}

/// `counted` times the bounds of Wilson's interval, outwards: with z = 1.96, k of n samples and all in units of 10^-8,
/// `(k + z²/2 ± z √(k (n - k) / n + z²/4)) / (n + z²)`. (E. B. Wilson, Probable Inference, the Law of Succession, and Statistical
/// Inference, 1927.)
fn wilson(counted: u64, passed: u64, samples: u64) -> [u64; 2] {
    const UNIT: u128 = 100_000_000;
    /// z² = 3.8416.
    const SQUARE: u128 = 384_160_000;
    let [counted, k, n] = [counted, passed, samples].map(u128::from);
    let n = n.max(1);
    // The root in units of 10^-4 / 200: 4 k (n - k) / n + z², times 10^12.
    let root = (4 * k * (n - k) * 1_000_000_000_000 / n + SQUARE * 10_000).isqrt() + 1;
    // z / 2 = 0.98, and 10^8 / 10^6.
    let half = 98 * root;
    let centre = k * UNIT + SQUARE / 2;
    let all = n * UNIT + SQUARE;
    let least = counted * centre.saturating_sub(half) / all;
    let most = (counted * (centre + half)).div_ceil(all);
    [least as u64, most.min(counted) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    /// The figures are those of the formula in floating point.
    #[test]
    fn t8_an_estimate_has_the_interval_of_its_share() {
        let of = |samples, passed| {
            Qualified::new(["only=imul", "PEBS"], 1_000_000, samples, passed).unwrap()
        };
        for (samples, passed, between) in [
            (1, 0, [0, 793_457]),
            (1, 1, [206_543, 1_000_000]),
            (10, 5, [236_589, 763_411]),
            (1000, 0, [0, 3_827]),
            (1000, 1000, [996_173, 1_000_000]),
            (1000, 333, [304_477, 362_801]),
        ] {
            let one = of(samples, passed);
            assert_eq!(one.between, between, "{samples}, {passed}");
            assert_eq!(one.estimate, 1_000_000 * passed / samples);
        }
        // Outwards, however large: exact bounds are 236,589,593,615,487.3 and 763,410,406,384,512.7.
        let large = Qualified::new(["", ""], 1_000_000_000_000_000, 10, 5).unwrap();
        assert_eq!(large.between, [236_589_528_667_206, 763_410_471_332_794]);
        assert_eq!(Qualified::new(["", ""], 5, 0, 0), None);
        assert_eq!(
            of(1000, 333).to_string(),
            "only=imul: about 333000 of 1000000, estimated by 1000 PEBS samples: 333 passed; 95 % between 304477 and 362801"
        );
        let both = Qualified::sum([Some(&of(400, 100)), Some(&of(600, 233))].into_iter()).unwrap();
        assert_eq!((both.samples, both.passed, both.counted), (1000, 333, 2_000_000));
        assert_eq!(both.estimate, 666_000);
        assert_eq!(Qualified::sum([Some(&of(400, 100)), None].into_iter()), None);
    }

    proptest! {
        #[test]
        fn t8_an_interval_holds_its_estimate(counted: u64, samples in 1..=u64::from(u32::MAX), part: u64) {
            let passed = part % (samples + 1);
            let one = Qualified::new(["", ""], counted, samples, passed).unwrap();
            let [least, most] = one.between;
            prop_assert!(least <= one.estimate && one.estimate <= most && most <= counted);
        }
    }
}
