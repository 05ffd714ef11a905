//! Where the snippet begins and ends, in instructions of the witness and in events of the clock.

use super::Historian;
use super::programmed_pass::{NEVER, ProgrammedPass, Run};
use crate::snippet::measure::Unmeasured;
use crate::statistics::spread;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arch::pmu::stop_on_overflow::Stop;
use protocol::job::Snippet;
use protocol::job::history::History;

/// What was found. Instructions are the witness's, counted from the switch that starts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Begin {
    /// Instructions in front of the snippet.
    pub instructions: u64,
    /// Instructions of the snippet.
    pub own: u64,
    /// Events of the clock in front of the snippet.
    pub front: u64,
    /// The clock counted at the very beginning, so that a row can end there.
    pub exact: bool,
    /// Events of the clock when nothing stops it.
    pub whole: f64,
}

/// Why a beginning was not found.
#[derive(Debug)]
pub(super) enum Lost {
    /// Nothing stops the counters this way, for this reason.
    RunsOn(String),
    /// Something else, which another way does not change.
    Unmeasured(Unmeasured),
}

impl From<Unmeasured> for Lost {
    fn from(unmeasured: Unmeasured) -> Self {
        Self::Unmeasured(unmeasured)
    }
}

/// The median of one event of the runs.
pub(super) fn median(runs: &[Run], place: usize) -> f64 {
    let values: Vec<u64> = runs.iter().map(|run| run.counts[place]).collect();
    spread(&values)[1]
}

/// Instructions of a snippet by which those of the handler in front of its writes are made up for, where it comes in
/// the middle of the writes after the snippet.
const LEAST: u64 = 3;

/// Totals of repeat_on_smi runs: the witness's and the clock's.
fn totals<M: Historian>(
    bench: &mut ProgrammedPass<M>,
    clock: &str,
) -> Result<[f64; 2], Unmeasured> {
    let runs = bench.runs(NEVER)?;
    if runs.iter().any(|run| run.counts[bench.clock] >= NEVER) {
        let text = format!("the snippet takes {NEVER} events of the clock `{clock}` or more");
        return Err(Unmeasured::Refused(text));
    }
    Ok([bench.witness, bench.clock].map(|place| median(&runs, place)))
}

/// Finds where the snippet begins, and leaves it loaded.
///
/// # Errors
/// A fault, or the reason why it cannot be found.
pub(super) fn find<M: Historian>(
    bench: &mut ProgrammedPass<M>,
    history: &History,
) -> Result<Begin, Lost> {
    let refuse = |text: String| Err(Lost::Unmeasured(Unmeasured::Refused(text)));
    let (snippet, clock) = (&history.snippet, &*history.clock);
    bench.load(&Snippet { loop_count: 0, ..snippet.clone() }, 0)?;
    let [empty, in_front] = totals(bench, clock)?;
    bench.load(snippet, u64::from(snippet.unroll))?;
    let [full, whole] = totals(bench, clock)?;
    let instructions = (empty as u64).saturating_sub(bench.closing);
    let own = (full - empty).max(0.0) as u64;
    let mut begin = Begin { instructions, own, front: 0, exact: true, whole };
    if whole < 1.0 {
        return refuse(format!("the clock `{clock}` counts nothing while the snippet runs"));
    }
    if bench.stop() == Stop::Handler && own < LEAST {
        return refuse(format!(
            "this processor does not freeze its counters, and its interrupt's handler cannot tell {own} instructions from \
             the switch behind them: it takes {LEAST}; unroll makes copies"
        ));
    }
    stops(bench, full)?;
    if !history.end_to_end {
        (begin.front, begin.exact) = front(bench, &begin)?;
        if begin.front as f64 >= whole {
            return refuse(format!(
                "the clock `{clock}` counts {whole} events before the snippet and none in it"
            ));
        }
    }
    if begin.front == 0 && bench.stop() == Stop::Handler {
        return refuse(format!(
            "without an event of the clock `{clock}` in front of the first row, what the interrupt's handler does itself \
             cannot be told apart; this processor does not freeze its counters"
        ));
    }
    if begin.front == 0 && !history.end_to_end && in_front >= 1.0 && !begin.exact {
        let first = bench.once(1)?;
        let skid = first.counts[bench.clock].saturating_sub(1);
        if skid > 0 {
            return refuse(format!(
                "the counters stop {skid} events of the clock `{clock}` late, when the snippet has begun already; \
                 drain-frontend = true puts more in front of it, end-to-end = true shows all as it is"
            ));
        }
    }
    Ok(begin)
}

/// Whether the counters stop at all.
fn stops<M: Historian>(bench: &mut ProgrammedPass<M>, all: f64) -> Result<(), Lost> {
    let run = bench.once(1)?;
    let runs_on = match bench.stop() {
        Stop::Freeze => run.counts[bench.witness] as f64 >= all,
        Stop::Handler => !run.stopped,
    };
    if !runs_on {
        return Ok(());
    }
    let who = match bench.stop() {
        Stop::Freeze => "the processor announces that it freezes its counters",
        Stop::Handler => "the interrupt's handler has to stop the counters",
    };
    let text = format!("{who}, and they went on to the end when the clock had counted one event");
    Err(Lost::RunsOn(text))
}

/// The clock's events in front of the snippet: the number after which the witness has counted just the code in front. If
/// it steps over that, the number before.
fn front<M: Historian>(
    bench: &mut ProgrammedPass<M>,
    begin: &Begin,
) -> Result<(u64, bool), Unmeasured> {
    let target = (begin.instructions + bench.handling) as f64;
    let mut at = |events: u64| -> Result<f64, Unmeasured> {
        let runs: Vec<Run> = bench.runs(events)?;
        let stopped: Vec<Run> = runs.into_iter().filter(|run| run.stopped).collect();
        // Where the code ended before, the snippet had begun.
        Ok(if stopped.is_empty() { f64::MAX } else { median(&stopped, bench.witness) })
    };
    let (mut low, mut high) = (1, begin.whole as u64);
    if at(high)? < target {
        return Ok((high, false));
    }
    while low < high {
        let middle = low.midpoint(high);
        if at(middle)? >= target {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let exact = at(low)? == target;
    Ok((if exact { low } else { low - 1 }, exact))
}
