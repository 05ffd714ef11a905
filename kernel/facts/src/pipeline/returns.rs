//! The depth of the return stack: from which depth on each further return is mispredicted.

use super::code::{MOST_DEPTH, Program, ROUNDS};
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::ReturnsFact;

/// Why it is not determined.
const NO_STEP: &str = "returns from deeper calls take no longer, or all do: it is deeper than 72, it has one entry, or something else predicts returns";
const UNCLEAR: &str =
    "what returns from deeper calls take rises at no depth by what a misprediction costs";

/// Measures it. `mispredict`: what a misprediction costs, in tenths of a cycle.
pub fn measure(probe: &mut impl CodeProbe, mispredict: u64) -> ReturnsFact {
    let mut of = |depth| {
        let mut cycles = |returns| probe.cycles(&Program::Nested { depth, returns }, TRIES) as i64;
        let tenths = (cycles(true) - cycles(false)) * 10 / ROUNDS as i64;
        if depth % 8 == 0 {
            probe.beat();
        }
        [depth.into(), tenths]
    };
    let evidence: Vec<[i64; 2]> = (1..=MOST_DEPTH).map(&mut of).collect();
    let rises: Vec<i64> = evidence.windows(2).map(|pair| pair[1][1] - pair[0][1]).collect();
    let (entries, reason, doubtful) = match step(&rises) {
        Some((at, [before, after])) if (after - before) * 2 >= mispredict as i64 => {
            let middle = i64::midpoint(before, after);
            let (low, high) = rises.split_at(at);
            let strays = low.iter().filter(|rise| **rise > middle).count()
                + high.iter().filter(|rise| **rise < middle).count();
            match strays <= rises.len() / 8 {
                // The first rise is from one return to two.
                true => (Some(at as u32 + 1), None, strays as u32),
                false => (None, Some(UNCLEAR), strays as u32),
            }
        }
        _ => (None, Some(NO_STEP), 0),
    };
    let reason = reason.map(ToString::to_string);
    ReturnsFact { entries, reason, doubtful, evidence }
}

/// Where figures rise for good: the cut that leaves the least sum of squares, and the mean on both sides.
fn step(rises: &[i64]) -> Option<(usize, [i64; 2])> {
    let mean = |part: &[i64]| part.iter().sum::<i64>() / part.len() as i64;
    let spread = |part: &[i64]| {
        let mean = mean(part);
        part.iter().map(|rise| (rise - mean) * (rise - mean)).sum::<i64>()
    };
    let cut = (1..rises.len()).min_by_key(|at| {
        let (low, high) = rises.split_at(*at);
        spread(low) + spread(high)
    })?;
    let (low, high) = rises.split_at(cut);
    Some((cut, [mean(low), mean(high)]))
}
