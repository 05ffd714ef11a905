//! The rows of a history.

use super::Historian;
use super::begin::{self, Begin, Lost};
use super::plan::{self, CLOCK_NUMBER, WITNESS_NUMBER};
use super::programmed_pass::{ProgrammedPass, Run};
use crate::snippet::events::Counted;
use crate::snippet::measure::{Unmeasured, executions, run_once};
use crate::statistics::spread;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use arch::pmu::stop_on_overflow::{Stop, StopOnOverflow};
use protocol::hex::Hex;
use protocol::job::Snippet;
use protocol::job::history::History;
use protocol::record::{
    HistoryPass, HistoryPlace, HistoryResult, HistorySeries, StoppedBy, Unit, Verdict, Within,
};

/// Measures the history of item `item`. The record's times are left 0.
///
/// # Errors
/// The exception that the snippet raised, or why there is no history of it.
pub fn measure(
    machine: &mut impl Historian,
    item: u32,
    history: &History,
) -> Result<HistoryResult, Unmeasured> {
    let snippet = &history.snippet;
    let mut controls = machine.control(snippet).map_err(Unmeasured::Refused)?;
    let (planned, ways) = {
        let pmu = machine.pmu().map_err(Unmeasured::Refused)?;
        (
            plan::plan(history, pmu.known).map_err(Unmeasured::Refused)?,
            StopOnOverflow::ways(pmu.driver),
        )
    };
    run_once(machine, snippet)?;
    watched(machine, snippet)?;
    let mut result = HistoryResult {
        item,
        name: snippet.name.to_string(),
        verdict: Verdict::None,
        misses: Vec::new(),
        clock: history.clock.to_string(),
        step: history.step,
        runs: snippet.runs,
        per: executions(snippet),
        end_to_end: history.end_to_end,
        stopped_by: StoppedBy::Freeze,
        passes: Vec::new(),
        series: Vec::new(),
        program: None,
        places: Vec::new(),
        uncounted: planned.uncounted,
        controls: Vec::new(),
        restored: Vec::new(),
        remarks: Vec::new(),
        emulated: false,
        tsc: [0; 2],
    };
    for pass in &planned.passes {
        by_one_way(machine, history, pass, ways, planned.shows_witness, &mut result)?;
    }
    if snippet.setup.call.is_some() {
        result.program = machine.called();
    } else {
        result.places.clear();
    }
    machine.finish(&mut controls).map_err(Unmeasured::Refused)?;
    result.controls = controls;
    result.remarks.sort();
    result.remarks.dedup();
    Ok(result)
}

/// Ordinary runs, in which a snippet without an end is ended: a watchdog together with the clock would be stopped with it. Nothing
/// is counted, as an emulated PMU would take long for it.
fn watched(machine: &mut impl Historian, snippet: &Snippet) -> Result<(), Unmeasured> {
    let _ = machine.program(&[]);
    machine.load(snippet, u64::from(snippet.unroll));
    for _ in 0..snippet.setup.initial_warmup.saturating_add(1) {
        if let Err(trap) = machine.run() {
            return Err(Unmeasured::Fault(Box::new(machine.explain(&trap, snippet))));
        }
    }
    Ok(())
}

/// The first way to stop the counters that works.
fn by_one_way(
    machine: &mut impl Historian,
    history: &History,
    pass: &[Counted],
    ways: &[Stop],
    shows_witness: bool,
    result: &mut HistoryResult,
) -> Result<(), Unmeasured> {
    let mut why_not: Option<String> = None;
    for &stop in ways {
        let mut bench = ProgrammedPass::new(machine, &history.snippet, pass, stop)?;
        let begin = match begin::find(&mut bench, history) {
            Ok(begin) => begin,
            Err(Lost::RunsOn(reason)) => {
                why_not = Some(match why_not {
                    Some(first) => format!("{first}; {reason}"),
                    None => reason,
                });
                continue;
            }
            Err(Lost::Unmeasured(unmeasured)) => return Err(unmeasured),
        };
        result.remarks.extend(why_not);
        result.stopped_by = match stop {
            Stop::Freeze => StoppedBy::Freeze,
            Stop::Handler => StoppedBy::Handler,
        };
        if !begin.exact {
            result.remarks.push(format!(
                "the clock `{}` does not count at the snippet's very beginning: what the code in front did since the \
                 event before is in the first row",
                history.clock
            ));
        }
        return rows(&mut bench, history, pass, &begin, shows_witness, result);
    }
    Err(Unmeasured::Refused(why_not.unwrap_or_else(|| "nothing stops the counters".to_string())))
}

/// All rows of a pass.
fn rows<M: Historian>(
    bench: &mut ProgrammedPass<M>,
    history: &History,
    pass: &[Counted],
    begin: &Begin,
    shows_witness: bool,
    result: &mut HistoryResult,
) -> Result<(), Unmeasured> {
    let mut skid = [u64::MAX, 0];
    let mut base = alloc::vec![0.0; pass.len()];
    let mut all: Vec<Vec<[f64; 3]>> = Vec::new();
    let last = if history.end_to_end { begin.instructions + begin.own } else { begin.own } as f64;
    let mut end = None;
    let mut places = Vec::new();
    if begin.front == 0 {
        // Nothing interrupts in front of the first row, which begins with the function; or with measuring code.
        let called = history.snippet.setup.call.as_ref().map_or(0, |call| call.function);
        places.push(if history.end_to_end { 0 } else { called });
    }
    if begin.front == 0 && !history.end_to_end {
        base[bench.witness] = begin.instructions as f64;
    }
    for row in 0..=history.rows() {
        bench.beat(Within { unit: Unit::Rows, done: row, total: history.rows() });
        let events = begin.front + row * u64::from(history.step);
        if events == 0 {
            continue;
        }
        let runs = bench.runs(events)?;
        let runs: Vec<Run> = runs.into_iter().filter(|run| run.stopped).collect();
        if runs.len() * 2 < history.snippet.runs as usize {
            // The code ends before the clock gets so far.
            break;
        }
        for late in runs.iter().map(|run| run.counts[bench.clock].saturating_sub(events)) {
            skid = [skid[0].min(late), skid[1].max(late)];
        }
        let of = |place: usize| {
            let values: Vec<u64> = runs.iter().map(|run| run.counts[place]).collect();
            spread(&values)
        };
        let seen: Vec<[f64; 3]> = (0..pass.len()).map(of).collect();
        places.push(place(&runs));
        if row == 0 {
            base = seen.iter().map(|spread| spread[1]).collect();
            // Known, also where the clock has stepped over it.
            base[bench.witness] = (begin.instructions + bench.handling) as f64;
            continue;
        }
        let ends = seen[bench.witness][1] - base[bench.witness] >= last;
        if ends && end.is_none() {
            end = Some(row * u64::from(history.step));
        }
        all.push(seen);
        if ends && bench.stop() == Stop::Handler {
            // After the snippet the counters are being switched off, and a handler finds some of them so.
            break;
        }
    }
    let is_first = result.passes.is_empty();
    if is_first {
        let place = |address| HistoryPlace { address: Hex(address), ..HistoryPlace::default() };
        result.places = places.into_iter().take(all.len()).map(place).collect();
    }
    let skid = if all.is_empty() { [0; 2] } else { skid };
    let mut instructions = Vec::new();
    if shows_witness && !is_first {
        let own = |row: &Vec<[f64; 3]>| row[bench.witness][1] - base[bench.witness];
        instructions.extend(all.iter().map(own));
    }
    result.passes.push(HistoryPass {
        front: begin.front,
        end,
        whole: begin.whole,
        skid,
        instructions,
    });
    let shown = |one: &Counted| match one.number {
        CLOCK_NUMBER => false,
        WITNESS_NUMBER => shows_witness && is_first,
        _ => true,
    };
    let mut numbered: Vec<(usize, usize)> = pass
        .iter()
        .enumerate()
        .filter(|(_, one)| shown(one))
        .map(|(at, one)| (one.number, at))
        .collect();
    numbered.sort_unstable();
    for (_, place) in numbered {
        result.series.push(series(&pass[place], base[place], all.iter().map(|row| row[place])));
    }
    Ok(())
}

/// The address that is in the middle of where the runs were interrupted: that of most, if they differ little.
fn place(runs: &[Run]) -> u64 {
    let mut all: Vec<u64> = runs.iter().map(|run| run.at).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

/// One event's rows, from its counts since the switch.
fn series(one: &Counted, base: f64, rows: impl Iterator<Item = [f64; 3]> + Clone) -> HistorySeries {
    let of = |which: usize| rows.clone().map(move |row| row[which] - base).collect::<Vec<f64>>();
    let median = of(1);
    let before = core::iter::once(&0.0).chain(&median);
    let each = median.iter().zip(before).map(|(now, before)| now - before).collect();
    let (min, max) = (of(0), of(2));
    HistorySeries {
        event: one.event.clone(),
        counting: one.counting.clone(),
        front: base,
        median,
        min,
        max,
        each,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arch::pmu::{Counter, Selection};
    use protocol::record::Counting;

    #[test]
    fn m16_a_row_begins_where_the_run_in_the_middle_was_interrupted() {
        let at = |at| Run { counts: Vec::new(), stopped: true, at };
        assert_eq!(place(&[9, 1, 5, 2, 5].map(at)), 5);
        assert_eq!(place(&[4, 1].map(at)), 4);
        assert_eq!(place(&[at(7)]), 7);
    }

    #[test]
    fn m16_a_row_has_its_least_its_median_and_its_greatest() {
        let counting = Counting {
            name: "LOADS".into(),
            counter: "counter 0".into(),
            pass: 0,
            remarks: Vec::new(),
            ..Counting::default()
        };
        let one = Counted {
            number: 0,
            event: "loads".into(),
            counter: Counter::General(0),
            selection: Selection::of(0xc0, 0),
            merges: false,
            counters: 0,
            metric: None,
            level: 0,
            retired: None,
            counting,
        };
        let rows = [[10.0, 12.0, 19.0], [13.0, 15.0, 16.0]];
        let seen = series(&one, 10.0, rows.into_iter());
        assert_eq!(seen.min, [0.0, 3.0]);
        assert_eq!(seen.median, [2.0, 5.0]);
        assert_eq!(seen.max, [9.0, 6.0]);
        assert_eq!(seen.each, [2.0, 3.0], "of the medians");
    }
}
