use super::*;
use protocol::hex::Hex;
use protocol::line::{self, LineError};
use protocol::record::{ErrorCode, Progress, Start};

fn start() -> Record {
    let (program, version) = ("barecount".to_string(), "0".to_string());
    Record::Start(Start { program, version, protocol: 1, image_base: Hex(0), tsc: [0; 2] })
}

fn error(item: Option<u32>) -> Record {
    let text = "x".to_string();
    Record::Error(ErrorRecord {
        code: ErrorCode::Device,
        item,
        name: None,
        text,
        fault: None,
        restored: Vec::new(),
        more: false,
    })
}

/// Piece by piece, and over a restart.
#[test]
fn items_are_counted_as_they_come() {
    let progress = Record::Progress(Progress { done: 1, total: 2, within: None });
    let boot = [start(), error(Some(0)), progress, error(None), error(Some(1))];
    let (mut collector, mut seen) = (Collector::new(), Vec::new());
    for records in [&boot[..], &boot[..2]] {
        for (seq, record) in (0..).zip(records) {
            collector.feed(format!("{}\r\n", line::encode(seq, record)).as_bytes());
            assert_eq!(collector.items(), collector.report.items());
            seen.push(collector.items());
        }
    }
    assert_eq!(seen, [0, 1, 1, 1, 2, 0, 1]);
}

fn record(json: &str) -> Record {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn machine() -> Record {
    record(
        r#"{"type":"machine","vendor":"v","brand":"b","family":6,"model":1,"stepping":0,
            "topology":{"apic_id":0,"threads_per_core":1,"threads_per_package":1},
            "tsc":{"hz":1,"source":"pit","invariant":false},"apic":{"mode":"xapic","timer_hz":1},
            "processors":[],"memory_bytes":1}"#,
    )
}

fn end(outcome: &str) -> Record {
    record(&format!(
        r#"{{"type":"end","records":3,"outcome":"{outcome}","passed":0,"failed":0,"measured":0,"on_end":"halt"}}"#
    ))
}

fn crash(item: Option<u32>) -> Record {
    let registers = serde_json::to_string(&protocol::record::Registers::default()).unwrap();
    let item = item.map_or(String::new(), |item| format!(r#""item":{item},"#));
    record(&format!(
        r#"{{"type":"crash","kind":"exception","text":"t",{item}"registers":{registers},"backtrace":[]}}"#
    ))
}

fn samples(item: u32) -> Record {
    record(&format!(
        r#"{{"type":"samples","item":{item},"first":0,"addresses":[],"tsc":[],"events":[]}}"#
    ))
}

/// The last record of an item, of each kind.
fn endings() -> Vec<Record> {
    let head = r#""item":3,"name":"n","tsc":[0,1]"#;
    let of_tasks = r#""tasks":[],"switches":0"#;
    [
        r#""type":"result","verdict":"none","per":1,"runs":1,"metrics":[]"#.to_string(),
        r#""type":"exact","per":1,"counts":[],"opcodes":[],"listing":[],"listed":0"#.to_string(),
        r#""type":"history","clock":"cycles","step":1,"runs":1,"per":1,"stopped_by":"freeze","passes":[],"series":[]"#
            .to_string(),
        format!(r#""type":"count",{of_tasks},"events":[],"groups":1,"passes":0,"ticks":0"#),
        format!(
            r#""type":"tasks",{of_tasks},"ticks":{{"count":0,"min":0,"median":0,"max":0}},"interrupts":[]"#
        ),
        r#""type":"processors","per":1,"runs":1,"processors":[],"sums":[],
           "start_skew":{"min":0,"median":0,"max":0},"snapshot":{"deadline":0,"skew":0,"events":[]}"#
            .to_string(),
        r#""type":"sample","events":[],"tasks":[],"code":[],"on_full":"drop","delivery":"fixed","handling":"h",
           "interrupts":0,"spurious":0,"back_to_back":0,"ticks":0,"capability":{"overflow_interrupt":true,
           "culprit":"c","freeze":"f","skid":"s","data_address":"d"}"#
            .to_string(),
        r#""type":"suite","passed":0,"failed":0,"skipped":0,"known_errata":0,"lacks":[]"#.to_string(),
    ]
    .iter()
    .map(|own| record(&format!("{{{own},{head}}}")))
    .chain([error(Some(3))])
    .collect()
}

fn of(records: Vec<Record>) -> Report {
    let records = (0..).zip(records).map(|(seq, record)| Numbered { seq, record }).collect();
    Report { records, ..Report::default() }
}

#[test]
fn one_record_of_each_kind_ends_an_item_and_is_listed_among_its_own() {
    assert!(endings().iter().all(Record::ends_item));
    for other in [start(), machine(), end("pass"), crash(Some(3)), samples(3), error(None)] {
        assert!(!other.ends_item(), "{other:?}");
    }
    let report = of(endings());
    let kinds = [
        report.results().count(),
        report.exact().count(),
        report.histories().count(),
        report.counts().count(),
        report.tasks().count(),
        report.processors().count(),
        report.sampled().count(),
        report.suites().count(),
        report.errors().count(),
    ];
    assert_eq!((kinds, report.items()), ([1; 9], 9));
}

/// Checks end no item, and are listed in the order in which they came.
#[test]
fn checks_are_listed_in_their_order() {
    let check = |name: &str| {
        record(&format!(
            r#"{{"type":"check","item":0,"name":"{name}","verdict":"pass","expected":"","seen":"","source":""}}"#
        ))
    };
    let report = of(vec![start(), check("a.b"), error(None), check("a.a")]);
    let names: Vec<&str> = report.checks().map(|check| &check.name[..]).collect();
    assert_eq!((names, report.items()), (vec!["a.b", "a.a"], 0));
}

#[test]
fn single_samples_are_those_of_their_item() {
    let report = of(vec![samples(1), samples(2), samples(2)]);
    assert_eq!([0, 1, 2].map(|item| report.samples(item).count()), [0, 1, 2]);
}

/// A crash that names an item for which there is an error record; any other took the run down.
#[test]
fn a_crash_costs_an_item_where_an_error_record_says_so() {
    for (item, errors, expected) in [
        (Some(1), vec![error(Some(1))], true),
        (Some(1), vec![error(Some(2)), error(Some(1))], true),
        (Some(1), vec![error(Some(2))], false),
        (Some(1), vec![], false),
        (None, vec![error(None)], false),
    ] {
        let report = of([vec![crash(item)], errors].concat());
        let crash = report.crash().expect("it is there");
        assert_eq!(report.is_cost_of_item(crash), expected, "{report:?}");
    }
    assert_eq!(of(vec![start()]).crash(), None);
}

#[test]
fn a_report_with_a_defect_or_a_dispute_or_no_end_ends_with_3() {
    for (outcome, code) in [("pass", 0), ("fail", 1)] {
        let whole = of(vec![start(), machine(), end(outcome)]);
        assert_eq!(whole.exit_code(), code);
        let problem = Report { problems: vec![Problem::Lost(1..=1)], ..whole.clone() };
        let dispute = Report { disputes: vec!["d".to_string()], ..whole };
        assert_eq!((problem.exit_code(), dispute.exit_code()), (3, 3));
    }
    assert_eq!(of(vec![start(), machine()]).exit_code(), 3);
}

/// Endless text of others does not fill the memory. What is forged is a defect each time.
#[test]
fn foreign_text_and_forged_lines_are_kept_up_to_a_bound() {
    let mut report = of(vec![start()]);
    for line in 0..MAX_FOREIGN as u64 + 2 {
        let error = LineError::Unsigned;
        report.take(vec![
            Event::Foreign { line, text: "t".to_string() },
            Event::Problem(Problem::Forged { line, error }),
        ]);
    }
    let kept = (report.foreign.len(), report.forged.len(), report.problems.len());
    assert_eq!(kept, (MAX_FOREIGN, MAX_FOREIGN, MAX_FOREIGN + 2));
    assert_eq!(report.forged[0].0, 1, "one record had come");
}

/// With the boot's key: what the collector says of the report while it comes.
#[test]
fn a_collector_says_how_far_the_boot_is() {
    let key = Key::new([7; 16]);
    let mut collector = Collector::with_key(key);
    let mut raw = Vec::new();
    let said = |collector: &Collector| {
        (collector.records(), collector.is_up(), collector.signed(), collector.ended())
    };
    assert_eq!(said(&collector), (0, false, false, false));
    for (seq, (record, expected)) in (0..).zip([
        (start(), (1, false, true, false)),
        (machine(), (2, true, true, false)),
        (end("pass"), (3, true, true, true)),
    ]) {
        let line = line::encode_with(seq, &record, Some(&key)) + "\r\n";
        raw.extend_from_slice(line.as_bytes());
        collector.feed(line.as_bytes());
        assert_eq!(said(&collector), expected);
    }
    assert_eq!(collector.raw(), raw);
    let report = collector.finish();
    assert_eq!((report.exit_code(), &report.problems[..]), (0, &[][..]));
    assert!(report.machine().is_some() && report.end().is_some());
    // A line without the key's code is forged.
    let mut other = Collector::with_key(key);
    other.feed((line::encode(0, &start()) + "\n").as_bytes());
    let report = other.finish();
    assert_eq!((report.forged.len(), report.records.len()), (1, 0), "{report:?}");
    assert!(!Collector::new().signed());
}
