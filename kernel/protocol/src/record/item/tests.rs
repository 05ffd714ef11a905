//! What a record of each kind says of itself, where no other test reads it.

use crate::job::criteria::Criteria;
use crate::job::{Conformance, Facts, Item};
use crate::record::{FactsResult, PipelineFacts, Record, Uncounted, Verdict, figures};
use crate::verdict::judge;
use alloc::boxed::Box;
use alloc::string::ToString;
use serde_json::{Value, json};

fn record(json: Value) -> Record {
    let text = json.to_string();
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn task(name: &str, end: &str, moves: Option<u64>) -> Value {
    json!({
        "name": name, "entry": "0x0", "end": end, "turns": 9, "switches": 2, "time": 5, "value": "0x2a",
        "memory_crc32": "0x0", "moves": moves,
    })
}

fn count(tasks: &[Value], own: Value) -> Record {
    let mut whole = json!({
        "type": "count", "item": 0, "name": "a", "tasks": tasks, "events": [], "groups": 1, "passes": 0, "ticks": 0,
        "switches": 0, "tsc": [0, 1],
    });
    own.as_object().expect("fields").iter().for_each(|(key, value)| whole[key] = value.clone());
    record(whole)
}

fn tasks(tasks: &[Value], own: Value) -> Record {
    let ticks = json!({ "count": 2, "min": 0, "median": 0, "max": 0 });
    let mut whole = json!({
        "type": "tasks", "item": 0, "name": "a", "tasks": tasks, "switches": 3, "ticks": ticks, "interrupts": [],
        "tsc": [0, 1],
    });
    own.as_object().expect("fields").iter().for_each(|(key, value)| whole[key] = value.clone());
    record(whole)
}

fn sample(tasks: &[Value]) -> Record {
    let capability = json!({
        "overflow_interrupt": true, "culprit": "c", "freeze": "f", "skid": "s", "data_address": "d",
    });
    let ticks = json!({ "count": 2, "min": 0, "median": 0, "max": 0 });
    record(json!({
        "type": "sample", "item": 0, "name": "a", "events": [], "tasks": [], "code": [], "on_full": "drop", "delivery": "fixed",
        "handling": "h", "interrupts": 0, "spurious": 0, "back_to_back": 0, "ticks": 0, "capability": capability,
        "schedule": { "tasks": tasks, "switches": 0, "ticks": ticks }, "tsc": [0, 1],
    }))
}

fn facts(core: PipelineFacts) -> Record {
    let mut result: FactsResult = serde_json::from_value(json!({
        "item": 0, "name": "a", "timer": "tsc", "bytes": 0, "cpuid": [], "tsc": [0, 1],
        "uncounted": [{ "event": "noise", "reason": "no timer" }],
    }))
    .expect("a fact sheet");
    result.core = Some(Box::new(core));
    Record::Facts(result)
}

fn value(record: &Record, name: &str) -> Option<f64> {
    figures(record).into_iter().find(|one| one.name == name).and_then(|one| one.value)
}

#[test]
fn m15_a_task_that_did_not_exit_fails_each_kind_that_runs_tasks() {
    type Made<'a> = &'a dyn Fn(&[Value]) -> Record;
    let kinds: [Made<'_>; 3] =
        [&|all| count(all, json!({})), &|all| tasks(all, json!({})), &sample];
    for kind in kinds {
        for (end, verdict) in
            [("exit", Verdict::None), ("fault", Verdict::Fail), ("limit", Verdict::Fail)]
        {
            let record = kind(&[task("t", "exit", None), task("u", end, None)]);
            let judged = judge(&Criteria::default(), &record).expect("it ends an item");
            assert_eq!(judged.verdict, verdict, "{record:?}");
        }
    }
}

/// Samples that were left out are none of the overflows, but their periods ended as well.
#[test]
fn of_random_periods_the_figure_is_what_the_unit_saw() {
    let Record::Sample(mut sampled) = sample(&[]) else { panic!("a sample") };
    let event = json!({
        "event": "ibs-op", "period": 272, "overflows": 100, "samples": 100, "dropped": 0, "filtered": 900,
        "ended": 272_000, "rest": 0,
    });
    sampled.events = serde_json::from_value(json!([event])).expect("events");
    assert_eq!(value(&Record::Sample(sampled.clone()), "ibs-op"), Some(272_000.0));
    sampled.events[0].ended = None;
    assert_eq!(value(&Record::Sample(sampled), "ibs-op"), Some(27_200.0));
}

#[test]
fn energy_and_moves_of_tasks_are_figures() {
    let all = [task("t", "exit", Some(4)), task("u", "exit", None)];
    let energy = json!({ "energy": [{
        "event": "energy-pkg", "register": "MSR 0x611", "joules": 1.5, "resolution": 0.1, "units": 3, "unit": 14,
        "ticks": 1, "update": 1,
    }] });
    for record in [count(&all, energy.clone()), tasks(&all, energy)] {
        assert_eq!(value(&record, "energy-pkg"), Some(1.5), "{record:?}");
        assert_eq!(value(&record, "moves, task t"), Some(4.0), "{record:?}");
        assert_eq!(value(&record, "moves, task u"), None, "it may not move");
    }
}

#[test]
fn c7_what_tasks_could_not_count_is_told() {
    let lost = json!({ "uncounted": [{ "event": "instructions:u", "reason": "no PMU" }] });
    let record = tasks(&[], lost);
    let uncounted = record.result().expect("a result").uncounted();
    assert_eq!(uncounted, [Uncounted { event: "instructions:u".into(), reason: "no PMU".into() }]);
}

#[test]
fn m14_figures_of_several_gates_have_the_names_of_their_tasks() {
    let gate = |task, starts| json!({ "task": task, "starts": starts, "stops": 1, "taken": 9, "deepest": 2 });
    let all = [task("t", "exit", None), task("u", "exit", None)];
    let several = count(&all, json!({ "gates": [gate(0, 5), gate(1, 7)] }));
    let named = |name: &str| value(&several, name);
    assert_eq!(["starts, task t", "starts, task u"].map(named), [Some(5.0), Some(7.0)]);
    assert_eq!(
        ["stops, task u", "deepest, task u", "starts"].map(named),
        [Some(1.0), Some(2.0), None]
    );
    let one = count(&all, json!({ "gates": [gate(1, 7)] }));
    assert_eq!(["starts", "starts, task u"].map(|name| value(&one, name)), [Some(7.0), None]);
}

#[test]
fn d1_a_fact_sheet_ends_its_own_kind_and_tells_what_it_could_not_measure() {
    let record = facts(PipelineFacts::default());
    let result = record.result().expect("a result");
    let parts = crate::job::facts::Parts { memory: false, core: true, cores: false, noise: false };
    let watch = crate::job::facts::Watch::default();
    assert!(result.is_of(&Item::Facts(Facts { name: "a".into(), bytes: 0, parts, watch })));
    assert!(
        !result.is_of(&Item::Conformance(Conformance { name: "a".into(), checks: Vec::new() }))
    );
    assert_eq!(
        result.uncounted(),
        [Uncounted { event: "noise".into(), reason: "no timer".into() }]
    );
}

#[test]
fn d1_a_miss_that_costs_nothing_that_is_seen_is_no_figure() {
    let cost = |miss_tenths| {
        let mut core = PipelineFacts::default();
        core.code.miss_tenths = miss_tenths;
        value(&facts(core), "L1 code miss cycles")
    };
    assert_eq!([0, 1, 125].map(cost), [None, Some(0.1), Some(12.5)]);
}

/// Of several results, each says whose it is after the item's name.
#[test]
fn i11_a_result_is_of_the_item_that_has_its_name() {
    let is_named = |record: &Record| {
        let result = record.result().expect("a result");
        ["a", "b", "a, performance cores", "a, efficient cores"].map(|name| result.is_named(name))
    };
    let processors = |name: &str, core: Option<&str>| {
        record(json!({
            "type": "processors", "item": 0, "name": name, "per": 1, "runs": 1, "processors": [], "sums": [],
            "start_skew": { "min": 0, "median": 0, "max": 0 }, "core": core,
            "snapshot": { "deadline": 0, "skew": 0, "events": [] }, "tsc": [0, 1],
        }))
    };
    assert_eq!(is_named(&processors("a", None)), [true, false, false, false]);
    let of_kind = processors("a, performance cores", Some("performance"));
    assert_eq!(is_named(&of_kind), [true, false, true, false]);
    let same_text = processors("a, performance cores", None);
    assert_eq!(is_named(&same_text), [false, false, true, false]);
    assert_eq!(is_named(&tasks(&[], json!({}))), [true, false, false, false]);
}
