use super::*;
use crate::program::ProgramKey;
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

/// What each kind of item has of its own is found through the item: its name, its code, and which record ends it.
fn is_itself(mut item: crate::job::Item<'static>) {
    let whole = serde_json::to_value(&item).unwrap();
    let (kind, own) = whole.as_object().unwrap().iter().next().unwrap();
    let name = own.get("name").or_else(|| own["snippet"].get("name")).and_then(Value::as_str);
    assert_eq!(Some(item.name()), name, "{kind}");
    assert_eq!(item.part().snippet().is_some(), item.part_mut().snippet_mut().is_some(), "{kind}");
    let runs = item.part().snippet().map_or(1, |snippet| snippet.runs);
    for mut record in ends() {
        let ends_it = match &record {
            Record::Result(_) => kind == "Snippet" && runs == 1,
            Record::Exact(_) => kind == "Exact",
            Record::Tasks(_) => kind == "Tasks",
            Record::Count(_) => kind == "Count",
            Record::Processors(_) => kind == "Processors",
            Record::Sample(_) => kind == "Sample",
            Record::History(_) => kind == "History",
            _ => false,
        };
        let found = record.result().is_some_and(|result| result.is_of(&item));
        assert_eq!(found, ends_it, "{kind}: {record:?}");
        assert_eq!(record.item_mut().map(|number| *number), Some(3));
        assert!(record.ends_item(), "{record:?}");
    }
}

proptest::proptest! {
    #[test]
    fn every_item_is_ended_by_the_record_of_its_kind(job in crate::job::tests::any_job()) {
        job.items.into_iter().for_each(is_itself);
    }
}

/// Every record that belongs to an item has its number in one place; those of the machine have none.
#[test]
fn the_number_of_an_item_can_be_changed() {
    let texts = [
        json!({ "type": "check", "item": 3, "name": "c", "verdict": "pass", "expected": "", "seen": "", "source": "" }),
        json!({ "type": "console", "item": 3, "number": 1, "what": "waits", "tsc": 0 }),
        json!({ "type": "cpuid", "item": 3, "cpu": 0, "answers": [] }),
        json!({ "type": "msrs", "item": 3, "cpu": 0, "found": true, "values": [], "absent": [] }),
        json!({ "type": "acpi", "item": 3, "tables": [] }),
        json!({ "type": "measure", "item": 3, "name": "m", "unit": "", "runs": 1, "min": 0, "median": 0, "max": 0 }),
    ];
    let records = texts.map(|text| {
        serde_json::from_value::<Record>(text.clone())
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    });
    let suite = json!({
        "type": "suite", "item": 3, "name": "s", "passed": 1, "failed": 0, "skipped": 0, "known_errata": 0, "lacks": [],
    });
    let suite = serde_json::from_value::<Record>(suite).unwrap();
    let samples = Record::Samples(Samples { item: 3, ..Samples::default() });
    let error = json!({ "type": "error", "item": 3, "code": "bad_job", "text": "" });
    let crash = json!({
        "type": "crash", "item": 3, "kind": "panic", "text": "", "backtrace": [],
        "registers": serde_json::to_value(Registers::default()).unwrap(),
    });
    let failures = [error, crash].map(|json| serde_json::from_value::<Record>(json).unwrap());
    for mut record in records.into_iter().chain([samples, suite]).chain(failures) {
        *record.item_mut().unwrap() = 5;
        assert_eq!(serde_json::to_value(&record).unwrap()["item"], 5, "{record:?}");
    }
}

/// An error may be of no item, or be followed by the item's own end.
#[test]
fn an_error_ends_its_item_unless_more_follows() {
    let ends = |own: Value| {
        let mut whole = json!({ "type": "error", "code": "bad_job", "text": "" });
        own.as_object().unwrap().iter().for_each(|(key, value)| whole[key] = value.clone());
        serde_json::from_value::<Record>(whole).unwrap().ends_item()
    };
    let all = [json!({ "item": 3 }), json!({ "item": 3, "more": true }), json!({})].map(ends);
    assert_eq!(all, [true, false, false]);
}

/// A figure that is 0 is left out, as is the boot processor; all else is said, and comes back.
#[test]
fn what_is_not_zero_is_said() {
    let said = |value: &Value, field: &str| value.get(field).and_then(Value::as_u64);
    let suite = |known_behaviours| Suite {
        item: 0,
        name: "s".into(),
        passed: 1,
        failed: 0,
        skipped: 0,
        known_errata: 0,
        known_behaviours,
        emulated: false,
        reason: None,
        lacks: Vec::new(),
    };
    let to = |value: Result<Value, serde_json::Error>| value.unwrap();
    for (number, expected) in [(0, None), (3, Some(3))] {
        let one = to(serde_json::to_value(suite(number)));
        assert_eq!(said(&one, "known_behaviours"), expected);
        let noise = NoiseFacts { raised: number, ..NoiseFacts::default() };
        assert_eq!(said(&to(serde_json::to_value(noise)), "raised"), expected);
        let energy = CountedEnergy { reader: number, ..CountedEnergy::default() };
        assert_eq!(said(&to(serde_json::to_value(energy)), "reader"), expected);
        let sampled = SampledCount { filtered: number.into(), ..SampledCount::default() };
        assert_eq!(said(&to(serde_json::to_value(sampled)), "filtered"), expected);
        let samples = Samples { cpu: number as u16, ..Samples::default() };
        assert_eq!(said(&to(serde_json::to_value(samples)), "cpu"), expected);
    }
}

/// Bytes of memory that are left out are said if there are any.
#[test]
fn memory_that_the_mtrrs_leave_uncached_is_said_if_there_is_some() {
    let machine = |bytes: u64| {
        let whole = json!({
            "vendor": "", "brand": "", "family": 6, "model": 1, "stepping": 1, "memory_bytes": 1,
            "topology": { "apic_id": 0, "threads_per_core": 1, "threads_per_package": 1 },
            "tsc": { "hz": 1, "source": "cpuid", "invariant": true }, "apic": { "mode": "xapic", "timer_hz": 1 },
            "memory_uncached_bytes": bytes,
        });
        let machine = serde_json::from_value::<Machine>(whole).unwrap();
        serde_json::to_value(machine).unwrap().get("memory_uncached_bytes").cloned()
    };
    assert_eq!([0, 4096].map(machine), [None, Some(Value::from(4096))]);
}

/// A register that fell has a sign; reports of earlier versions have it as two's complement.
#[test]
fn i10_a_series_that_fell_has_a_sign_and_is_read_from_reports_without() {
    let fell = Series { min: -100, max: 7, distinct: 2, values: Some(Vec::from([-100, 7])) };
    let told = json!({ "min": -100, "max": 7, "distinct": 2, "values": [-100, 7] });
    assert_eq!(serde_json::to_value(&fell).unwrap(), told);
    let wrapped = u64::MAX - 99;
    let earlier = json!({ "min": wrapped, "max": 7, "distinct": 2, "values": [wrapped, 7] });
    for json in [told, earlier] {
        assert_eq!(serde_json::from_value::<Series>(json).unwrap(), fell);
    }
    let none: Series = serde_json::from_str(r#"{"min":0,"max":0,"distinct":1}"#).unwrap();
    assert_eq!(none.values, None);
}
