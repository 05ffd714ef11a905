//! History mode against the register-level model of every processor: it is told what each instruction does, so the cycle
//! of each event is known.

mod clock;
mod faults;
mod freeze;
mod host;

use super::*;
use crate::snippet::measure::Unmeasured;
use host::{BRANCH, Host, LOAD, NOP};
use pmu_model::{Model, Mutation};
use protocol::job::history::History;
use protocol::job::{Difference, LoopCounter, Setup};
use protocol::program::Call;
use protocol::record::{HistoryResult, HistorySeries, StoppedBy};
use std::borrow::Cow;

fn models() -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(|&model| model != Model::None)
}

fn history(body: &[u8], events: &[&'static str], cycles: u32) -> History<'static> {
    let snippet = Snippet {
        name: Cow::Borrowed("made up"),
        init: Cow::Borrowed(&[]),
        body: Cow::Owned(body.to_vec()),
        unroll: 1,
        loop_count: 0,
        loop_counter: LoopCounter::R15,
        extended_state: false,
        warmup: 1,
        runs: 3,
        difference: Difference::Double,
        values: false,
        events: events.iter().map(|&text| Cow::Borrowed(text)).collect(),
        setup: Setup::default(),
    };
    History { snippet, clock: Cow::Borrowed("cycles"), cycles, step: 1, end_to_end: false }
}

fn measured(model: Model, history: &History) -> HistoryResult {
    measure(&mut Host::new(model), 7, history)
        .unwrap_or_else(|error| panic!("{model:?}: {error:?}"))
}

fn refusal(host: &mut Host, history: &History) -> String {
    match measure(host, 0, history) {
        Err(Unmeasured::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// The event that counts branches by its code.
fn branches(model: Model) -> &'static str {
    if model.spec().intel().is_some() { "r00c4" } else { "r00c2" }
}

const BODY: [u8; 8] = [NOP, BRANCH, NOP, NOP, BRANCH, LOAD, BRANCH, NOP];
const JUMPS: [f64; 8] = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0];

fn all_equal(one: &HistorySeries) -> bool {
    one.min == one.median && one.max == one.median
}

#[test]
fn m16_each_event_is_in_the_cycle_in_which_its_instruction_retires_on_every_model() {
    let mut ways = Vec::new();
    for model in models() {
        let result = measured(model, &history(&BODY, &["instructions", branches(model)], 8));
        let [instructions, jumps] = &result.series[..] else { panic!("{result:?}") };
        assert_eq!(instructions.each, [1.0; 8], "{model:?}");
        assert_eq!(instructions.median, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(jumps.each, JUMPS, "{model:?}");
        assert_eq!(jumps.median, [0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        assert!(all_equal(instructions) && all_equal(jumps));
        // Three loads of registers and an LFENCE, after the clock's own switch.
        assert_eq!((result.passes[0].front, result.passes[0].end), (4, Some(8)), "{model:?}");
        let host = Host::new(model);
        let freezes = host.freezes();
        assert_eq!(result.stopped_by == StoppedBy::Freeze, freezes, "{model:?}");
        let skid = result.passes[0].skid;
        assert_eq!(skid[0], skid[1]);
        assert_eq!(skid == [0; 2], freezes, "{model:?}: {skid:?}");
        assert_eq!((result.item, result.per, result.remarks.len()), (7, 1, 0));
        ways.push(freezes);
    }
    assert!(ways.contains(&true) && ways.contains(&false));
}

/// A row begins with the instruction in front of which the row before was stopped; with three loads and a LFENCE in front.
#[test]
fn m16_rows_of_a_call_say_where_they_begin_on_every_model() {
    for model in models() {
        let mut history = history(&BODY, &["instructions"], 6);
        let call = Call { program: 0, function: 77, teardown: Cow::Borrowed(&[]) };
        history.snippet.setup.call = Some(call);
        let result = measured(model, &history);
        let places = |result: &HistoryResult| -> Vec<u64> {
            result.places.iter().map(|place| place.address.0).collect()
        };
        assert_eq!(places(&result), [4, 5, 6, 7, 8, 9], "{model:?}");
        assert_eq!(result.program.map(|program| program.key.0), Some(9));
        history.step = 2;
        assert_eq!(places(&measured(model, &history)), [4, 6, 8], "{model:?}");
        history.step = 1;
        history.snippet.setup.call = None;
        let plain = measured(model, &history);
        assert_eq!((plain.program, plain.places.len()), (None, 0));
        if Host::new(model).freezes() {
            // From the switch on, nothing is stopped in front of the first row.
            history.snippet.setup.call = Some(Call::default());
            history.end_to_end = true;
            let first = places(&measured(model, &history));
            assert_eq!(first[..4], [0, 1, 2, 3], "{model:?}");
        }
    }
}

#[test]
fn m16_steps_copies_and_a_loop_are_in_the_rows() {
    for model in models() {
        let mut history = history(&[NOP, BRANCH], &[branches(model)], 12);
        (history.step, history.snippet.unroll) = (3, 4);
        let result = measured(model, &history);
        // Branches in cycles 2, 4, 6 and 8; the code ends after 8, the switch after it in 12.
        let rows = if Host::new(model).freezes() { 4 } else { 3 };
        assert_eq!(result.series[0].each, [1.0, 2.0, 1.0, 0.0][..rows], "{model:?}");
        assert_eq!((result.passes[0].end, result.per), (Some(9), 4));
        history.snippet.unroll = 1;
        history.snippet.loop_count = 4;
        history.step = 1;
        // Each turn is NOP, branch, DEC, JNZ.
        let result = measured(model, &history);
        let turn = [0.0, 1.0, 0.0, 1.0];
        assert_eq!(result.series[0].each, [turn; 3].concat(), "{model:?}");
        assert_eq!((result.passes[0].end, result.per), (None, 4));
    }
}

#[test]
fn m16_rows_end_where_the_counters_are_switched_off() {
    for model in models() {
        let result = measured(model, &history(&BODY, &[], 500));
        let rows = result.series[0].median.len();
        if Host::new(model).freezes() {
            // After the eight instructions come the four of the one write that switches all off.
            assert_eq!((result.passes[0].whole, rows), (16.0, 12), "{model:?}");
        } else {
            assert_eq!(rows, 8, "{model:?}");
        }
        assert_eq!(result.passes[0].end, Some(8));
    }
}

#[test]
fn m16_more_events_than_counters_take_passes_that_agree() {
    for model in models() {
        let event = branches(model);
        let events = [[event, "r00c0"]; 8].concat();
        let result = measured(model, &history(&BODY, &events, 8));
        assert!(result.passes.len() > 1, "{model:?}");
        assert!(result.passes.iter().all(|pass| *pass == result.passes[0]));
        assert_eq!((result.series.len(), result.uncounted.len()), (16, 0));
        for one in &result.series {
            let expected = if one.event == event { JUMPS } else { [1.0; 8] };
            assert_eq!(one.each, expected, "{model:?} {one:?}");
        }
    }
}

#[test]
fn m16_end_to_end_shows_the_code_in_front() {
    let mut item = history(&BODY, &["r00c4"], 12);
    item.end_to_end = true;
    let result = measured(Model::Skylake, &item);
    assert_eq!(result.series[0].each, [&[0.0; 4][..], &JUMPS[..]].concat());
    assert_eq!((result.passes[0].front, result.passes[0].end), (0, Some(12)));
    assert!(result.end_to_end);
}

/// A row stands on most of its runs: where the counters were stopped in one of four, there is none.
#[test]
fn m16_a_row_that_most_runs_do_not_reach_is_none() {
    for model in models().filter(|&model| !Host::new(model).freezes()) {
        let mut item = history(&BODY, &[branches(model)], 8);
        item.snippet.runs = 8;
        let mut host = Host::new(model);
        let whole = measure(&mut host, 0, &item).unwrap();
        assert_eq!(whole.series[0].each.len(), 8, "{model:?}");
        // Of the last 24 runs, which are the last three rows, the interrupt comes into one of four, or into three.
        let late = host.runs - 24;
        let rows = |heard: u64| {
            let mut host = Host::new(model);
            host.hears = Some(Box::new(move |run| run <= late || run % 4 < heard));
            measure(&mut host, 0, &item).unwrap().series[0].each.len()
        };
        assert_eq!((rows(1), rows(3)), (5, 8), "{model:?}");
        // Half of them are enough.
        assert_eq!(rows(2), 8, "{model:?}");
    }
}

/// The handler's instructions would be in the row, and in its greatest value.
#[test]
fn m16_a_run_with_a_system_management_interrupt_is_repeated() {
    for model in models() {
        let mut host = Host::new(model);
        let item = history(&BODY, &["instructions"], 8);
        let quiet = measure(&mut host, 0, &item).unwrap();
        let runs = host.runs;
        // The first is an ordinary one, of which nothing is counted.
        for run in [2, runs / 2, runs] {
            let mut host = Host::new(model);
            host.smi_at = Some(run);
            let result = measure(&mut host, 0, &item).unwrap();
            assert_eq!(result.series, quiet.series, "{model:?}, in run {run}");
            assert_eq!(host.runs, runs + 1, "{model:?}: one run more");
        }
    }
}

/// In addition to the rows, the snippet runs once to see whether it can, and as often as its first warm-up says, with the watchdog
/// on; and each row is told of.
#[test]
fn m16_a_history_begins_with_runs_that_are_watched_and_tells_each_row() {
    for model in models() {
        let runs = |initial_warmup| {
            let mut item = history(&BODY, &[], 8);
            item.snippet.setup.initial_warmup = initial_warmup;
            let mut host = Host::new(model);
            measure(&mut host, 0, &item).unwrap();
            let rows: Vec<u64> = host.beats.iter().map(|within| within.done).collect();
            assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6, 7, 8], "{model:?}");
            assert!(host.beats.iter().all(|within| within.total == 8), "{model:?}");
            host.runs
        };
        assert_eq!(runs(5), runs(0) + 5, "{model:?}");
        // The second one of them does not end.
        let mut item = history(&BODY, &[], 8);
        item.snippet.setup.initial_warmup = 1;
        let mut host = Host::new(model);
        host.fault_at = Some(3);
        let ended = measure(&mut host, 0, &item);
        assert!(matches!(ended, Err(Unmeasured::Fault(_))) && host.runs == 3, "{model:?}");
    }
}

/// Each cycle has as many slots as the processor is wide: one retires, the others wait for the front end where a branch is taken, and
/// for the back end elsewhere.
#[test]
fn s3_m16_the_slots_of_each_cycle_are_divided_by_perf_metrics() {
    let fields = ["topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];
    let mut tried = 0;
    for model in models().filter(|model| model.spec().intel().is_some_and(|has| has.metrics > 0)) {
        let result = measured(model, &history(&BODY, &fields, 8));
        assert_eq!((result.uncounted.len(), result.passes.len()), (0, 1), "{model:?}: {result:?}");
        let of = |event: &str| {
            let one = result.series.iter().find(|one| one.event == event).expect("a field");
            assert!(all_equal(one), "{model:?}: {one:?}");
            one.each.clone()
        };
        let [retiring, bad, front, back] = fields.map(of);
        assert_eq!((retiring, bad), (vec![1.0; 8], vec![0.0; 8]), "{model:?}");
        let others = front[1];
        assert!(others >= 4.0, "{model:?}");
        assert_eq!(front, JUMPS.map(|jump| jump * others), "{model:?}");
        assert_eq!(back, JUMPS.map(|jump| (1.0 - jump) * others), "{model:?}");
        tried += 1;

        let mut by_slots = history(&BODY, &fields, 8);
        by_slots.clock = Cow::Borrowed("fixed3");
        let text = refusal(&mut Host::new(model), &by_slots);
        assert!(text.contains("takes the counter of slots"), "{model:?}: {text}");
    }
    assert!(tried >= 3, "{tried}");
}

#[test]
fn s3_m16_a_history_in_which_perf_metrics_overflows_is_refused() {
    let fields = ["topdown-retiring", "topdown-be-bound"];
    let item = history(&[NOP; 80], &fields, 8);
    let mut host = Host::with(Model::IceLake, Mutation::MetricsOverflowEarly).unwrap();
    let text = refusal(&mut host, &item);
    assert!(text.contains("PERF_METRICS overflowed in a run"), "{text}");
    assert!(measure(&mut Host::new(Model::IceLake), 0, &item).is_ok());
}

/// Instructions stand once among the series, and beside every other pass.
#[test]
fn s3_m16_instructions_are_known_in_every_pass() {
    let events = ["instructions", "r00c2", "r00c2", "r00c2", "r00c2", "r00c2", "r00c2", "r00c2"];
    let result = measured(Model::Zen2, &history(&BODY, &events, 8));
    let [first, second] = &result.passes[..] else { panic!("two passes: {result:?}") };
    assert_eq!(first.instructions, [0.0; 0]);
    assert_eq!(second.instructions, result.series[0].median);
    let unwanted = measured(Model::Zen2, &history(&BODY, &events[1..], 8));
    assert!(unwanted.passes.iter().all(|pass| pass.instructions.is_empty()), "{unwanted:?}");
}
