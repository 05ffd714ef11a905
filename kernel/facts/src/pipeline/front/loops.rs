//! Loops of ever more NOPs of one density, and the steps of what their instructions cost.

use super::super::code::most_nops;
use super::super::steps::wrong;
use super::super::width::steady;
use super::super::{CodeProbe, TRIES};
use alloc::vec::Vec;
use protocol::record::{FrontEndFact, NopLoops};

/// Up to so many instructions loops of every length are tried, beyond that whole blocks.
const SINGLE: u32 = 256;
/// Fewest and most instructions of a loop.
const FEWEST: u32 = 24;
const MOST: u32 = 16 << 10;
/// So many loops shorter than one, and the most instructions of a cycle, where its whole cycles are determined from its instructions.
const FEW: u32 = 7;
const WIDEST: u32 = 16;
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

/// Loops of so many NOPs in a block.
pub(super) struct Loops<'a, P> {
    pub probe: &'a mut P,
    pub density: u32,
    /// The width of issue, as far as it is known.
    pub issue: Option<u32>,
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
    pub fn measure(&mut self, bytes: u32) -> (NopLoops, Vec<u32>) {
        let density = self.density;
        let lengths = lengths(density, most_nops(bytes, density).min(MOST));
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
        let is_short = more <= SINGLE;
        let unit = if is_short { 1 } else { self.density };
        if is_short {
            self.issue = self.width_up_to(fits.instructions);
        }
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

    /// How many instructions a cycle has of loops up to this one: several lengths, as a round takes whole cycles.
    fn width_up_to(&mut self, instructions: u32) -> Option<u32> {
        let lengths = instructions - FEW..=instructions;
        let thousandths: u64 = lengths.clone().map(|length| self.round(length).thousandths).sum();
        let of =
            |width| lengths.clone().map(|length| u64::from(length.div_ceil(width))).sum::<u64>();
        let differs = |width: &u32| (of(*width) * 1000).abs_diff(thousandths);
        let width = (1..=WIDEST).min_by_key(differs)?;
        (differs(&width) <= u64::from(FEW) * 1000 / 4).then_some(width)
    }

    /// Whether a longer loop costs as one that fits. `after`: what each instruction costs after the step.
    fn fits(&self, fits: Round, round: Round, after: u64) -> bool {
        // Issue ends a round with a whole cycle.
        let is_own = |issue: &u32| (fits.each() * u64::from(*issue)).abs_diff(1000) < 160;
        let issue = self.issue.filter(is_own);
        let each = issue.map_or(fits.each(), |issue| 1000 / u64::from(issue));
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

/// Instructions of the loops that are tried first: whole blocks, up to `most`.
fn lengths(density: u32, most: u32) -> Vec<u32> {
    let doubles = (0..).map(|power| FEWEST << power);
    // Writing the longest loops takes most of the time.
    let short = |double: u32| Some(double + double / 3).filter(|length| *length < SINGLE);
    let near = doubles.flat_map(|double| {
        [Some(double), short(double), Some(double + double / 2)].into_iter().flatten()
    });
    let whole = near.map(|length| length.next_multiple_of(density));
    let mut lengths: Vec<u32> = whole.take_while(|length| *length < most).chain([most]).collect();
    lengths.dedup();
    lengths
}

/// Whether a cost is a step more than one before.
pub(super) const fn rises(before: u64, after: u64) -> bool {
    after * STEP >= before * (STEP + 1)
}
