use super::*;
use crate::events::Block;
use crate::metrics::names::{Asked, find};
use crate::metrics::request::{Target, ask};
use pmu_model::Model;
use protocol::record::{CountedEnergy, CountedUncore, Uncounted};
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
    let time = refused("frequency", &["cycles", "instructions"]);
    assert!(time.contains("needs time, and some of it goes to the interrupts"), "{time}");
    assert!(asked("ipc", &["cycles", "instructions", "branches"]).is_ok());
}

/// Energy and the uncore are of everything: with events that are sampled in all rings, and with no others.
#[test]
fn s3_s4_metrics_of_samples_are_of_energy_and_the_uncore_and_say_that_interrupts_are_in_them() {
    let one = asked("energy_per_instruction", &["instructions"]).unwrap();
    assert_eq!(one.energy().collect::<Vec<_>>(), ["energy-pkg"]);
    let rings = asked("energy_per_instruction", &["instructions:u"]).unwrap_err();
    assert!(rings.contains("energy and the uncore are of all rings"), "{rings}");
    let none = asked("energy_per_instruction", &["cycles"]).unwrap_err();
    assert!(none.contains("instructions is not sampled"), "{none}");
    let power = asked("power", &["cycles:u"]).unwrap();
    let clocks = asked("Info_System_Socket_CLKS", &[]).unwrap();
    let energy = |reader| CountedEnergy {
        event: "energy-pkg".to_string(),
        joules: 2.0,
        ticks: 50,
        reader,
        ..CountedEnergy::default()
    };
    let of_uncore = CountedUncore {
        event: "UNC_CLOCK.SOCKET".to_string(),
        units: 1,
        count: 77,
        ticks: 60,
        ..CountedUncore::default()
    };
    let events = [("instructions", 9, 0, Some(1000))];
    let sample = SampleResult {
        energy: vec![energy(0), energy(4)],
        uncore: vec![of_uncore],
        ..sample(&events)
    };
    let asks = [one, power, clocks];
    let rows = of_sample(&sample, &asks, Clock { hz: Some(100), of_instructions: false }).rows;
    // 4 J of both packages: in nanojoules for each of 1,000 instructions, and in half a second.
    let values: Vec<Option<f64>> = rows.iter().map(|row| row.value).collect();
    assert_eq!(values, [Some(4e6), Some(8.0), Some(77.0)], "{rows:#?}");
    let spreads: Vec<Option<[f64; 2]>> = rows.iter().map(|row| row.spread).collect();
    assert_eq!(spreads, [Some([4e6; 2]), None, None]);
    for row in &rows {
        assert_eq!(row.untrusted, [OF_SAMPLES], "{row:?}");
    }
    // What could not be read is named with the metric.
    let why = Uncounted { event: "energy-pkg".to_string(), reason: "no RAPL".to_string() };
    let without = SampleResult { energy: vec![], unread: vec![why], ..sample };
    let rows = of_sample(&without, &asks[..2], Clock::default()).rows;
    for row in rows {
        assert_eq!(row.missing.as_deref(), Some("energy-pkg was not read: no RAPL"));
        assert!(row.untrusted.is_empty());
    }
}

/// What is counted beside has one count and no period.
#[test]
fn s3_shares_of_samples_are_of_the_slots_that_were_counted_beside() {
    let block = Block::embedded();
    let target = Target::of_model(Model::IceLake).unwrap();
    let (core, table) = target.tables(&block.tables()).unwrap();
    let name: Asked = "Retiring".parse().unwrap();
    let found = find(&table, &[name]).unwrap();
    let one = ask(&target, &core, &table, &found[0]).unwrap();
    let fields: Vec<String> = one.events().map(String::from).collect();
    assert!(fields.iter().all(|event| crate::metrics::shares::is_beside(event)), "{fields:?}");
    let one = one.among(&fields).unwrap();
    let mut sample = sample(&[("instructions", 9, 0, None)]);
    // All fields but retiring have three times as much.
    let counts = fields.iter().map(|event| {
        let count = if event == "PERF_METRICS.RETIRING" { 25 } else { 75 };
        serde_json::from_value(json!({"event": event, "counter": "c", "period": 0, "overflows": 0, "samples": 0, "dropped": 0,
            "witness": count * 1000}))
        .unwrap()
    });
    sample.events.extend(counts);
    let row = of_sample(&sample, &[one], Clock::default()).rows.remove(0);
    // In percent of the four.
    assert_eq!((row.value, fields.len()), (Some(10.0), 4), "{row:?}: {fields:?}");
    // There is one reading, and no counter beside it.
    assert_eq!((row.spread, row.untrusted.len()), (None, 0), "{row:?}");
}
