use super::*;
use crate::collect::{Collector, Report};
use crate::context::Context;
use crate::lab::engine::Place;
use protocol::line;
use protocol::record::Record;

/// A machine with these records; `complaint` if it did not finish.
fn machine(name: &str, records: &[&str], complaint: Option<&str>) -> Machine {
    let mut collector = Collector::new();
    for (seq, record) in (0..).zip(records) {
        let record: Record = serde_json::from_str(record).unwrap();
        collector.feed(format!("{}\r\n", line::encode(seq, &record)).as_bytes());
    }
    let report: Report = collector.finish();
    let complaint = complaint.map(str::to_string);
    let place = Place { name: name.to_string(), ..Place::default() };
    Machine { place, report, context: Context { complaint, ..Context::default() } }
}

fn result(item: u32, name: &str, verdict: &str, tsc: f64) -> String {
    let series = r#"[{"min":0,"max":0,"distinct":1},{"min":0,"max":0,"distinct":1}]"#;
    format!(
        r#"{{"type":"result","item":{item},"name":"{name}","verdict":"{verdict}","per":1,"runs":1,"metrics":[
           {{"event":"tsc","min":{tsc},"median":{tsc},"mean":{tsc},"max":{tsc},"deterministic":true,"series":{series}}}],"tsc":[0,1]}}"#
    )
}

fn end(records: u32, outcome: &str) -> String {
    format!(
        r#"{{"type":"end","records":{records},"outcome":"{outcome}","passed":0,"failed":0,"measured":0,"on_end":"halt"}}"#
    )
}

fn three() -> Vec<Machine> {
    let (first, second) = (result(0, "add", "none", 1.0), result(1, "div", "none", 26.5));
    let failed = result(1, "div", "fail", 99.0);
    let fault =
        r#"{"type":"error","code":"snippet_fault","item":0,"name":"add","text":"raised UD"}"#;
    vec![
        machine("a", &[&first, &second, &end(3, "pass")], None),
        machine("b", &[fault, &failed, &end(3, "fail")], None),
        machine("c", &[&first], Some("silent for 8 s")),
        machine("d", &[], Some("not free within 4 s")),
    ]
}

fn shown(format: LabFormat) -> String {
    let text = render(&three(), "job", format).unwrap();
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn x6_the_table_has_a_column_for_each_machine_and_says_what_became_of_it() {
    let table = shown(LabFormat::Table);
    let row = |part: &str| {
        let line = table.lines().find(|line| line.contains(part) && !line.contains(": "));
        let line = line.unwrap_or_else(|| panic!("no `{part}`: {table}"));
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(row("item "), ["item", "event", "a", "b", "c", "d"]);
    assert_eq!(row("add"), ["0", "add", "TSC", "ticks", "1", "FAULT", "1", "-"]);
    assert_eq!(row("div"), ["1", "div", "TSC", "ticks", "26.5", "99", "FAIL", "-", "-"]);
    for part in [
        "job, on 4 machines",
        "a: pass: 2 measured",
        "b: FAIL: 2 failed",
        "c: not whole: silent for 8 s",
        "d: not whole: not free within 4 s",
        "b: error: item 0 (add): raised UD",
    ] {
        assert!(table.contains(part), "no `{part}`: {table}");
    }
}

#[test]
fn energy_has_a_prefix_in_the_table_of_machines() {
    let energy =
        r#""energy":{"unit":14,"resolution":1e-9,"ticks":[1,2],"update":9},"deterministic""#;
    let one = result(0, "add", "none", 1.5e-8).replace(r#""tsc","#, r#""energy-pkg","#);
    let one = one.replace(r#""deterministic""#, energy);
    let machines = [machine("a", &[&one, &end(2, "pass")], None)];
    let table = render(&machines, "job", LabFormat::Table).unwrap();
    assert!(table.contains("15 nJ"), "{table}");
}

#[test]
fn x6_the_document_and_the_rows_have_every_machine() {
    let document: Value = serde_json::from_str(&shown(LabFormat::Json)).unwrap();
    assert_eq!(document["exit_code"], 3);
    let codes = document["machines"].as_array().unwrap().iter();
    let codes: Vec<_> = codes.map(|one| one["report"]["exit_code"].as_u64().unwrap()).collect();
    assert_eq!(codes, [0, 1, 3, 3]);
    let rows = shown(LabFormat::Csv);
    let of = |place: &str| rows.lines().filter(|row| row.starts_with(place)).count();
    assert_eq!([of("place,"), of("a,"), of("b,"), of("c,"), of("d,")], [1, 2, 2, 1, 0], "{rows}");
    let page = shown(LabFormat::Html);
    assert!(page.contains("not free within 4 s") && page.contains("26.5"), "machines in the page");
}

#[test]
fn x6_the_exit_code_is_that_of_the_machine_that_came_off_worst() {
    let mut all = three();
    assert_eq!(exit_code(&all), 3);
    all.truncate(2);
    assert_eq!(exit_code(&all), 1);
    all.truncate(1);
    assert_eq!(exit_code(&all), 0);
    assert_eq!(exit_code(&[]), 77);
}
