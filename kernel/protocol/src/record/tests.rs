use super::*;
use serde_json::{Value, json};

/// The least that each kind of record that ends an item can be, with one register put back.
fn ends() -> Vec<Record> {
    let common = json!({
        "item": 3, "name": "n", "restored": ["CR0"], "tsc": [0, 1], "per": 1, "runs": 1, "verdict": "none", "metrics": [],
        "counts": [], "opcodes": [], "listing": [], "listed": 0, "tasks": [], "switches": 0, "interrupts": [], "events": [],
        "groups": 1, "passes": 0, "processors": [], "sums": [], "code": [], "on_full": "drop", "delivery": "fixed",
        "handling": "", "spurious": 0, "back_to_back": 0, "clock": "cycles", "step": 1, "stopped_by": "freeze", "series": [],
        "ticks": 0, "text": "", "start_skew": serde_json::to_value(Skew::default()).unwrap(),
        "capability": serde_json::to_value(SamplingCapability::default()).unwrap(),
    });
    let of = |kind: &str, own: Value| {
        let mut whole = common.clone();
        whole["type"] = kind.into();
        for (field, value) in own.as_object().expect("fields") {
            whole[field] = value.clone();
        }
        serde_json::from_value(whole).unwrap_or_else(|error| panic!("{kind}: {error}"))
    };
    let snapshot = serde_json::to_value(Snapshot::default()).unwrap();
    let ticks = serde_json::to_value(Ticks::default()).unwrap();
    Vec::from([
        of("result", json!({})),
        of("exact", json!({})),
        of("tasks", json!({ "ticks": ticks })),
        of("count", json!({})),
        of("processors", json!({ "snapshot": snapshot })),
        of("sample", json!({ "interrupts": 0 })),
        of("history", json!({ "passes": [] })),
        of("error", json!({ "code": "bad_job" })),
    ])
}

/// State that was put back is neither lost nor passed over, whatever the item was.
#[test]
fn every_record_that_ends_an_item_has_the_state_that_was_put_back() {
    let mut all = ends();
    assert_eq!(all.len(), 8);
    for record in &mut all {
        let is_error = matches!(record, Record::Error(_));
        let read = record.restored().map(|(item, name, list)| (item, name, list.to_vec()));
        assert_eq!(read, (!is_error).then(|| (3, "n", Vec::from(["CR0".into()]))), "{record:?}");
        record.restored_mut().unwrap_or_else(|| panic!("it ends an item")).push("CR4".into());
        assert_eq!(record.restored_mut().map(|list| list.len()), Some(2), "{record:?}");
    }
    let mut none = Record::Progress(Progress { done: 0, total: 1, within: None });
    assert_eq!(none.restored(), None);
    assert_eq!(none.restored_mut(), None);
}

/// What is usual is left out of a record: a row of the first processor and of the first set, a program that was not moved.
#[test]
fn the_usual_is_left_out_and_all_else_is_said() {
    let row = |processor, set| CountInterval { processor, set, ..CountInterval::default() };
    let said = |row: &CountInterval| serde_json::to_value(row).unwrap();
    assert_eq!(said(&row(0, 0)), json!({ "tsc": 0, "raw": [] }));
    assert_eq!(said(&row(2, 1)), json!({ "tsc": 0, "raw": [], "processor": 2, "set": 1 }));
    let program = |bias| ProgramKey { key: Hex(1), bias: Hex(bias) };
    let said = |program: ProgramKey| serde_json::to_value(program).unwrap();
    assert_eq!(said(program(0)), json!({ "key": "0x1" }));
    assert_eq!(said(program(16)), json!({ "key": "0x1", "bias": "0x10" }));
}

/// A record of a boot that did not say how many processors have the emulated PMU is of one.
#[test]
fn an_emulated_pmu_is_one_processors_unless_it_says_more() {
    let read = |text: &str| serde_json::from_str::<EmulatedPmu>(text).map(|pmu| pmu.processors);
    assert_eq!(read(r#"{"model": 4, "tsc_shift": 6}"#).unwrap(), 1);
    assert_eq!(read(r#"{"model": 4, "tsc_shift": 6, "processors": 3}"#).unwrap(), 3);
}
