//! The front end: micro-op cache, loop buffer and decoders, by loops of ever more NOPs.
//!
//! NOPs wait for nothing and take no port, so their time is the front end's. A loop that the loop buffer or the micro-op cache holds takes
//! what issue takes; a longer one, what decoding takes, if that is slower. Caches of micro-ops hold so many lines, of so many micro-ops
//! in a block of code: loops of several densities use all of a line at one of them. The instruction cache holds all loops.

use super::code::{BLOCK, most_nops};
use super::direct::wrong;
use super::width::steady;
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::{CodeCacheFact, FrontEndFact, NopLoops};

/// NOPs in a block: lines have 6 or 8 micro-ops of 32 or of 64 bytes (Intel and AMD, optimization manuals). The last one is for
/// decoders, which take at most 16 bytes a cycle on many processors. On some of these, eight instructions are decoded as quickly as they
/// are issued.
const DENSITIES: [u32; 5] = [4, SIX, 7, EIGHT, DENSEST];
const SIX: u32 = 6;
const EIGHT: u32 = 8;
const DENSEST: u32 = 16;
/// Up to so many instructions loops of every length are tried, beyond that whole blocks.
const SINGLE: u32 = 256;
/// Fewest and most instructions of a loop.
const FEWEST: u32 = 24;
const MOST: u32 = 16 << 10;
/// Most bytes of a loop: what the largest instruction caches have.
const MOST_BYTES: u32 = 64 << 10;
const LOOP_BUFFER: u32 = FrontEndFact::MOST_LOOPED;
/// Rounds until a loop's time repeats.
const BEFORE: u32 = 4;
/// Instructions of which the time is taken, at least, and rounds of them.
const INSTRUCTIONS: u32 = 4096;
const FEWEST_ROUNDS: u32 = 3;
const MOST_ROUNDS: u32 = 64;
/// Instructions of a loop that takes long.
const LONG: u32 = 1024;
/// A step is at least a sixteenth of the cost before.
const STEP: u64 = 16;
/// Thousandths of a cycle by which a round takes longer where a loop does not fit: more than what ends a round may take.
const MORE: u64 = 2000;

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
    let short = |[instructions, ..]: &&[u64; 3]| *instructions <= LOOP_BUFFER.into();
    let steps = || found.iter().flat_map(|(one, _)| &one.steps);
    // It holds as many at every density.
    let agrees = |one: u64, other: u64| one.abs_diff(other) * 32 <= one;
    let is_of_two = |one: u64| steps().filter(|step| agrees(one, step[0])).count() >= 2;
    let looped = steps().filter(short).map(|step| step[0]).filter(|one| is_of_two(*one));
    let loop_buffer = looped.max().map(|entries| entries as u32);
    let uop_cache = steps().filter(|step| !short(step)).map(|step| step[0] as u32).max();
    // The whole cycle with which a round ends looks like a step of the shortest loops.
    for (one, doubts) in &mut found {
        let is_own = |step: &[u64; 3]| match loop_buffer {
            _ if !short(&step) => true,
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
        own.flat_map(|one| &one.steps).any(|step| !short(&step))
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

/// Loops of so many NOPs in a block.
struct Loops<'a, P> {
    probe: &'a mut P,
    density: u32,
    issue: Option<u32>,
}

/// A loop: its instructions, and thousandths of a cycle of a round.
#[derive(Clone, Copy)]
struct Round {
    instructions: u32,
    thousandths: u64,
}

impl Round {
    /// Thousandths of a cycle of each instruction.
    const fn each(self) -> u64 {
        let instructions = self.instructions as u64;
        (self.thousandths + instructions / 2) / instructions
    }
}

impl<P: CodeProbe> Loops<'_, P> {
    /// The steps, and how many loops doubt each.
    fn measure(&mut self, bytes: u32) -> (NopLoops, Vec<u32>) {
        let density = self.density;
        let most = most_nops(bytes, density).min(MOST);
        let lengths = (0..).map(|power| FEWEST << power);
        let lengths = lengths.flat_map(|length| [length, length + length / 2, length + length / 3]);
        // Writing the longest loops takes most of the time.
        let few = lengths.enumerate().filter(|(at, length)| at % 3 != 2 || *length < SINGLE);
        let whole = few.map(|(_, length)| length.next_multiple_of(density));
        let mut lengths: Vec<u32> = whole.take_while(|length| *length < most).collect();
        lengths.push(most);
        lengths.sort_unstable();
        lengths.dedup();
        let rounds: Vec<Round> = lengths.into_iter().map(|length| self.round(length)).collect();
        let evidence: Vec<[u64; 2]> =
            rounds.iter().map(|round| [round.instructions.into(), round.each()]).collect();
        let (mut steps, mut doubts) = (Vec::new(), Vec::new());
        let (mut at, mut last) = (0, 0);
        while at + 1 < rounds.len() {
            let (before, mut end) = (rounds[at].each(), at);
            while rounds.get(end + 1).is_some_and(|next| rises(rounds[end].each(), next.each())) {
                end += 1;
            }
            if end > at {
                let after = rounds[end].each();
                let middle = u64::midpoint(before, after);
                // A round ends with a whole cycle.
                let part = |instructions| 1000 / instructions;
                let wrong = wrong(&evidence, (at, end), middle, part);
                // The whole cycle with which a round ends makes short loops rise and fall.
                let falls = rounds[at].instructions <= LOOP_BUFFER
                    && rounds[end..].iter().any(|round| round.each() < middle);
                if wrong as usize * 8 <= evidence.len() && !falls {
                    doubts.push(wrong);
                    // Where few sets are too small, a loop costs less than a step more.
                    while at > last && !self.fits(rounds[at - 1], rounds[at], after) {
                        at -= 1;
                    }
                    let (fits, more) = (rounds[at], rounds[at + 1].instructions);
                    let entries = self.last_before(fits, more, after);
                    steps.push([entries.into(), fits.each(), after]);
                    // What comes after a loop buffer is not issue's.
                    (last, self.issue) = (end, None);
                }
            }
            at = end.max(at + 1);
        }
        (NopLoops { density, steps, doubtful: 0, evidence }, doubts)
    }

    /// The most instructions of a loop that costs as one which `fits`, of those up to `more`.
    fn last_before(&mut self, fits: Round, more: u32, after: u64) -> u32 {
        let unit = if more <= SINGLE { 1 } else { self.density };
        let (mut low, mut high) = (fits.instructions / unit, more.div_ceil(unit));
        while high - low > 1 {
            let middle = u32::midpoint(low, high);
            let round = self.round(middle * unit);
            match self.fits(fits, round, after) {
                true => low = middle,
                false => high = middle,
            }
        }
        low * unit
    }

    /// Whether a longer loop costs as one that fits. `after`: what each instruction costs after the step.
    fn fits(&self, fits: Round, round: Round, after: u64) -> bool {
        let each = fits.each();
        // Issue ends a round with a whole cycle.
        let issue = self.issue.filter(|issue| (each * u64::from(*issue)).abs_diff(1000) < 60);
        let of = |instructions: u32| match issue {
            Some(issue) => u64::from(instructions.div_ceil(issue)) * 1000,
            None => u64::from(instructions) * fits.thousandths / u64::from(fits.instructions),
        };
        let more = of(round.instructions).saturating_sub(of(fits.instructions));
        // No part of a loop comes from the loop buffer.
        let half = u64::from(round.instructions) * after.saturating_sub(each) / 2;
        let miss = if round.instructions <= SINGLE { half.min(MORE) } else { MORE };
        round.thousandths < fits.thousandths + more + miss
    }

    fn round(&mut self, instructions: u32) -> Round {
        let in_block = self.density;
        let rounds = (INSTRUCTIONS / instructions).clamp(FEWEST_ROUNDS, MOST_ROUNDS);
        // Long loops take so long that little can disturb them.
        let tries = if instructions < LONG { TRIES } else { 2 };
        let cycles = steady(self.probe, (instructions, in_block), (BEFORE, rounds), tries);
        self.probe.beat();
        Round { instructions, thousandths: cycles * 1000 / u64::from(rounds) }
    }
}

/// Whether a cost is a step more than one before.
const fn rises(before: u64, after: u64) -> bool {
    after * STEP >= before * (STEP + 1)
}

const _: () = assert!(BLOCK == 32);
