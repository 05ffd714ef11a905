use super::*;
use crate::events::Block;
use crate::metrics::names::{Asked, find};
use crate::metrics::request::{Target, ask};
use pmu_model::Model;
use serde_json::json;

fn asked(name: &str, sampled: &[&str]) -> Result<Ask, String> {
    let block = Block::embedded();
    let target = Target::of_model(Model::Skylake).unwrap();
    let (core, table) = target.tables(&block.tables()).unwrap();
    let asked: Asked = name.parse().unwrap();
    let found = find(&table, &[asked]).unwrap();
    let one = ask(&target, &core, &table, &found[0]).unwrap();
    one.among(&sampled.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn sample(counts: &[(&str, u64, u64, Option<u64>)]) -> SampleResult {
    let event = |&(event, overflows, rest, witness): &(&str, u64, u64, Option<u64>)| {
        json!({"event": event, "counter": "counter 0", "period": 100, "overflows": overflows, "samples": overflows, "dropped": 0,
            "throttled": 1, "rest": rest, "witness": witness})
    };
    let events: Vec<_> = counts.iter().map(event).collect();
    serde_json::from_value(json!({"item": 2, "name": "s", "events": events, "tasks": ["s"], "code": [], "on_full": "drop",
        "delivery": "fixed", "handling": "h", "addresses": [], "elsewhere": 0, "logged": 0, "dropped": 0, "stopped": false,
        "interrupts": 0, "spurious": 0, "back_to_back": 0, "capability": {"overflow_interrupt": true, "culprit": "c", "freeze": "f", "skid": "s", "data_address": "d"}, "ticks": 0, "tsc": [0, 1]}))
    .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn s3_a_ratio_of_samples_is_that_of_their_counters_and_its_spread_reaches_to_those_beside() {
    let ipc = asked("ipc", &["cycles:u", "instructions:u"]).unwrap();
    let of = |counts: &[(&str, u64, u64, Option<u64>)]| {
        of_sample(&sample(counts), std::slice::from_ref(&ipc), Clock::default()).rows.remove(0)
    };
    // Overflows, the one period that throttling left out, and the rest: 1,000 and 500.
    let row = of(&[("instructions:u", 9, 0, Some(1100)), ("cycles:u", 3, 100, Some(550))]);
    assert_eq!(row.value, Some(2.0), "{row:?}");
    // 1000 / 550 and 1100 / 500; 1100 / 550 lies between.
    assert_eq!(row.spread, Some([1000.0 / 550.0, 2.2]), "{row:?}");
    assert!(row.untrusted.is_empty(), "{row:?}");
    let row = of(&[("instructions:u", 9, 0, Some(1000)), ("cycles:u", 3, 100, None)]);
    assert_eq!((row.value, row.spread), (Some(2.0), None));
    assert!(row.untrusted[0].starts_with("cycles:u: no counter was free"), "{row:?}");
    let row = of(&[("instructions:u", 9, 0, Some(1000))]);
    assert!(row.missing.is_some_and(|why| why.contains("cycles:u was not counted")));
}

#[test]
fn s3_metrics_of_samples_are_of_what_is_sampled() {
    let refused = |name, sampled: &[&str]| asked(name, sampled).unwrap_err();
    let missing = refused("ipc", &["instructions:u"]);
    assert!(
        missing.starts_with("metric ipc: cycles is not sampled; a [[sample]] has metrics"),
        "{missing}"
    );
    let rings = refused("ipc", &["instructions:u", "cycles"]);
    assert!(rings.contains("its events are sampled in different rings"), "{rings}");
    for name in ["power", "frequency"] {
        let time = refused(name, &["cycles", "instructions"]);
        assert!(time.contains("needs energy or time"), "{time}");
    }
    assert!(asked("ipc", &["cycles", "instructions", "branches"]).is_ok());
}
