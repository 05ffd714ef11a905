//! The front end: micro-op cache, loop buffer and decoders, by loops of ever more NOPs.
//!
//! NOPs wait for nothing and take no port, so their time is the front end's. A loop that the loop buffer or the micro-op cache holds takes
//! what issue takes; a longer one, what decoding takes, if that is slower. Caches of micro-ops hold so many lines, of so many micro-ops
//! in a block of code: loops of several densities use all of a line at one of them. The instruction cache holds all loops.

mod loops;

use super::CodeProbe;
use alloc::string::ToString;
use alloc::vec::Vec;
use loops::{Loops, rises};
use protocol::record::{CodeCacheFact, FrontEndFact, NopLoops};

/// NOPs in a block: lines have 6 or 8 micro-ops of 32 or of 64 bytes (Intel and AMD, optimization manuals). The last one is for
/// decoders, which take at most 16 bytes a cycle on many processors. On some of these, eight instructions are decoded as quickly as they
/// are issued.
const DENSITIES: [u32; 5] = [4, SIX, 7, EIGHT, DENSEST];
const SIX: u32 = 6;
const EIGHT: u32 = 8;
const DENSEST: u32 = 16;
/// Most bytes of a loop: what the largest instruction caches have.
const MOST_BYTES: u32 = 64 << 10;
const LOOP_BUFFER: u32 = FrontEndFact::MOST_LOOPED;
const CACHE: &str = "the instruction cache is not determined, and steps may be its own";
const NONE: &str = "no longer loop costs more for each instruction: there is none, or decoding is as quick as issue";
const ONLY_LOOP: &str = "no loop that is longer than those of the loop buffer costs more than others: there is none, or decoding is as quick";
const PARTLY: &str = "loops of some densities cost no more for each instruction, up to the longest that the instruction cache holds: more may fit";
const TICKS: &str = "the clock is the TSC, whose ticks are not cycles of the core";
const AS_ISSUE: &str =
    "long loops cost no more: decoding is as quick as what the micro-op cache delivers";
const SHORT: &str = "the longest loop that the instruction cache holds has less than twice the micro-op cache's instructions";
const PART: &str = "instructions in a cycle of the longest loop are no whole number";

/// Measures it. `code`: the instruction cache, as it was determined; `issue`: the width of issue.
pub fn measure(
    probe: &mut impl CodeProbe,
    code: &CodeCacheFact,
    issue: Option<u32>,
) -> FrontEndFact {
    let bytes = match (code.bytes(), code.miss_tenths) {
        // Entries and what takes the time have lines, too.
        (Some(bytes), _) => (bytes - bytes / 8).min(MOST_BYTES),
        (None, 0) => MOST_BYTES.min(probe.bytes() / 2),
        (None, _) => {
            return FrontEndFact {
                reason: Some(CACHE.to_string()),
                decode_reason: Some(CACHE.to_string()),
                ..FrontEndFact::default()
            };
        }
    };
    let mut found = DENSITIES.map(|density| Loops { probe, density, issue }.measure(bytes));
    let steps: Vec<[u64; 3]> = found.iter().flat_map(|(one, _)| one.steps.clone()).collect();
    let loop_buffer = loop_buffer(&steps);
    let uop_cache = steps.iter().filter(|step| !short(step)).map(|step| step[0] as u32).max();
    // The whole cycle with which a round ends looks like a step of the shortest loops.
    for (one, doubts) in &mut found {
        let is_own = |step: &[u64; 3]| match loop_buffer {
            _ if !short(step) => true,
            Some(entries) => agrees(entries.into(), step[0]),
            None => false,
        };
        one.doubtful = one
            .steps
            .iter()
            .zip(&*doubts)
            .filter(|(step, _)| is_own(step))
            .map(|(_, doubt)| doubt)
            .sum();
        one.steps.retain(is_own);
    }
    let loops = found.map(|(one, _)| one);
    // Lines of eight are full at one density, those of six at another: without a step at both, more may fit than was seen.
    let has_step = |from: u32, to: u32| {
        let own = loops.iter().filter(|one| (from..=to).contains(&one.density));
        own.flat_map(|one| &one.steps).any(|step| !short(step))
    };
    let is_whole = has_step(SIX, SIX) && has_step(SIX + 1, EIGHT);
    let (held, uop_cache) = (uop_cache, uop_cache.filter(|_| is_whole));
    let reason = match (held, loop_buffer) {
        (Some(_), _) => PARTLY,
        (None, Some(_)) => ONLY_LOOP,
        (None, None) => NONE,
    };
    let decode = match probe.counts_core_cycles() {
        true => decoded(&loops, held.or(loop_buffer)),
        false => Err(TICKS),
    };
    FrontEndFact {
        uop_cache,
        loop_buffer,
        decode: decode.ok(),
        reason: uop_cache.is_none().then(|| reason.to_string()),
        decode_reason: decode.err().map(ToString::to_string),
        loops: loops.into(),
    }
}

/// Whether a step is where a loop buffer can end.
const fn short([instructions, ..]: &[u64; 3]) -> bool {
    *instructions <= LOOP_BUFFER as u64
}

/// Whether two steps may be the same loop buffer's.
const fn agrees(one: u64, other: u64) -> bool {
    one.abs_diff(other) * 32 <= one
}

/// The longest loop of a loop buffer, which holds as many instructions at every density: two have the step.
fn loop_buffer(steps: &[[u64; 3]]) -> Option<u32> {
    let of_two = |one: &u64| steps.iter().filter(|step| agrees(*one, step[0])).count() >= 2;
    let ends = steps.iter().filter(|step| short(step)).map(|step| step[0]).filter(of_two);
    ends.max().map(|entries| entries as u32)
}

/// Instructions that are decoded in a cycle: those of the longest loop, if nothing holds it.
fn decoded(loops: &[NopLoops], held: Option<u32>) -> Result<u32, &'static str> {
    let held = held.ok_or(NONE)?;
    let densest = loops.iter().find(|one| one.density == DENSEST).ok_or(NONE)?;
    let [instructions, each] = *densest.evidence.last().ok_or(NONE)?;
    if instructions < 2 * u64::from(held) {
        return Err(SHORT);
    }
    let steps = loops.iter().flat_map(|one| &one.steps);
    let quickest = steps.map(|[_, before, _]| *before).min().unwrap_or(0);
    if !rises(quickest, each) {
        return Err(AS_ISSUE);
    }
    let width = (1000 + each / 2) / each.max(1);
    let is_whole = (width * each).abs_diff(1000) * 20 <= 1000;
    if is_whole && width > 0 { Ok(width as u32) } else { Err(PART) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d1_a_step_of_one_density_is_no_loop_buffer() {
        let of = |ends: &[u64]| {
            let steps: Vec<[u64; 3]> = ends.iter().map(|end| [*end, 167, 200]).collect();
            loop_buffer(&steps)
        };
        assert_eq!(of(&[64]), None);
        assert_eq!(of(&[64, 96]), None);
        assert_eq!(of(&[64, 65]), Some(65));
        assert_eq!(of(&[40, 64, 64, 1536]), Some(64));
        // Longer ones are the micro-op cache's.
        assert_eq!(of(&[193, 193]), None);
    }
}
