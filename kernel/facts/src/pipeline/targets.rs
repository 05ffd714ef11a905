//! The table of targets of indirect jumps: its ways, and the bytes after which its sets repeat.
//!
//! Jumps follow each other in the order of their addresses, and end where the next one would be: a table that tells addresses apart by
//! some low bits alone takes a jump for another one that goes to the same place, and then all of them are predicted. So this never
//! looks like a lack of ways.

use super::code::{Program, ROUNDS};
use super::sets::{Search, Try, Untold};
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::TargetsFact;

/// The least distance, which is more than a jump takes.
const LEAST: u32 = 64;

const NO_LIMIT: &str = "64 jumps at every distance were predicted: it is larger, or chooses its sets by more than the address";
const UNEVEN: &str = "how many jumps are predicted does not settle at any distance: its sets do not repeat at powers of two";

/// Measures it. `mispredict`: what a misprediction costs, in tenths of a cycle.
pub fn measure(probe: &mut impl CodeProbe, mispredict: u64) -> TargetsFact {
    let bytes = probe.bytes();
    let mut attempt = |stride, count, beside| predicted(probe, mispredict, (stride, count, beside));
    let mut search =
        Search { bytes, least: LEAST, attempt: &mut attempt, evidence: Vec::new(), doubtful: 0 };
    let shape = search.shape();
    let Search { evidence, doubtful, .. } = search;
    match shape {
        Ok(shape) => TargetsFact {
            ways: Some(shape.ways),
            sets: Some(shape.sets),
            granule: shape.granule,
            reason: None,
            doubtful,
            evidence,
        },
        Err(untold) => {
            let reason = if matches!(untold, Untold::NoLimit) { NO_LIMIT } else { UNEVEN };
            TargetsFact { reason: Some(reason.to_string()), evidence, ..TargetsFact::default() }
        }
    }
}

/// Whether so many jumps are all predicted, the last one of them `beside` its place.
fn predicted(
    probe: &mut impl CodeProbe,
    mispredict: u64,
    (stride, count, beside): (u32, u32, u32),
) -> Try {
    let mut places: Vec<u32> = (0..count).map(|index| index * stride).collect();
    if let Some(last) = places.last_mut() {
        *last += beside;
    }
    let end = count * stride + beside;
    let rounds = ROUNDS as u32;
    let mut of =
        |indirect| probe.cycles(&Program::Jumps { places: &places, end, indirect, rounds }, TRIES);
    // Direct jumps of the same places take what their code takes to be fetched.
    let direct = of(false);
    let cycles = of(true).saturating_sub(direct);
    let one = ROUNDS * mispredict;
    if count == 1 {
        probe.beat();
    }
    // A quarter to three quarters of a misprediction are neither.
    let doubtful = cycles * 40 > one && cycles * 40 < 3 * one;
    Try { cycles, fits: cycles * 20 < one, doubtful }
}
