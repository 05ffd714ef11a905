//! The instruction cache: its ways, the bytes of a line, and those after which its sets repeat.
//!
//! Jumps lead in random order through places that lie a power of two bytes apart. What rounds take in the steady state, many less few
//! of them, is compared with jumps that lie next to each other: the same instructions in lines that every cache holds.

use super::code::{JUMP_BYTES, Program, mixed};
use super::sets::{MOST, Search, Shape, Try, Untold};
use super::{CodeProbe, TRIES};
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::{CodeCacheFact, Fit};

/// The least distance: no processor has shorter lines, and the end of a round has 20 bytes.
const LEAST: u32 = 32;
/// Bytes between jumps that lie next to each other.
const DENSE: u32 = 16;
/// Few rounds and many: the first ones bring the lines.
const FEW: u32 = 16;
const MANY: u32 = 80;
/// Distance and number of jumps of which hardly one is held: no cache known has as many ways, at a distance at which all sets of most
/// caches repeat.
const FAR: (u32, u32) = (8192, 60);
/// Least cycles that a miss costs, in tenths: a jump that is fetched anew, but predicted, takes less.
const LEAST_COST: u64 = 20;

const FREE: &str = "jumps through 60 lines 8 KiB apart take no longer than through neighbours: fetching code costs nothing that is seen";
const NO_LIMIT: &str = "64 lines at every distance stay: it has more ways than any known one";
const UNEVEN: &str = "how many lines stay does not settle at any distance: its sets do not repeat at powers of two, or something else holds code";

const TABLE: &str = "what keeps these jumps has sets of less than 32 bytes of code: it is the table of direct jumps, which is used up first";

const _: () = assert!(DENSE >= JUMP_BYTES);

/// Measures it.
pub fn measure(probe: &mut impl CodeProbe) -> CodeCacheFact {
    let bytes = probe.bytes();
    let mut dense = BTreeMap::new();
    let mut beyond = |stride: u32, count: u32, beside: u32| {
        let base = *dense.entry(count).or_insert_with(|| steady(probe, DENSE, count, 0));
        let cycles = steady(probe, stride, count, beside).saturating_sub(base);
        if count == 1 {
            probe.beat();
        }
        cycles
    };
    let rounds = u64::from(MANY - FEW);
    let (far, lines) = FAR;
    let miss_tenths = beyond(far, lines, 0) * 10 / (rounds * u64::from(lines));
    if miss_tenths < LEAST_COST {
        return CodeCacheFact { reason: Some(FREE.to_string()), ..CodeCacheFact::default() };
    }
    let mut found = search(bytes, (miss_tenths, 0), &mut beyond);
    // A micro-op cache that is used up first costs less for each line, and has sets of its own.
    if let Some(each) = found.each().filter(|each| each * 4 < miss_tenths) {
        found = search(bytes, (miss_tenths, each), &mut beyond);
    }
    let least = miss_tenths / 4;
    let is_other = found.each().is_some_and(|each| each < least);
    let Found { shape, evidence, doubtful } = found;
    let told = CodeCacheFact { miss_tenths, evidence, ..CodeCacheFact::default() };
    match shape {
        Ok(_) if is_other => CodeCacheFact { reason: Some(UNEVEN.to_string()), ..told },
        // No cache has such short lines.
        Ok(shape) if shape.granule.is_some_and(|granule| granule < LEAST) => {
            CodeCacheFact { reason: Some(TABLE.to_string()), ..told }
        }
        // In a single set the lines themselves repeat.
        Ok(shape) => CodeCacheFact {
            ways: Some(shape.ways),
            set_stride: Some(shape.stride),
            line: Some(shape.granule.unwrap_or(shape.stride)),
            doubtful,
            ..told
        },
        Err(untold) => {
            let reason = if matches!(untold, Untold::NoLimit) { NO_LIMIT } else { UNEVEN };
            CodeCacheFact { reason: Some(reason.to_string()), ..told }
        }
    }
}

/// What a search found.
struct Found {
    shape: Result<Shape, Untold>,
    evidence: Vec<Fit>,
    doubtful: u32,
}

impl Found {
    /// Tenths of a cycle that each line takes longer where one more lies in a set than there are ways.
    fn each(&self) -> Option<u64> {
        let Shape { ways, stride, .. } = *self.shape.as_ref().ok()?;
        let is_it = |fit: &&Fit| (fit.stride, fit.places) == (stride.into(), ways + 1);
        let fit = self.evidence.iter().find(is_it)?;
        Some(fit.cycles * 10 / (u64::from(MANY - FEW) * u64::from(fit.places)))
    }
}

/// Searches. `tenths`: what a line costs that is not there, and what each takes longer for another reason. `beyond`: cycles of places.
fn search(bytes: u32, tenths: (u64, u64), beyond: &mut impl FnMut(u32, u32, u32) -> u64) -> Found {
    let (miss, slower) = tenths;
    let rounds = u64::from(MANY - FEW);
    let mut attempt = |stride, count, beside| {
        let cycles = beyond(stride, count, beside);
        // Half a miss in a round, and a 128th of one for each jump, which may be predicted a little later: less than the two
        // misses of one line too many in a single way.
        let limit = rounds * miss * (64 + u64::from(count)) / 128;
        let own = (cycles * 10).saturating_sub(rounds * u64::from(count) * slower);
        let doubtful = own * 2 > limit && own < limit * 3 / 2;
        Try { cycles, fits: own < limit, doubtful }
    };
    let attempt = &mut attempt;
    let mut search = Search { bytes, least: LEAST, attempt, evidence: Vec::new(), doubtful: 0 };
    let shape = search.shape();
    let Search { evidence, doubtful, .. } = search;
    Found { shape, evidence, doubtful }
}

/// Cycles of the rounds beyond the first ones, through so many places; the last of them, `beside` its place, ends a round.
fn steady(probe: &mut impl CodeProbe, stride: u32, count: u32, beside: u32) -> u64 {
    debug_assert!(count <= MOST);
    let mut places: Vec<u32> = (0..count - 1).map(|index| index * stride).collect();
    // No order that fetching ahead knows.
    let mut state = u64::from(count);
    for at in (1..places.len()).rev() {
        state = mixed(state);
        places.swap(at, (state % (at as u64 + 1)) as usize);
    }
    let end = (count - 1) * stride + beside;
    let mut of = |rounds| {
        probe.cycles(&Program::Jumps { places: &places, end, indirect: false, rounds }, TRIES)
    };
    let few = of(FEW);
    of(MANY).saturating_sub(few)
}
