//! The table of targets of indirect jumps: its ways, and the bytes after which its sets repeat.
//!
//! Jumps lie a power of two bytes apart. Of the distances at which their sets repeat as many of them are predicted as there are
//! ways, and no more; then one jump more lies beside that distance, and finds room as soon as its set is another one.
//!
//! They follow each other in the order of their addresses, and end where the next one would be: a table that tells addresses apart
//! by some low bits alone takes a jump for another one that goes to the same place, and then all of them are predicted. So this
//! never looks like a lack of ways.

use super::code::{Program, ROUNDS};
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::{Fit, TargetsFact};

/// The least distance, which is more than a jump takes.
const LEAST: u32 = 64;
/// Most jumps that are tried.
const MOST: u32 = 64;

const NO_LIMIT: &str = "64 jumps at every distance were predicted: it is larger, or chooses its sets by more than the address";
const UNEVEN: &str = "how many jumps are predicted does not settle at any distance: its sets do not repeat at powers of two";

struct Search<'p, P> {
    probe: &'p mut P,
    /// What a misprediction costs, in tenths of a cycle.
    mispredict: u64,
    evidence: Vec<Fit>,
    doubtful: u32,
}

/// Measures it. `mispredict`: what a misprediction costs, in tenths of a cycle.
pub fn measure(probe: &mut impl CodeProbe, mispredict: u64) -> TargetsFact {
    let bytes = probe.bytes();
    let mut search = Search { probe, mispredict, evidence: Vec::new(), doubtful: 0 };
    let strides = (0..).map(|step| LEAST << step).take_while(|stride| bytes / stride >= 8);
    let limits: Vec<(u32, Option<u32>)> =
        strides.map(|stride| (stride, search.most(stride))).collect();
    let untold = |reason: &str, evidence| TargetsFact {
        reason: Some(reason.to_string()),
        evidence,
        ..TargetsFact::default()
    };
    let Some(ways) = limits.iter().filter_map(|(_, most)| *most).min() else {
        return untold(NO_LIMIT, search.evidence);
    };
    let settled: Vec<_> = limits.iter().skip_while(|(_, most)| *most != Some(ways)).collect();
    let then_free = settled.iter().skip_while(|(_, most)| most.is_some());
    let falls = limits.windows(2).all(|pair| pair[1].1.is_none() || pair[0].1 >= pair[1].1);
    if ways == 0 || !falls || then_free.clone().any(|(_, most)| most.is_some()) {
        return untold(UNEVEN, search.evidence);
    }
    let stride = settled.first().map_or(LEAST, |(stride, _)| *stride);
    let (granule, repeat) = search.beside(stride, ways);
    let sets = granule.map_or(1, |granule| repeat / granule);
    let Search { evidence, doubtful, .. } = search;
    TargetsFact { ways: Some(ways), sets: Some(sets), granule, reason: None, doubtful, evidence }
}

impl<P: CodeProbe> Search<'_, P> {
    /// Whether so many jumps are all predicted, the last one of them `beside` its place.
    fn fits(&mut self, stride: u32, count: u32, beside: u32) -> bool {
        let mut places: Vec<u32> = (0..count).map(|index| index * stride).collect();
        if let Some(last) = places.last_mut() {
            *last += beside;
        }
        let end = count * stride + beside;
        let mut of =
            |indirect| self.probe.cycles(&Program::Jumps { places: &places, end, indirect }, TRIES);
        // Direct jumps of the same places take what their code takes to be fetched.
        let direct = of(false);
        let cycles = of(true).saturating_sub(direct);
        let one = ROUNDS * self.mispredict;
        let fits = cycles * 20 < one;
        // A quarter to three quarters of a misprediction are neither.
        self.doubtful += u32::from(cycles * 40 > one && cycles * 40 < 3 * one);
        let stride = u64::from(stride + beside);
        self.evidence.push(Fit { stride, places: count, cycles, fits });
        fits
    }

    /// The most jumps that are predicted; `None`: as many as are tried.
    fn most(&mut self, stride: u32) -> Option<u32> {
        let room = (self.probe.bytes() / stride - 2).min(MOST);
        self.probe.beat();
        let (mut fit, mut next) = (0, 1);
        while self.fits(stride, next, 0) {
            if next == room {
                return None;
            }
            (fit, next) = (next, (next * 2).min(room));
        }
        while next - fit > 1 {
            let middle = u32::midpoint(fit, next);
            match self.fits(stride, middle, 0) {
                true => fit = middle,
                false => next = middle,
            }
        }
        Some(fit)
    }

    /// The least distance beside `stride` at which a jump is of another set, and the next one at which it is of the same again. A
    /// jump more than there are ways tells. `None`: there is one set.
    fn beside(&mut self, stride: u32, ways: u32) -> (Option<u32>, u32) {
        let mut granule = None;
        let distances = (0..).map(|step| 1 << step).take_while(|beside| *beside < stride);
        for beside in distances {
            match (self.fits(stride, ways + 1, beside), granule) {
                (true, None) => granule = Some(beside),
                (false, Some(_)) => return (granule, beside),
                _ => {}
            }
        }
        (granule, stride)
    }
}
