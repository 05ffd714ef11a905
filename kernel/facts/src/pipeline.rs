//! What a core is, determined from how long code takes that is written for it: its predictor of branches and its instruction cache.
//!
//! | figure | how | source |
//! | --- | --- | --- |
//! | misprediction | a function whose return address is changed by as much as nothing, or by the length of a jump | A. Fog, "The microarchitecture of Intel, AMD, and VIA CPUs", return stacks |
//! | return stack | calls nested ever deeper, each from one of two places that random bits choose: what returning takes beyond dropping the stack | H. Wong, "Microbenchmarking return address branch prediction" (2018) |
//! | targets | indirect jumps, a power of two bytes apart: how many of them are all predicted | V. Uzelac, A. Milenkovic, "Experiment flows and microbenchmarks for reverse engineering of branch predictor structures" (ISPASS 2009) |
//! | instruction cache | direct jumps in random order through lines of one set, against as many next to each other | as of targets; K. Yotov, K. Pingali, P. Stodghill, "X-Ray: A tool for automatic measurement of hardware parameters" (QEST 2005) |
//! | store forwarding | a chain of loads with a store before each: of the stored bytes, and of others | A. Fog (as above), store forwarding; H. Wong, "Store-to-load forwarding and memory disambiguation in x86 processors" (2014) |
//! | store buffer | stores to lines that were flushed, one more at a time | H. Wong, "Measuring reorder buffer capacity" (2013), with stores |
//! | width of issue | NOPs in a row, many less few | A. Fog (as above) |
//! | micro-op cache, loop buffer, decoders | loops of ever more NOPs of several lengths | A. Fog (as above), micro-op cache, loop buffer, decoding; as of targets |
//! | width of retirement | cycles in which at least so many instructions retire, after a load that misses | Intel SDM vol. 3, counter mask |
//! | direct jumps | loops of ever more of them | as of targets |
//! | window | two loads that miss, with ever more instructions of a kind between them | H. Wong (2013, as above) |
//! | denormals, SSE after AVX, self-modified code, split locks | two programs with as many instructions | A. Fog (as above); Intel's optimization manual |
//!
//! [`measure`] needs a [`CodeProbe`]: the firmware's, or a model of a predictor in tests; [`code`] writes what it runs.

pub mod code;
mod direct;
mod front;
mod hazards;
mod lines;
mod retire;
mod returns;
mod sets;
mod steps;
mod stores;
mod targets;
mod width;
mod window;

pub use direct::measure as direct;
pub use front::measure as front_end;
pub use hazards::measure as hazards;
pub use lines::measure as instruction_cache;
pub use retire::measure as retire;
pub use stores::measure as stores;
pub use width::{measure as width, of_loop_buffer as issue_of_loops};
pub use window::measure as window;

use alloc::string::ToString;
use alloc::vec::Vec;
use code::{Program, ROUNDS};
use protocol::record::{PipelineFacts, ReturnsFact, TargetsFact, Times};

/// Samples of what a misprediction costs.
const SAMPLES: usize = 9;
/// Tries of a program: the first ones train the predictor, and the quickest counts.
const TRIES: u32 = 4;
/// Why nothing is determined of what shows by mispredictions.
const FREE: &str = "a mispredicted return costs nothing that is seen";
const APART: &str = "samples of what a mispredicted return costs differ twofold";

/// A machine that runs programs.
pub trait CodeProbe {
    /// Bytes that it has for them: a power of two, at least [`code::LEAST_BYTES`] (256 KiB).
    fn bytes(&self) -> u32;

    /// Cycles of a program, of so many tries the quickest.
    fn cycles(&mut self, program: &Program<'_>, tries: u32) -> u64;

    /// Whether AVX can be used.
    fn has_avx(&self) -> bool {
        true
    }

    /// Whether a locked access may cross a line.
    fn splits_locks(&self) -> bool {
        true
    }

    /// Cycles in which at least so many instructions retire while a program runs, one try.
    ///
    /// # Errors
    /// Why that is not counted.
    fn retiring(&mut self, _program: &Program<'_>, _at_least: u8) -> Result<u64, &'static str> {
        Err("there is no counter of retired instructions")
    }

    /// Whether its cycles are those of the core.
    fn counts_core_cycles(&self) -> bool {
        true
    }

    /// Work has gone on; whoever waits may be informed.
    fn beat(&mut self) {}
}

/// Finds out what the core is.
pub fn measure(probe: &mut impl CodeProbe) -> PipelineFacts {
    let code = lines::measure(probe);
    let stores = stores::measure(probe);
    let issue = width::measure(probe);
    let retire = retire::measure(probe);
    let front = front::measure(probe, &code, issue.width);
    let issue = match front.loop_buffer {
        Some(entries) => width::of_loop_buffer(probe, entries),
        None => issue,
    };
    let direct = direct::measure(probe, &code, &front);
    let window = window::measure(probe);
    let hazards = hazards::measure(probe);
    let (mispredict_tenths, returns, targets) = predictor(probe);
    PipelineFacts {
        mispredict_tenths,
        returns,
        targets,
        code,
        stores,
        issue,
        retire,
        front,
        direct,
        window,
        hazards,
    }
}

/// What a misprediction costs, and the return stack and the table of targets, which show by it.
pub fn predictor(probe: &mut impl CodeProbe) -> (Times, ReturnsFact, TargetsFact) {
    let mut sample = || {
        let of = |elsewhere| Program::Return { elsewhere };
        let missed = probe.cycles(&of(true), TRIES);
        let tenths = missed.saturating_sub(probe.cycles(&of(false), TRIES)) * 10;
        (tenths + ROUNDS / 2) / ROUNDS
    };
    let mut samples: Vec<u64> = (0..SAMPLES).map(|_| sample()).collect();
    let times = Times::of(&mut samples);
    let tenths = times.median;
    let apart = times.least * 2 < tenths || times.most > tenths * 2;
    if tenths == 0 || apart {
        let reason = Some(if apart { APART } else { FREE }.to_string());
        let returns = ReturnsFact { reason: reason.clone(), ..ReturnsFact::default() };
        return (times, returns, TargetsFact { reason, ..TargetsFact::default() });
    }
    (times, returns::measure(probe, tenths), targets::measure(probe, tenths))
}
