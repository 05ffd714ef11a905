//! What lies between processors: a line that goes from one to another and back, one that all change at the same time, and how long
//! who waits takes to answer.
//!
//! | figure | how | source |
//! | --- | --- | --- |
//! | line | two processors hand a number to each other through a line | N. Viennot, "core-to-core-latency"; D. Molka et al., "Memory Performance and Cache Coherency Effects on an Intel Nehalem Multiprocessor System" (PACT 2009) |
//! | contention | all change one line | T. David, R. Guerraoui, V. Trigonakis, "Everything You Always Wanted to Know About Synchronization but Were Afraid to Ask" (SOSP 2013) |
//! | waking | an interrupt or a store, and the answer through a line | |

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use protocol::record::{
    Contention, ContentionPoint, CoreFacts, CorePlace, LineAccess, LineMatrix, Times, Waiting, Wake,
};

/// Most processors whose pairs are measured: a record of more would be longer than a line of the report may be.
pub const MOST: usize = 64;
/// So many pairs may not answer before the rest is given up: each takes as long as anybody waits.
const PATIENCE: usize = 4;

/// Processors that can be made to work together.
pub trait Cores {
    /// Those that are there, the one that commands first.
    fn processors(&self) -> Vec<CorePlace>;

    /// Ticks of the TSC in a second.
    fn hz(&self) -> u64;

    /// Whether one runs at a time.
    fn in_turn(&self) -> bool;

    /// How often a line goes there and back in each sample.
    fn rounds(&self) -> u32;

    /// Hands a number to and fro between two of them. Ticks of each sample, by the clock of `from`.
    ///
    /// # Errors
    /// One of them does not answer, in a sentence.
    fn bounce(&mut self, by: LineAccess, from: usize, to: usize) -> Result<Vec<u64>, String>;

    /// Has the first so many change one line at the same time.
    ///
    /// # Errors
    /// One of them does not come, in a sentence.
    fn contend(&mut self, by: LineAccess, processors: usize) -> Result<ContentionPoint, String>;

    /// In which ways they can wait: with EAX of MWAIT for a state of sleep. And whether [`hints`] left some out.
    fn ways(&self) -> (Vec<(Waiting, Option<u32>)>, bool);

    /// Wakes one from the first: ticks of each time until its answer.
    ///
    /// # Errors
    /// It does not answer, in a sentence.
    fn wake(&mut self, way: (Waiting, Option<u32>), to: usize) -> Result<Vec<u64>, String>;

    /// Work has gone on; whoever waits may be informed.
    fn beat(&mut self) {}
}

/// Why [`hints`] leaves some out.
const STOPS: &str =
    "MWAIT deeper than C1 is not measured: there the TSC, which is not invariant, may stop";

/// EAX of MWAIT for each state of sleep that a processor tells. EDX of leaf 5, `states`, has how many there are, 4 bits for each
/// depth from C0 on; EAX of MWAIT has the depth less one in bits 7:4 (SDM vol. 2, CPUID and MWAIT). One that tells none has the
/// first, and that is all without an invariant TSC: another stops in deep states (SDM vol. 3, 17.17.1), and the offsets between
/// processors, which are measured once, would be wrong from then on. Also whether some are left out for that.
#[must_use]
pub fn hints(states: u32, is_invariant: bool) -> (Vec<u32>, bool) {
    let told = (1..8).filter(|depth| states >> (4 * depth) & 0xf != 0);
    let mut hints: Vec<u32> = told.map(|depth| (depth - 1) << 4).collect();
    let told = hints.len();
    hints.retain(|&hint| hint == 0 || is_invariant);
    let left_out = hints.len() < told;
    if hints.is_empty() {
        hints.push(0);
    }
    (hints, left_out)
}

/// Measures all of it.
pub fn measure(machine: &mut dyn Cores) -> CoreFacts {
    let mut processors = machine.processors();
    let mut facts =
        CoreFacts { tsc_hz: machine.hz(), in_turn: machine.in_turn(), ..CoreFacts::default() };
    if processors.len() > MOST {
        let there = processors.len();
        facts.reasons.push(format!("of {there} processors the first {MOST} are measured"));
        processors.truncate(MOST);
    }
    let count = processors.len();
    facts.processors = processors;
    if count < 2 {
        facts
            .reasons
            .push("there is one processor: nothing lies between it and another".to_string());
        return facts;
    }
    let mut failures = Failures::default();
    for by in LineAccess::ALL {
        facts.matrices.push(matrix(machine, by, count, &mut failures));
    }
    for by in LineAccess::ALL {
        let mut points = Vec::new();
        for competing in numbers(count) {
            points.extend(failures.take(|| machine.contend(by, competing)));
            machine.beat();
        }
        facts.contention.push(Contention { by, points });
    }
    let (ways, left_out) = machine.ways();
    if left_out {
        facts.reasons.push(STOPS.to_string());
    }
    for (waiting, hint) in ways {
        for to in 1..count {
            if let Some(mut samples) = failures.take(|| machine.wake((waiting, hint), to)) {
                let ticks = Times::of(&mut samples);
                facts.wakes.push(Wake { waiting, hint, processor: to as u32, ticks });
            }
            machine.beat();
        }
    }
    failures.tell(&mut facts.reasons);
    facts
}

fn matrix(
    machine: &mut dyn Cores,
    by: LineAccess,
    count: usize,
    failures: &mut Failures,
) -> LineMatrix {
    let mut tenths = vec![vec![None; count]; count];
    let (rounds, mut samples) = (machine.rounds(), 0);
    for (from, row) in tenths.iter_mut().enumerate() {
        for (to, cell) in row.iter_mut().enumerate().filter(|(to, _)| *to != from) {
            if let Some(mut ticks) = failures.take(|| machine.bounce(by, from, to)) {
                let times = Times::of(&mut ticks);
                samples = times.runs;
                let one_way = |ticks: u64| ticks * 10 / (2 * u64::from(rounds)).max(1);
                *cell = Some([times.least, times.median, times.ninetieth].map(one_way));
            }
            machine.beat();
        }
    }
    LineMatrix { by, rounds, samples, tenths }
}

/// Numbers of processors that compete: each up to four, then two for each power of two, and all of them.
fn numbers(count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (1..=4).collect();
    all.extend(
        (2..)
            .map(|power: u32| 1 << power)
            .take_while(|n| *n < count)
            .flat_map(|n| [n * 3 / 2, n * 2]),
    );
    all.push(count);
    all.retain(|n| *n <= count);
    all.sort_unstable();
    all.dedup();
    all
}

/// What did not answer.
#[derive(Default)]
struct Failures {
    reasons: Vec<String>,
    given_up: usize,
}

impl Failures {
    fn take<R>(&mut self, work: impl FnOnce() -> Result<R, String>) -> Option<R> {
        if self.reasons.len() >= PATIENCE {
            self.given_up += 1;
            return None;
        }
        work().map_err(|reason| self.reasons.push(reason)).ok()
    }

    fn tell(self, to: &mut Vec<String>) {
        to.extend(self.reasons);
        if self.given_up > 0 {
            to.push(format!("{} measurements more were given up behind these", self.given_up));
        }
    }
}

#[cfg(test)]
mod tests;
