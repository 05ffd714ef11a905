use super::*;
use serde_json::json;

/// Two processors: the first has read the energy of both.
fn ran(in_turn: bool) -> ProcessorsResult {
    let metric = |event: &str, value: f64, energy: bool| {
        let series =
            json!({"min": value as u64, "max": value as u64, "distinct": 1, "values": [1, 2]});
        let mut metric = json!({"event": event, "min": value, "median": value, "mean": value, "max": value,
            "deterministic": true, "series": [series, series]});
        if event != TSC {
            metric["counting"] = json!({"name": event, "counter": "c", "pass": 0});
        }
        if energy {
            metric["energy"] = json!({"unit": 14, "resolution": 0.5, "ticks": [1, 2], "update": 9, "processors": [0, 1]});
        }
        metric
    };
    let processor = |number: u32, metrics: Vec<serde_json::Value>| {
        json!({"processor": number, "apic_id": number, "tsc_offset": 0, "tsc_offset_error": 0,
            "metrics": metrics, "snapshot_tsc": 0, "snapshot": []})
    };
    let first = vec![
        metric(TSC, 10.0, false),
        metric("cycles", 4.0, false),
        // Asked for by itself, and by a metric.
        metric("loads", 2.0, false),
        metric("loads", 2.0, false),
        metric("energy-pkg", 3.0, true),
    ];
    let second = vec![metric(TSC, 30.0, false), metric("cycles", 6.0, false)];
    serde_json::from_value(json!({"item": 4, "name": "p", "per": 7, "runs": 2, "in_turn": in_turn, "sums": [],
        "processors": [processor(0, first), processor(1, second)], "start_skew": {"min": 0, "median": 0, "max": 0},
        "snapshot": {"deadline": 0, "skew": 0, "events": []}, "tsc": [5, 9]}))
    .expect("a result")
}

fn value(result: &SnippetResult, event: &str) -> Option<f64> {
    result.metrics.iter().find(|one| one.event == event).map(|one| one.value.median)
}

#[test]
fn s3_all_processors_together_have_sums_and_each_has_its_own() {
    let [whole, first, second] = &figures(&ran(false))[..] else { panic!("three") };
    let names = [whole, first, second].map(|one| (&*one.name, one.item, one.per, one.runs));
    assert_eq!(names, [("p", 4, 7, 0), ("p, cpu 0", 4, 7, 2), ("p, cpu 1", 4, 7, 2)]);
    assert_eq!(value(whole, "cycles"), Some(10.0));
    // At the same time the longest is the time; one after the other it is the sum.
    assert_eq!(value(whole, TSC), Some(30.0));
    assert_eq!(value(&figures(&ran(true))[0], TSC), Some(40.0));
    assert_eq!([value(first, TSC), value(second, "cycles")], [Some(10.0), Some(6.0)]);
    // Energy was read once, and is of no processor alone.
    assert_eq!([whole, first, second].map(|one| value(one, "energy-pkg")), [Some(3.0), None, None]);
    let why = |one: &SnippetResult, event: &str| {
        one.uncounted.iter().find(|other| other.event == event).map(|other| other.reason.clone())
    };
    for one in [first, second] {
        assert_eq!(why(one, "energy-pkg").as_deref(), Some("energy is of all processors together"));
    }
    assert_eq!(value(whole, "loads"), Some(2.0));
    assert_eq!(why(second, "loads").as_deref(), Some("it was not counted on this processor"));
    let loads = whole.metrics.iter().find(|one| one.event == "loads").expect("loads");
    let remarks = &loads.counting.as_ref().expect("counting").remarks;
    assert_eq!(remarks[..], ["counted on 1 of 2 processors"]);
    assert!(loads.series.iter().all(|series| series.values.is_none()));
}

#[test]
fn s3_the_uncore_is_of_all_processors_together_and_packages_are_summed_with_their_units() {
    let mut two = ran(false);
    for (place, reader) in [0, 1].into_iter().enumerate() {
        let mut metric = two.processors[0].metrics[1].clone();
        metric.event = "reads".to_string();
        let counting = metric.counting.as_mut().expect("counting");
        (counting.units, counting.reader, counting.processors) = (28, reader, vec![reader]);
        two.processors[place].metrics.push(metric);
    }
    let [whole, first, second] = &figures(&two)[..] else { panic!("three") };
    let reads = |one: &SnippetResult| one.metrics.iter().find(|one| one.event == "reads").cloned();
    let sum = reads(whole).expect("a sum");
    let counting = sum.counting.expect("counting");
    // What is divided by the number of units is right for both packages.
    assert_eq!((sum.value.median, counting.units, &counting.remarks[..]), (8.0, 56, &[][..]));
    for one in [first, second] {
        assert_eq!(reads(one), None);
        let why = one.uncounted.iter().find(|other| other.event == "reads").expect("a reason");
        assert_eq!(why.reason, "the uncore is of all processors together");
    }
}

#[test]
fn s3_one_processor_alone_has_its_energy() {
    let mut one = ran(false);
    one.processors.truncate(1);
    let [alone] = &figures(&one)[..] else { panic!("one") };
    assert_eq!((&*alone.name, value(alone, "energy-pkg")), ("p, cpu 0", Some(3.0)));
}
