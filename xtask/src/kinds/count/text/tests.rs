//! Counts over tasks in every form.

mod energy;
mod sets;

use crate::cli::Format;
use crate::collect::{Numbered, Report};
use crate::context::Context;
use crate::render::render;
use protocol::hex::Hex;
use protocol::record::{
    CountGate, CountInterval, CountResult, CountValue, CountedEvent, Record, TaskEnd, TaskResult,
    Uncounted, Verdict,
};

fn task(name: &str, end: TaskEnd) -> TaskResult {
    TaskResult {
        name: name.into(),
        entry: Hex(0),
        end,
        turns: 1,
        switches: 4,
        time: 99,
        value: Hex(0),
        memory_crc32: Hex(0),
        fault: None,
        user_instructions: None,
        child_user_instructions: None,
        added_to: None,
        outlived: None,
        moves: None,
        shares: Vec::new(),
        cpu: 0,
        bits: 64,
        ended_bits: None,
    }
}

fn report(end: TaskEnd) -> Report {
    let whole = |raw| CountValue { raw, scaled: Some(raw), counted: 100, enabled: 100 };
    let half = |raw| CountValue { raw, scaled: Some(2 * raw), counted: 50, enabled: 100 };
    let event = |event: &str, value: &dyn Fn(u64) -> CountValue| CountedEvent {
        event: event.into(),
        counter: "counter 1".into(),
        sum: value(30),
        cpus: vec![value(30)],
        kernel: value(3),
        tasks: vec![value(20), value(7)],
        ..CountedEvent::default()
    };
    let count = CountResult {
        item: 4,
        name: "two".into(),
        tasks: vec![task("a", TaskEnd::Exit), task("b", end)],
        events: vec![
            CountedEvent { overflows: Some(9), ..event("cycles", &whole) },
            event("loads", &half),
        ],
        uncounted: vec![Uncounted { event: "x".into(), reason: "unknown".into() }],
        intervals: vec![CountInterval {
            tsc: 1234,
            raw: vec![1011, 1012],
            tasks: vec![vec![501, 502], vec![403, 404]],
            ..CountInterval::default()
        }],
        verdict: if end == TaskEnd::Exit { Verdict::None } else { Verdict::Fail },
        groups: 2,
        passes: 1,
        ticks: 8,
        switches: 16,
        emulated: true,
        gates: vec![CountGate { task: 1, starts: 3, stops: 2, taken: 7, deepest: None }],
        lengthened: Some(77),
        ..CountResult::default()
    };
    let records = vec![Numbered { seq: 0, record: Record::Count(count) }];
    Report { records, ..Report::default() }
}

#[test]
fn i1_counts_by_task_scaled_counts_and_the_series_are_in_every_form() {
    let rendered = |format| render(&report(TaskEnd::Exit), &Context::default(), format);
    let table = rendered(Format::Table);
    for part in [
        "4 ",
        "two",
        "(emulated PMU)",
        "8 ticks, 16 switches, 2 groups of events in turns, 1 pass",
        "lengthened to 77 TSC ticks",
        "in b alone: started 3 times, stopped 2",
        "overflows",
        "1234",
        "not counted: x: unknown",
        "100.0 %",
        "50.0 %",
        "~60",
        "~40",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let csv = rendered(Format::Csv);
    assert!(csv.contains("4,two,count cycles,30,30,30,30,1,1,true,1,1,\n"), "{csv}");
    assert!(csv.contains("4,two,\"count loads, task b\",14,14,14,14,1,1,false,1,1,\n"), "{csv}");
    assert!(csv.contains("4,two,x,,,,,,,,,,uncounted\n"), "{csv}");
    let tap = rendered(Format::Tap);
    assert!(tap.contains("  counts:\n    - event: \"cycles\"\n      value: 30\n"), "{tap}");
    let mut waited = report(TaskEnd::Exit);
    let Record::Count(count) = &mut waited.records[0].record else { panic!() };
    count.events[1].sum = CountValue { raw: 0, scaled: None, counted: 0, enabled: 100 };
    let tap = render(&waited, &Context::default(), Format::Tap);
    assert!(tap.contains("    - event: \"loads\"\n      value: ~\n"), "{tap}");
    let json: serde_json::Value = serde_json::from_str(&rendered(Format::Json)).unwrap();
    assert_eq!(json["records"][0]["events"][1]["sum"]["scaled"], 60);
    assert_eq!(report(TaskEnd::Exit).items(), 1);
}

#[test]
fn what_is_known_of_an_event_is_said_once() {
    let mut report = report(TaskEnd::Exit);
    let Record::Count(count) = &mut report.records[0].record else { panic!() };
    count.events.push(count.events[0].clone());
    count.events.iter_mut().for_each(|event| event.remarks = vec!["erratum X1".into()]);
    let table = render(&report, &Context::default(), Format::Table);
    assert_eq!(table.matches("cycles: erratum X1").count(), 1, "{table}");
    assert_eq!(table.matches("loads: erratum X1").count(), 1, "{table}");
}

#[test]
fn m15_a_task_that_did_not_exit_is_named_and_fails_the_item() {
    let rendered = |format| render(&report(TaskEnd::Limit), &Context::default(), format);
    assert!(rendered(Format::Table).contains("  b: took too long\n"));
    assert!(rendered(Format::Csv).contains("4,two,count cycles,30,30,30,30,1,1,true,1,1,fail\n"));
    assert!(rendered(Format::Tap).contains("not ok 1 - two\n"));
}

/// What there is none of is not talked about, and what there is one of is one.
#[test]
fn a_count_says_what_there_was_and_nothing_of_the_rest() {
    let table = |dropped: u64, groups: u32, passes: u64| {
        let mut report = report(TaskEnd::Exit);
        let Record::Count(count) = &mut report.records[0].record else { panic!() };
        (count.dropped, count.groups, count.passes) = (dropped, groups, passes);
        render(&report, &Context::default(), Format::Table)
    };
    let plain = table(0, 1, 0);
    for absent in ["no room", "groups of events", " pass"] {
        assert!(!plain.contains(absent), "{absent}: {plain}");
    }
    assert!(table(1, 1, 0).contains("  and 1 row that did not fit\n"));
    let much = table(2, 3, 2);
    assert!(much.contains("  and 2 rows that did not fit\n"), "{much}");
    assert!(much.contains(", 3 groups of events in turns, 2 passes"), "{much}");
}
