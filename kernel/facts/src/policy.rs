//! What replacement policies are determined from: sequences of accesses to one set.
//!
//! Of many random sequences one is run on which the policies that are left differ most; those that foretell another result are out.
//! It ends when no sequence is found on which they differ, with some more for policies that nobody knows.

use crate::chain::Chain;
use crate::finder::Level;
use crate::judge::last_hits;
use crate::probe::{Flush, LARGE, Probe};
use alloc::string::String;
use alloc::vec::Vec;
use pmu_model::uarch::replacement::Policy;
use protocol::record::{PolicyEvidence, PolicySequence, slack};

/// Runs of each sequence: more than one states whether the set alone decides.
const RUNS: u32 = 4;
/// Sequences that are looked at for one that is run, and for the last time.
const LOOKED_AT: [u32; 2] = [24, 150];
/// Sequences that are run at least, whatever is left.
const LEAST: usize = 24;
/// And at most.
const MOST: usize = 100;
/// Most ways for which it is tried: a line is a digit of base 36.
const MOST_WAYS: u32 = 32;

/// Numbers that are always the same (Marsaglia's xorshift64).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) % u64::from(bound)) as u32
    }

    /// Lines of a set, in the order in which they are accessed; the last access is the one that is looked at. At most `visits`
    /// accesses are to one line.
    fn sequence(&mut self, ways: u32, visits: u32) -> Vec<u32> {
        // Few more lines than ways, so that hits and misses are both frequent.
        let lines = ways + 1 + self.below(3);
        let mut left: Vec<u32> = (0..lines).map(|_| visits).collect();
        let length = (ways + 1 + self.below(3 * ways)) as usize;
        let mut all = Vec::with_capacity(length + 1);
        // Half of them fill the set first.
        if self.below(2) == 0 {
            for line in 0..ways {
                all.push(line);
                left[line as usize] -= 1;
            }
        }
        while all.len() < length {
            let line = self.below(lines);
            if left[line as usize] > 1 {
                left[line as usize] -= 1;
                all.push(line);
            } else if left.iter().all(|left| *left <= 1) {
                break;
            }
        }
        // The last one is one of those that came.
        let last = all[self.below(all.len() as u32) as usize];
        all.push(last);
        all
    }
}

/// The sequence on which `left` differ most, and how many foretell what fewer do.
fn dividing(
    draw: &mut Draw,
    left: &[Policy],
    ways: u32,
    visits: u32,
    tries: u32,
) -> (Vec<u32>, usize) {
    let mut best = (draw.sequence(ways, visits), 0);
    for _ in 0..tries {
        let lines = draw.sequence(ways, visits);
        let hits = left.iter().filter(|policy| last_hits(**policy, ways, &lines)).count();
        let fewer = hits.min(left.len() - hits);
        if fewer > best.1 {
            best = (lines, fewer);
        }
        if best.1 * 3 > left.len() {
            break;
        }
    }
    best
}

/// Runs sequences on the last of these levels. `None`: they do not fit.
pub fn evidence(probe: &mut impl Probe, line: u64, levels: &[Level]) -> Option<PolicyEvidence> {
    let (level, inner) = levels.split_last()?;
    let (ways, _) = level.shape.filter(|(ways, _)| *ways <= MOST_WAYS)?;
    let front = match inner.last() {
        None => None,
        Some(last) => {
            let most = inner.iter().filter_map(|level| Some(level.shape?.0)).max()?;
            Some((most, last.shape?.1))
        }
    };
    let visits = (line / 8) as u32;
    let stride = probe.bytes() / 128;
    let allowed = level.cycles + slack(level.cycles);
    let mut draw = Draw(0x9e37_79b9_7f4a_7c15);
    let known = Policy::all(ways as usize).filter(|policy| *policy != Policy::Random);
    let (mut left, mut sequences): (Vec<Policy>, _) = (known.collect(), Vec::new());
    while sequences.len() < MOST {
        let (mut lines, mut differ) = dividing(&mut draw, &left, ways, visits, LOOKED_AT[0]);
        if differ == 0 && left.len() > 1 {
            (lines, differ) = dividing(&mut draw, &left, ways, visits, LOOKED_AT[1]);
        }
        if differ == 0 && sequences.len() >= LEAST {
            break;
        }
        let chain = chain(probe, &lines, stride, line, front)?;
        let mut hits = 0;
        for _ in 0..RUNS {
            let cycles = chain.cycles(probe, Flush::Caches, chain.len() - 1, 1);
            if cycles + allowed - level.cycles < level.cycles {
                // A level in front has kept it.
                return None;
            }
            hits += u32::from(cycles <= allowed);
        }
        if hits == 0 || hits == RUNS {
            left.retain(|policy| last_hits(*policy, ways, &lines) == (hits > 0));
        }
        let digit = |line: &u32| char::from_digit(*line, 36).unwrap_or('?');
        let lines: String = lines.iter().map(digit).collect();
        sequences.push(PolicySequence { lines, hits });
        probe.beat();
    }
    Some(PolicyEvidence { ways, runs: RUNS, sequences })
}

/// The accesses of a sequence; after each, loads by which the levels in front lose its line.
fn chain(
    probe: &impl Probe,
    sequence: &[u32],
    stride: u64,
    line: u64,
    front: Option<(u32, u64)>,
) -> Option<Chain> {
    let mut chain = Chain::default();
    let (last, before) = sequence.split_last()?;
    let visits = line / 8;
    let mut next = 0;
    for one in before {
        chain.load((u64::from(*one) * stride) | LARGE);
        let Some((ways, front)) = front else { continue };
        let each = u64::from(2 * ways);
        // So many that each has words enough, and that none of them comes again soon.
        let pool = (4 * each * before.len() as u64).div_ceil(visits).max(each);
        if 2 * pool * front > probe.bytes() {
            return None;
        }
        // Twice over: by then all that were there have gone, whatever is kept longest.
        for _ in 0..2 * each {
            let at = (2 * (next % pool) + 1) * front;
            next += 1;
            // Twice: a policy may keep others longer than a line that is used once.
            chain.load(at | LARGE);
            chain.load(at | LARGE);
        }
    }
    let last = u64::from(*last) * stride;
    // The TLB has the page: a line of another set brings it.
    let page = probe.large_page();
    chain.load((last / page * page + page / 2 + 3 * line) | LARGE);
    chain.load(last | LARGE);
    Some(chain)
}
