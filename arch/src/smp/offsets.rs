//! How far the processors' time stamp counters are apart, by ping-pong: the boot processor reads its counter, the other
//! one answers with its own, the boot processor reads again. The answer was read between the two, so the offset is known
//! within half of the time between.

use super::exchange::Exchange;
use super::work::CallError;
use super::{count, on_all};
use crate::time::tsc;
use alloc::vec::Vec;

/// One exchange: the boot processor's TSC before and after, and the other's between.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Round {
    /// Before.
    pub before: u64,
    /// The other processor's.
    pub other: u64,
    /// After.
    pub after: u64,
}

/// What a processor's TSC shows more than the boot processor's.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Offset {
    /// In ticks.
    pub ticks: i64,
    /// The true one is not further away than this.
    pub error: u64,
}

/// The offset by the round that took least time; `None` without a round.
#[must_use]
pub fn best(rounds: &[Round]) -> Option<Offset> {
    let length = |round: &Round| round.after.wrapping_sub(round.before);
    let round = rounds.iter().min_by_key(|round| length(round))?;
    let half = length(round).div_ceil(2);
    let middle = round.before.wrapping_add(half);
    Some(Offset { ticks: round.other.wrapping_sub(middle) as i64, error: half })
}

/// Exchanges with each processor; the best one counts.
const ROUNDS: usize = 32;

/// Measures the offset of every processor, the boot processor's being 0.
///
/// # Errors
/// This is not the boot processor.
pub fn offsets() -> Result<Vec<Offset>, CallError> {
    let exchange = Exchange::new();
    // All rounds, of the processors one after the other.
    let number = |other: usize, round: usize| ((other - 1) * ROUNDS + round) as u64;
    let found = on_all(|index| {
        if index > 0 {
            for round in 0..ROUNDS {
                exchange.answer(number(index, round), tsc::now);
            }
            return Vec::new();
        }
        let ask = |other: usize, round: usize| {
            let before = tsc::now();
            let asked = exchange.ask(number(other, round));
            let after = tsc::now();
            Round { before, other: asked.answer(), after }
        };
        (1..count())
            .map(|other| {
                let rounds: Vec<Round> = (0..ROUNDS).map(|round| ask(other, round)).collect();
                best(&rounds).unwrap_or_default()
            })
            .collect()
    })?;
    let others = found.into_iter().next().unwrap_or_default();
    Ok(core::iter::once(Offset::default()).chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the delays of both ways, the true offset lies within the stated error.
        #[test]
        fn m10_the_true_offset_lies_within_the_error(
            offset in -1_000_000i64..1_000_000, start in 2_000_000u64..u64::MAX / 2,
            delays in prop::collection::vec((1u64..10_000, 1u64..10_000), 1..40),
        ) {
            let rounds: Vec<Round> = delays.iter().map(|&(there, back)| Round {
                before: start,
                other: (start + there).wrapping_add_signed(offset),
                after: start + there + back,
            }).collect();
            let found = best(&rounds).unwrap();
            prop_assert!((found.ticks - offset).unsigned_abs() <= found.error);
            let shortest = delays.iter().map(|(there, back)| there + back).min().unwrap();
            prop_assert_eq!(found.error, shortest.div_ceil(2));
        }
    }

    #[test]
    fn m10_one_processor_has_no_offset() {
        assert_eq!(offsets(), Ok(vec![Offset::default()]));
        assert_eq!(best(&[]), None);
    }
}
