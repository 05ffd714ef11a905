use super::*;
use serde_json::{Value, json};

fn item(value: &Value, steady: bool) -> Item {
    let record: Record = serde_json::from_value(value.clone()).expect("a record");
    let item = of(&record, steady).expect("an item");
    // What is compared is what `expect` names, and nothing of it is forgotten.
    let named = protocol::record::figures(&record);
    let with_value: Vec<(String, f64)> =
        named.into_iter().filter_map(|one| Some((one.label, one.value?))).collect();
    let seen: Vec<(String, f64)> =
        item.figures.iter().map(|one| (one.name.clone(), one.value)).collect();
    if value["type"] != "check" {
        assert_eq!(seen, with_value);
    }
    item
}

fn figure<'a>(item: &'a Item, name: &str) -> &'a Figure {
    item.figures.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name}: {item:?}"))
}

fn metric(event: &str, series: [Value; 2], deterministic: bool) -> Value {
    json!({ "event": event, "min": 1.0, "median": 2.0, "mean": 2.0, "max": 3.0, "deterministic": deterministic,
            "series": series })
}

fn snippet(metrics: Vec<Value>, runs: u32) -> Value {
    json!({ "type": "result", "item": 3, "name": "a", "verdict": "none", "per": 10, "runs": runs,
            "metrics": metrics, "tsc": [0, 1],
            "uncounted": [{ "event": "nosuch", "reason": "unknown" }] })
}

#[test]
fn each_run_of_a_snippet_is_the_difference_of_both_codes() {
    let listed = |values: [u64; 3]| json!({ "min": values.iter().min(), "max": values.iter().max(), "distinct": 3, "values": values });
    let equal = || json!({ "min": 5, "max": 5, "distinct": 1 });
    let cut = |min: u64, max: u64| json!({ "min": min, "max": max, "distinct": 2 });
    let value = snippet(
        vec![
            metric("tsc", [listed([10, 12, 11]), listed([30, 31, 52])], false),
            metric("a", [equal(), listed([25, 26, 4])], false),
            metric("b", [cut(1, 3), cut(11, 23)], false),
            metric("c", [equal(), equal()], true),
        ],
        3,
    );
    let item = item(&value, false);
    assert_eq!(figure(&item, "tsc").spread, Spread::Runs(vec![2.0, 1.9, 4.1]));
    // A code that was the same in every run needs no list; counts may be less than those of the smaller code.
    assert_eq!(figure(&item, "a").spread, Spread::Runs(vec![2.0, 2.1, -0.1]));
    assert_eq!(figure(&item, "b").spread, Spread::Range([0.8, 2.2], 3));
    assert_eq!(figure(&item, "c").spread, Spread::Exact(3));
    assert_eq!((figure(&item, "tsc").unit, figure(&item, "a").unit), ("TSC ticks", "events"));
    assert_eq!(item.uncounted, [("nosuch".to_string(), "unknown".to_string())]);
}

#[test]
fn one_run_is_exact_only_where_every_run_is_the_same() {
    let equal = || json!({ "min": 5, "max": 5, "distinct": 1 });
    let value = snippet(vec![metric("tsc", [equal(), equal()], true)], 1);
    assert_eq!(item(&value, true).figures[0].spread, Spread::Exact(1));
    assert_eq!(item(&value, false).figures[0].spread, Spread::Unknown(ONE_RUN));
}

#[test]
fn counts_over_tasks_are_exact_if_they_had_a_counter_all_the_time() {
    let value = |counted: u64| json!({ "raw": 4, "scaled": 8, "counted": counted, "enabled": 10 });
    let event = |name: &str, counted| {
        json!({ "event": name, "name": "TABLE.NAME", "counter": "counter 0", "group": 0, "sum": value(counted),
                "cpus": [], "kernel": value(counted), "tasks": [value(counted)], "overflows": 7 })
    };
    let never = json!({ "event": "never", "name": "N", "counter": "", "group": 1,
        "sum": { "raw": 0, "counted": 0, "enabled": 9 }, "cpus": [],
        "kernel": { "raw": 0, "counted": 0, "enabled": 9 },
        "tasks": [{ "raw": 0, "counted": 0, "enabled": 9 }] });
    let task = json!({ "name": "t", "entry": "0x0", "end": "exit", "turns": 5, "switches": 2, "time": 9,
                       "value": "0x2a", "memory_crc32": "0x0" });
    let count = json!({ "type": "count", "item": 0, "name": "c", "tasks": [task], "events":
        [event("whole", 10), event("part", 5), never], "groups": 2, "passes": 1, "ticks": 3, "switches": 4, "tsc": [0, 1] });
    let counted = item(&count, true);
    let whole = figure(&counted, "whole, task t");
    assert_eq!((&whole.spread, whole.event.as_deref()), (&Spread::Exact(1), Some("TABLE.NAME")));
    assert_eq!(figure(&counted, "part").spread, Spread::Unknown(SCALED));
    assert_eq!(figure(&counted, "part, overflows").spread, Spread::Exact(1));
    assert!(
        counted.uncounted.iter().any(|(name, why)| name == "never" && why.contains("never had"))
    );
    assert_eq!(figure(&item(&count, false), "whole").spread, Spread::Unknown(ONE_RUN));
    let directions =
        ["whole", "ticks", "groups", "passes", "switches"].map(|name| figure(&counted, name).worse);
    assert_eq!(directions, [Worse::More, Worse::Never, Worse::Never, Worse::Never, Worse::More]);
}

#[test]
fn what_a_task_computed_has_to_stay_and_its_turns_not_to_become_less() {
    let task = json!({ "name": "t: x", "entry": "0x0", "end": "exit", "turns": 5, "switches": 2, "time": 9,
                       "value": "0x2a", "memory_crc32": "0x0", "user_instructions": 77 });
    let tasks = json!({ "type": "tasks", "item": 0, "name": "r", "tasks": [task], "switches": 4,
        "ticks": { "count": 1, "min": 0, "median": 0, "max": 0 }, "interrupts": [], "tsc": [0, 1] });
    let item = item(&tasks, true);
    let worse = |name: &str| figure(&item, name).worse;
    assert_eq!(worse("value, task t: x"), Worse::Either);
    assert_eq!(worse("turns, task t: x"), Worse::Less);
    assert_eq!(worse("instructions:u, task t: x"), Worse::More);
    let event = |name: &str| figure(&item, name).event.as_deref();
    assert_eq!(event("instructions:u, task t: x"), Some("instructions:u"));
    assert_eq!(event("turns, task t: x"), None);
}

#[test]
fn overflows_have_their_period() {
    let sampled = json!({ "type": "sample", "item": 0, "name": "s", "tasks": ["s"], "code": [], "on_full": "drop",
        "delivery": "fixed", "handling": "h", "interrupts": 0, "spurious": 0, "back_to_back": 0, "ticks": 0,
        "capability": { "overflow_interrupt": true, "culprit": "c", "freeze": "f", "skid": "s", "data_address": "d" },
        "events": [{ "event": "loads", "period": 1000, "overflows": 3, "samples": 3, "dropped": 0, "rest": 5 }],
        "tsc": [0, 1] });
    let item = item(&sampled, true);
    assert_eq!((figure(&item, "loads").value, figure(&item, "loads").period), (3005.0, None));
    assert_eq!(figure(&item, "loads, overflows").period, Some(1000));
    for name in ["loads", "loads, overflows"] {
        assert_eq!(figure(&item, name).event.as_deref(), Some("loads"), "{name}");
    }
}

#[test]
fn energy_of_what_runs_once_is_in_joules() {
    let tasks = json!({ "type": "tasks", "item": 0, "name": "r", "tasks": [], "switches": 4,
        "ticks": { "count": 1, "min": 0, "median": 0, "max": 0 }, "interrupts": [], "tsc": [0, 1],
        "energy": [{ "event": "energy-pkg", "register": "MSR 0x611", "joules": 1.5, "resolution": 0.1, "units": 3,
                     "unit": 14, "ticks": 1, "update": 1 }] });
    let item = item(&tasks, true);
    let units = ["energy-pkg", "switches"].map(|name| figure(&item, name).unit);
    assert_eq!(units, ["J", "events"]);
}

#[test]
fn rows_of_a_history_are_told_and_not_judged() {
    let history = json!({ "type": "history", "item": 0, "name": "h", "clock": "cycles", "step": 2, "runs": 10, "per": 1,
        "stopped_by": "freeze", "passes": [], "tsc": [0, 1], "series": [{
            "event": "loads", "counting": { "name": "L", "counter": "counter 0", "pass": 0 }, "front": 0.0,
            "median": [1.0, 2.0], "min": [1.0, 2.0], "max": [1.0, 3.0], "each": [1.0, 1.0] }] });
    let item = item(&history, false);
    assert_eq!(figure(&item, "loads").spread, Spread::Range([2.0, 3.0], 10));
    let row = figure(&item, "loads, row 2");
    assert_eq!((&row.spread, row.worse), (&Spread::Exact(10), Worse::Never));
}

#[test]
fn sums_are_exact_if_all_that_was_added_up_is() {
    let equal = || json!({ "min": 5, "max": 5, "distinct": 1 });
    let one = |processor: u32, exact| {
        json!({ "processor": processor, "apic_id": processor, "tsc_offset": 0, "tsc_offset_error": 0,
                "metrics": [metric("loads", [equal(), equal()], exact)], "snapshot_tsc": 0, "snapshot": [] })
    };
    let both = |exact: bool| {
        json!({ "type": "processors", "item": 0, "name": "p", "per": 10, "runs": 10, "tsc": [0, 1],
            "processors": [one(0, true), one(1, exact)], "sums": [{ "event": "loads", "value": 4.0, "processors": 2 }],
            "start_skew": { "min": 0, "median": 0, "max": 0 }, "snapshot": { "deadline": 0, "skew": 0, "events": [] } })
    };
    assert_eq!(figure(&item(&both(true), false), "loads, sum").spread, Spread::Exact(10));
    assert_eq!(figure(&item(&both(false), false), "loads, sum").spread, Spread::Unknown(SUM));
    assert_eq!(figure(&item(&both(false), false), "loads on cpu 0").spread, Spread::Exact(10));
    let of_sum = |value: &Value| {
        let item = item(value, false);
        let sum = figure(&item, "loads, sum");
        (sum.event.clone(), sum.unit)
    };
    assert_eq!(of_sum(&both(true)), (None, "events"));
    let mut value = both(true);
    let first = &mut value["processors"][0]["metrics"][0];
    first["counting"] = json!({ "name": "L", "counter": "c", "pass": 0 });
    first["energy"] = json!({ "unit": 14, "resolution": 0.5, "ticks": [1, 2], "update": 9 });
    assert_eq!(of_sum(&value), (Some("L".to_string()), "J"));
}

#[test]
fn a_check_that_fails_where_it_passed_is_worse_and_a_skipped_one_is_no_item() {
    let check = |verdict: &str| json!({ "type": "check", "item": 0, "name": "pmi.once", "verdict": verdict, "expected": "1", "seen": "2", "source": "s" });
    assert_eq!(item(&check("fail"), false).figures[0].value, 1.0);
    assert_eq!(item(&check("known_erratum"), false).figures[0].value, 0.0);
    let skipped: Record = serde_json::from_value(check("skip")).unwrap();
    assert!(of(&skipped, false).is_none());
}
