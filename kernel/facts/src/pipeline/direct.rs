//! The table of direct jumps (branch target buffer): loops of ever more jumps, and nothing else.
//!
//! While the table has all jumps of a loop, the front end goes on at the target of each before it has decoded it. Of those that it does
//! not have, each costs time. Loops are never longer than the instruction cache, so that fetching takes none. Where that is not determined, a step counts
//! if it is at as many jumps at two distances, and not at as many bytes. Of each distance
//! between jumps the steps are determined, as a table may have only so many jumps in a block of code; the most jumps before a step are those of a
//! distance at which they use all of the table.

use super::code::{LEAST_DISTANCE, Program, most_jumps};
use super::steps::wrong;
use super::{CodeProbe, TRIES};
use alloc::string::ToString;
use alloc::vec::Vec;
use protocol::record::{CodeCacheFact, DirectFact, DirectLoops, FrontEndFact};

/// Distances that are tried: [`LEAST_DISTANCE`] and its doubles.
const DISTANCES: u32 = 4;
/// NOPs in 32 bytes of the loops that state the micro-op cache's lines.
const SPARSE: u32 = 4;
/// Fewest and most jumps of a loop. No known table has fewer, and few have as many.
const FEWEST: u32 = 8;
const MOST: u32 = 16 << 10;
/// So many jumps and fewer are tried in steps of a half, more only in doubles.
const LONGEST_STEPS: u32 = 4096;
/// Jumps of which the time is taken, at least, and rounds of them.
const JUMPS: u32 = 4096;
const FEWEST_ROUNDS: u32 = 3;
/// Jumps of a long loop.
const LONG: u32 = 512;
const MOST_ROUNDS: u32 = 64;
/// A step is at least so many tenths of a cycle.
const STEP: u64 = 4;

const BYTES: &str = "loops of jumps farther apart cost more from fewer jumps on: it is their bytes that count, as in an instruction cache";
const LINES: &str =
    "the last step is at as many jumps as the micro-op cache has lines, each of which a jump ends";
const NONE: &str = "no loop costs more for each jump than a shorter one does";

/// Measures it. `code`: the instruction cache, and `front`: the micro-op cache, as they were determined.
pub fn measure(
    probe: &mut impl CodeProbe,
    code: &CodeCacheFact,
    front: &FrontEndFact,
) -> DirectFact {
    let half = probe.bytes() / 2;
    let bytes = match (code.bytes(), code.miss_tenths) {
        // The loop's entry and what takes the time have lines, too.
        (Some(bytes), _) => (bytes - bytes / 8).min(half),
        (None, _) => half,
    };
    let distances = (0..DISTANCES).map(|step| LEAST_DISTANCE << step);
    let loops: Vec<DirectLoops> =
        distances.map(|distance| Loops { probe, distance }.measure(bytes)).collect();
    let is_free_of_fetching = code.bytes().is_some() || code.miss_tenths == 0;
    let ends = match is_free_of_fetching {
        true => loops.iter().filter_map(|one| Some(one.steps.last()?[0])).max(),
        false => loops.windows(2).flat_map(|two| confirmed(&two[0], &two[1])).max(),
    };
    let is_lines = ends.is_some_and(|jumps| has_lines(front, jumps));
    let ends = ends.filter(|_| !is_lines);
    let has_steps = loops.iter().any(|one| !one.steps.is_empty());
    let reason = match has_steps {
        true if is_lines => LINES,
        true => BYTES,
        false => NONE,
    };
    let reason = ends.is_none().then(|| reason.to_string());
    DirectFact { entries: ends.map(|jumps| jumps as u32), reason, loops }
}

/// Whether the micro-op cache may have about so many lines. With four instructions in 32 bytes, each block of 32 or of 64 has one.
fn has_lines(front: &FrontEndFact, jumps: u64) -> bool {
    let sparse = front.loops.iter().filter(|one| one.density == SPARSE);
    let held = sparse.flat_map(|one| &one.steps).map(|step| step[0]);
    let lines = held.flat_map(|held| [held / 4, held / 8]);
    lines.into_iter().any(|lines| lines.abs_diff(jumps) * 8 <= lines)
}

/// The steps of loops at the greater one of two distances that are at nearly as many jumps at the smaller one: steps of an
/// instruction cache are at half as many. An odd number of ways is used in part at the smaller one.
fn confirmed(near: &DirectLoops, far: &DirectLoops) -> Vec<u64> {
    let agrees = |near: u64, far: u64| near * 3 <= far * 4 && far * 3 <= near * 5;
    let both = near.steps.iter().zip(&far.steps).map(|(near, far)| (near[0], far[0]));
    both.filter(|(near, far)| agrees(*near, *far)).map(|(_, far)| far).collect()
}

/// Loops of jumps so far apart.
struct Loops<'a, P> {
    probe: &'a mut P,
    distance: u32,
}

/// A loop: its jumps, and hundredths of a cycle of a round.
#[derive(Clone, Copy)]
struct Round {
    jumps: u32,
    hundredths: u64,
}

impl<P: CodeProbe> Loops<'_, P> {
    fn measure(&mut self, bytes: u32) -> DirectLoops {
        let most = most_jumps(bytes, self.distance).min(MOST);
        // What a round takes beside its jumps is in that of one.
        let one = self.round(1);
        let doubles = (0..).map(|power| FEWEST << power);
        let numbers = doubles.flat_map(|double| [double, double + double / 2]);
        // Writing the longest loops takes most of the time.
        let numbers = numbers.filter(|jumps| *jumps <= LONGEST_STEPS || jumps.is_power_of_two());
        let numbers = numbers.take_while(|jumps| *jumps < most).chain([most]);
        let rounds: Vec<Round> = numbers.map(|jumps| self.round(jumps)).collect();
        let each = |round: &Round| round.each(one);
        let evidence: Vec<[u64; 2]> =
            rounds.iter().map(|round| [round.jumps.into(), each(round)]).collect();
        let (mut steps, mut doubtful) = (Vec::new(), 0);
        let mut at = 0;
        while at + 1 < rounds.len() {
            let (before, mut end) = (each(&rounds[at]), at);
            while rounds.get(end + 1).is_some_and(|next| each(next) >= each(&rounds[end]) + STEP) {
                end += 1;
            }
            if end > at {
                let after = each(&rounds[end]);
                let wrong = wrong(&evidence, (at, end), u64::midpoint(before, after), |_| 0);
                doubtful += wrong;
                if wrong as usize * 8 > evidence.len() {
                    at = end;
                    continue;
                }
                let fits = self.last_before(one, rounds[at], (rounds[at + 1].jumps, after));
                steps.push([fits.into(), before, after]);
            }
            at = end.max(at + 1);
        }
        DirectLoops { distance: self.distance, steps, doubtful, evidence }
    }

    /// The most jumps before one more costs what a miss does, of those between `fits` and `more`.
    fn last_before(&mut self, one: Round, fits: Round, (more, after): (u32, u64)) -> u32 {
        let miss = (after - fits.each(one)) * 10;
        let (mut low, mut high) = (fits.jumps, more);
        while high - low > 1 {
            let middle = u32::midpoint(low, high);
            let jumps = u64::from(middle - 1);
            let whole = fits.hundredths.saturating_sub(one.hundredths) * jumps;
            let expected = one.hundredths + whole / u64::from(fits.jumps - 1);
            match self.round(middle).hundredths < expected + miss {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    fn round(&mut self, jumps: u32) -> Round {
        let distance = self.distance;
        let rounds = (JUMPS / jumps).clamp(FEWEST_ROUNDS, MOST_ROUNDS);
        // Long loops take so long that little can disturb them.
        let tries = if jumps < LONG { TRIES } else { 2 };
        let cycles = self.probe.cycles(&Program::Direct { jumps, distance, rounds }, tries);
        self.probe.beat();
        Round { jumps, hundredths: cycles * 100 / u64::from(rounds) }
    }
}

impl Round {
    /// Tenths of a cycle of each jump.
    fn each(self, one: Self) -> u64 {
        let jumps = u64::from(self.jumps - 1).max(1);
        (self.hundredths.saturating_sub(one.hundredths) + 5 * jumps) / (10 * jumps)
    }
}
