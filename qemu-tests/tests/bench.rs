//! `bench`: its jobs run. What they measure is for a quiet machine.

use qemu_tests::xtask;
use serde_json::Value;
use std::fs;

#[test]
fn every_job_of_counting_and_of_switches_gives_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let parts = ["--only", "counting", "--only", "switches"];
    let line = ["bench", "--brief", "--boots", "1", "--json", "figures.json"];
    let called = xtask(folder.path(), &[&line[..], &parts].concat());
    assert_eq!(called.code, 0, "{called:#?}");
    assert!(called.err.contains("note: each counting job ran small and once"), "{}", called.err);
    let text = fs::read_to_string(folder.path().join("figures.json")).unwrap();
    let figures: Vec<Value> = serde_json::from_str(&text).unwrap();
    let named = |name: &str| {
        let mut found = figures
            .iter()
            .filter(|figure| figure["name"].as_str().is_some_and(|own| own.starts_with(name)));
        assert!(found.next().is_some_and(|figure| figure["value"].is_number()), "{name}: {text}");
    };
    for counted in ["no event", "instructions", "branches, loads, stores", "predictor and caches"] {
        named(&format!("firmware, to plain TCG: {counted}: processor time"));
    }
    named("firmware, to plain TCG: sampling each 100,000th branch: processor time");
    named("emulated PMU: overflows an hour, each 1,000th branch: processor time");
    named("emulated PMU: overflows an hour, each 1,000th branch, by stepping: wall time");
    named("the long loop, cut short: counted by four counters, exactly: processor time");
    for (name, most) in [
        ("a switch from task to task by a yield, without counters", 212.0),
        ("the same, counting 1 event", 315.0),
        ("the same, counting 4 events", 380.0),
        ("the same, counting 8 events", 465.0),
    ] {
        named(name);
        let own = figures.iter().find(|figure| figure["name"] == name);
        let cost = own.and_then(|figure| figure["value"].as_f64()).unwrap();
        assert!((150.0..=most).contains(&cost), "{name}: {cost}");
    }
}
