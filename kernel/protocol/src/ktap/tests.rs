use super::*;
use crate::job::OnEnd;
use crate::line;
use crate::record::{Crash, CrashKind, End, Outcome, Registers};
use crate::stream::{Event, Problem, Reader};

fn record(json: &str) -> Record {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn behind(json: &str) -> Vec<String> {
    lines(&Ktap::new(9).behind(&record(json)))
}

/// The lines of a text of which each is ended as it should be.
fn lines(text: &[u8]) -> Vec<String> {
    let text = core::str::from_utf8(text).unwrap();
    let all = text.split_terminator("\r\n").map(str::to_string).collect::<Vec<_>>();
    let joined: String = all.iter().map(|line| format!("{line}\r\n")).collect();
    assert_eq!(joined, text);
    all
}

fn end(outcome: Outcome, records: u32) -> Record {
    let (passed, failed, measured) = (0, 0, 0);
    Record::End(End {
        records,
        outcome,
        passed,
        failed,
        measured,
        on_end: OnEnd::Halt,
        heap: None,
        stack: None,
    })
}

fn result(item: u32, name: &str, more: &str) -> String {
    let name = serde_json::to_string(name).unwrap();
    let metric = |event: &str, value: f64| {
        format!(
            r#"{{"event":"{event}","min":{value},"median":{value},"mean":{value},"max":{value},"deterministic":true,"series":[{{"min":0,"max":0,"distinct":1}},{{"min":0,"max":0,"distinct":1}}]}}"#
        )
    };
    let metrics = [metric("tsc", 3.5), metric("instructions", 2.0)].join(",");
    format!(
        r#"{{"type":"result","item":{item},"name":{name},{more},"per":1,"runs":1,"metrics":[{metrics}],"tsc":[0,1]}}"#
    )
}

const PASS: &str = r#""verdict":"pass""#;

#[test]
fn x6_the_plan_has_a_point_for_each_item_and_one_for_the_run() {
    let ktap = Ktap::new(3);
    assert_eq!(lines(&ktap.head()), ["KTAP version 1", "1..4"]);
    assert_eq!(Ktap::of_plan("1..4").unwrap().head(), ktap.head());
    for line in ["", "1..", "1..x", "ok 1 - a", "1..-1"] {
        assert!(Ktap::of_plan(line).is_none(), "{line}");
    }
}

#[test]
fn x6_a_result_is_a_point_with_its_figures_and_a_miss_a_sentence_before_it() {
    assert_eq!(behind(&result(2, "add", PASS)), ["ok 3 - add # 3.5 tsc, 2 instructions"]);
    let missed = r#""verdict":"fail","misses":[{"figure":"tsc","max":3.0,"value":3.5}]"#;
    let lines = behind(&result(0, "add", missed));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("# tsc came to 3.5; expected"), "{lines:?}");
    assert_eq!(lines[1], "not ok 1 - add # 3.5 tsc, 2 instructions");
}

#[test]
fn x6_a_name_begins_no_directive_and_ends_no_line() {
    let lines = behind(&result(0, "a # SKIP\\\nok 7", PASS));
    assert_eq!(lines, ["ok 1 - a ＃ SKIP＼ ok 7 # 3.5 tsc, 2 instructions"]);
}

#[test]
fn x6_errors_have_the_directive_of_their_kind() {
    let error = |code: &str| {
        behind(&format!(
            r#"{{"type":"error","code":"{code}","item":1,"name":"x","text":"no # 1"}}"#
        ))
    };
    assert_eq!(error("skipped"), ["ok 2 - x # SKIP no ＃ 1"]);
    assert_eq!(error("time_limit"), ["# no ＃ 1", "not ok 2 - x # TIMEOUT"]);
    assert_eq!(error("snippet_fault"), ["# no ＃ 1", "not ok 2 - x # ERROR"]);
    let of_no_item = r#"{"type":"error","code":"device","text":"no HPET"}"#;
    assert_eq!(behind(of_no_item), ["# no HPET"]);
}

#[test]
fn x6_a_suite_is_a_nested_test_with_a_point_for_each_check() {
    let mut ktap = Ktap::new(1);
    let verdicts = ["pass", "fail", "skip", "known_erratum", "known_behaviour"];
    for (name, verdict) in ["a", "b", "c", "d", "e"].into_iter().zip(verdicts) {
        let check = format!(
            r#"{{"type":"check","item":0,"name":"{name}","verdict":"{verdict}","expected":"v2","seen":"s","source":"E1"}}"#
        );
        assert_eq!(ktap.behind(&record(&check)), b"");
    }
    let suite = r#"{"type":"suite","item":0,"name":"pmu","passed":1,"failed":1,"skipped":1,"known_errata":1,"lacks":[]}"#;
    let expected = [
        "    KTAP version 1",
        "    # Subtest: pmu",
        "    1..5",
        "    ok 1 - a",
        "    not ok 2 - b",
        "    ok 3 - c # SKIP v2",
        "    ok 4 - d # XFAIL E1",
        "    ok 5 - e # XFAIL s",
        "not ok 1 - pmu",
    ];
    assert_eq!(lines(&ktap.behind(&record(suite))), expected);
    let none = r#"{"type":"suite","item":0,"name":"pmu","passed":0,"failed":0,"skipped":0,"known_errata":0,"reason":"no PMU","lacks":[]}"#;
    assert_eq!(ktap.behind(&record(none)), b"ok 1 - pmu # SKIP no PMU\r\n");
}

#[test]
fn x6_the_last_point_fails_if_the_report_is_not_whole_or_not_to_be_trusted() {
    for outcome in [Outcome::Pass, Outcome::Fail, Outcome::Skip] {
        assert_eq!(Ktap::new(2).behind(&end(outcome, 1)), b"ok 3 - the run\r\n");
    }
    for outcome in [Outcome::BadJob, Outcome::Crash] {
        assert_eq!(Ktap::new(0).behind(&end(outcome, 1)), b"not ok 1 - the run\r\n");
    }
    let mut ktap = Ktap::new(2);
    let changed = r#"{"type":"error","code":"firmware_changed","text":"by an item"}"#;
    assert_eq!(ktap.behind(&record(changed)), b"# by an item\r\n");
    assert_eq!(ktap.behind(&end(Outcome::Fail, 1)), b"not ok 3 - the run\r\n");
    let crash = Record::Crash(Crash {
        kind: CrashKind::Panic,
        text: "oh".to_string(),
        location: None,
        vector: None,
        error_code: None,
        item: None,
        registers: Registers::default(),
        backtrace: Vec::new(),
    });
    assert_eq!(ktap.behind(&crash), b"Bail out! oh\r\n");
}

/// A report in KTAP, line by line.
fn wire() -> Vec<String> {
    let mut ktap = Ktap::new(2);
    let records = [
        record(&result(0, "first", PASS)),
        record(
            r##"{"type":"error","code":"snippet_fault","item":1,"name":"second","text":"#UD"}"##,
        ),
        end(Outcome::Fail, 3),
    ];
    let mut wire = lines(&ktap.head());
    for (seq, record) in (0..).zip(&records) {
        wire.push(DIAGNOSTIC.to_string() + &line::encode(seq, record));
        wire.extend(lines(&ktap.behind(record)));
    }
    wire
}

fn read(lines: &[String]) -> (usize, Vec<String>, Vec<Problem>) {
    let mut reader = Reader::new();
    let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let mut events = reader.feed(text.as_bytes());
    events.extend(reader.finish());
    let (mut records, mut foreign, mut problems) = (0, Vec::new(), Vec::new());
    for event in events {
        match event {
            Event::Record { .. } => records += 1,
            Event::Foreign { text, .. } => foreign.push(text),
            Event::Problem(problem) => problems.push(problem),
        }
    }
    (records, foreign, problems)
}

#[test]
fn x6_a_reader_takes_the_records_and_nothing_of_ktap_is_foreign() {
    assert_eq!(read(&wire()), (3, Vec::new(), Vec::new()));
}

/// Whoever else writes such lines, or changes ours, is noticed.
#[test]
fn x6_a_reader_names_points_that_do_not_follow_from_the_records() {
    let mut lines = wire();
    let at = lines.iter().position(|line| line.starts_with("not ok 2")).unwrap();
    lines[at] = "ok 2 - second".to_string();
    lines.insert(0, "ok 1 - before the version".to_string());
    lines.push("ok 3 - the run".to_string());
    let (records, foreign, problems) = read(&lines);
    assert_eq!((records, problems.len()), (3, 0));
    assert_eq!(foreign, ["ok 1 - before the version", "ok 2 - second", "ok 3 - the run"]);
    // Without the version, the records are found all the same.
    let (records, foreign, problems) = read(&wire()[2..]);
    assert_eq!((records, problems.len()), (3, 0));
    assert_eq!(foreign.iter().filter(|line| *line == DIAGNOSTIC).count(), 3, "{foreign:?}");
}

#[test]
fn x6_a_lost_line_costs_what_it_costs_without_ktap() {
    let mut lines = wire();
    let at = lines.iter().position(|line| line.contains("snippet_fault")).unwrap();
    lines.remove(at);
    let (records, foreign, problems) = read(&lines);
    assert_eq!((records, problems), (2, vec![Problem::Lost(1..=1)]));
    assert_eq!(foreign, ["# ＃UD", "not ok 2 - second # ERROR"]);
}

/// Each boot has its own version and plan, before its start record.
#[test]
fn x6_the_points_of_a_second_boot_follow_from_its_own_records() {
    let boot = |name: &str| {
        let mut ktap = Ktap::new(1);
        let start = r#"{"type":"start","program":"barecount","version":"0","protocol":1,"image_base":"0x0","tsc":[0,1]}"#;
        let mut wire = lines(&ktap.head());
        for (seq, json) in (0..).zip([start.to_string(), result(0, name, PASS)]) {
            let record = record(&json);
            wire.push(DIAGNOSTIC.to_string() + &line::encode(seq, &record));
            wire.extend(lines(&ktap.behind(&record)));
        }
        wire
    };
    let (first, second) = (boot("first"), boot("second"));
    assert!(second.iter().any(|line| line.starts_with("ok 1 - second")), "{second:?}");
    let (records, foreign, problems) = read(&[&first[..], &second[..]].concat());
    assert_eq!((records, foreign), (4, Vec::new()));
    let line = first.len() as u64 + 3;
    assert_eq!(problems, [Problem::Restarted { line, after: 1 }, Problem::NoEnd { last: Some(1) }]);
}
