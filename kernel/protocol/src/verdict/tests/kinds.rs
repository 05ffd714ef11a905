//! What holds of the records of every kind of item.

use super::*;
use serde_json::Value;

fn tasks() -> Record {
    record(&format!(
        r#"{{"type":"tasks","item":0,"name":"a","tasks":[{TASK}],"switches":3,
           "ticks":{{"count":2,"min":0,"median":0,"max":0}},"interrupts":[],"user_instructions":18,"tsc":[0,1]}}"#
    ))
}

/// The result of each kind of item.
fn every_kind() -> Vec<Record> {
    uncounted_of_every_kind().into_iter().chain([tasks()]).collect()
}

#[test]
fn what_was_put_back_is_told_with_its_item_by_every_kind() {
    for mut record in every_kind() {
        let kind = format!("{record:?}");
        record.restored_mut().expect(&kind).push("EFER".to_string());
        let told = record.restored().expect(&kind);
        assert_eq!(told, (0, "a", &["EFER".to_string()][..]), "{kind}");
    }
    let mut error = self::record(r#"{"type":"error","item":0,"code":"device","text":"t"}"#);
    error.restored_mut().expect("an error ends an item").push("EFER".to_string());
    assert_eq!(error.restored(), None);
    let mut progress = self::record(r#"{"type":"progress","done":0,"total":1}"#);
    assert_eq!(progress.restored_mut(), None);
    assert_eq!(progress.restored(), None);
}

/// A verdict that was judged stands in the record that it is of.
#[test]
fn a_verdict_is_written_into_every_kind() {
    let fails = exactly("nosuch figure", 1.0);
    for mut record in every_kind() {
        assert_eq!(judge_record(&fails, &mut record), Some(Verdict::Fail));
        let (verdict, misses) = said(&record).expect("it was judged");
        assert_eq!(verdict, Verdict::Fail, "{record:?}");
        assert!(misses.iter().any(|miss| miss.figure == "nosuch figure"), "{record:?}");
    }
}

/// What is usual is left out of a record, and read as that; what is not stands there.
#[test]
fn a_field_stands_in_a_record_where_it_is_not_the_usual_value() {
    let usual = |record: &Record, field: &str| {
        let json = serde_json::to_value(record).unwrap();
        let (outer, inner) = field.split_once('/').unwrap_or((field, ""));
        match inner {
            "" => json.get(outer).cloned(),
            inner => json[outer][0].get(inner).cloned(),
        }
    };
    let with = |record: &Record, field: &str, value: Value| {
        let mut json = serde_json::to_value(record).unwrap();
        match field.split_once('/') {
            None => json[field] = value,
            Some((outer, inner)) => json[outer][0][inner] = value,
        }
        serde_json::from_value::<Record>(json).unwrap()
    };
    let kinds = every_kind();
    let cases = [
        (&kinds[0], "planning", Value::from(0), Value::from(7)),
        (&kinds[0], "unwatched", Value::from(0), Value::from(1)),
        (&kinds[0], "smis", Value::from(0), Value::from(2)),
        (&kinds[3], "dropped", Value::from(0), Value::from(3)),
        (&kinds[2], "verdict", Value::from("none"), Value::from("pass")),
        (&kinds[7], "tasks/cpu", Value::from(0), Value::from(1)),
        (&kinds[7], "tasks/bits", Value::from(64), Value::from(32)),
    ];
    for (record, field, left_out, said) in cases {
        assert_eq!(usual(record, field), None, "{field}");
        assert_eq!(&with(record, field, left_out), record, "{field}");
        let other = with(record, field, said.clone());
        assert_eq!(usual(&other, field), Some(said), "{field}");
        assert_ne!(&other, record, "{field}");
    }
}

#[test]
fn each_outcome_has_the_exit_code_that_the_guide_names() {
    use crate::record::Outcome::*;
    let codes = [Pass, Fail, BadJob, Crash, Skip].map(crate::record::Outcome::exit_code);
    assert_eq!(codes, [0, 1, 2, 3, 77]);
}

/// A miss with one bound is an expectation; one without is an event that nobody counted.
#[test]
fn a_miss_with_one_bound_names_it() {
    let miss = |min, max| {
        let reason = Some("no such event".to_string());
        sentence(&Miss { figure: "loads".into(), min, max, value: None, reason })
    };
    assert_eq!(miss(Some(2.0), None), "loads: no such event; expected at least 2");
    assert_eq!(miss(None, Some(2.0)), "loads: no such event; expected at most 2");
    assert_eq!(miss(None, None), "loads was not counted: no such event");
}

/// A processor without a PMU is missed where events were asked for, and only there.
#[test]
fn i6_a_processor_without_a_pmu_is_told_where_something_was_to_be_counted() {
    let sums = r#"[{"event":"loads","value":5.0,"processors":1}]"#;
    for (sums, missed) in [(sums, 1), ("[]", 0)] {
        let record = record(&format!(
            r#"{{"type":"processors","item":0,"name":"a","per":1,"runs":1,"sums":{sums},
               "processors":[{{"processor":3,"apic_id":0,"tsc_offset":0,"tsc_offset_error":0,"metrics":[],
               "snapshot_tsc":0,"snapshot":[],"pmu_absent":"none"}}],
               "start_skew":{{"min":0,"median":0,"max":0}},"snapshot":{{"deadline":0,"skew":0,"events":[]}},"tsc":[0,1]}}"#
        ));
        let uncounted = uncounted(&record);
        assert_eq!(uncounted.len(), missed);
        assert!(uncounted.iter().all(|one| one.event == "processor 3" && one.reason == "none"));
    }
}

/// What was not executed is in no record, and came to 0; without 32-bit code all instructions are of 64 bits.
#[test]
fn what_stepping_did_not_see_came_to_0() {
    let exact = |uncounted: &str| {
        record(&format!(
            r#"{{"type":"exact","item":0,"name":"a","per":1,"uncounted":[{uncounted}],
               "counts":[{{"event":"instructions","value":7.0,"totals":[7,14]}}],
               "opcodes":[{{"event":"imul","value":1.0,"totals":[1,2]}}],
               "listing":[],"listed":0,"tsc":[0,1]}}"#
        ))
    };
    for (figure, value) in
        [("div", 0.0), ("crc32", 0.0), ("instructions_32", 0.0), ("instructions_64", 7.0)]
    {
        let judged = |value| judge(&exactly(figure, value), &exact("")).unwrap();
        assert_eq!(judged(value).verdict, Verdict::Pass, "{figure}");
        let wrong = judged(value + 1.0);
        assert_eq!(wrong.verdict, Verdict::Fail, "{figure}");
        let text = format!("{figure} came to {value}; expected {}", value + 1.0);
        assert_eq!(sentence(&wrong.misses[0]), text);
    }
    // What was executed has its own count, and an event of the PMU is no opcode.
    assert_eq!(judge(&exactly("imul", 0.0), &exact("")).unwrap().verdict, Verdict::Fail);
    for name in ["nosuch figure", "nosuch"] {
        let judged = judge(&exactly(name, 0.0), &exact(NOSUCH)).unwrap();
        let texts: Vec<_> = judged.misses.iter().map(sentence).collect();
        assert!(
            texts.contains(&format!("{name}: there is no such figure; expected 0")),
            "{texts:?}"
        );
    }
    // Events that may be missing excuse events, no opcodes.
    let allowed = |value| Criteria { allow_uncounted: true, ..exactly("div", value) };
    assert_eq!(judge(&allowed(3.0), &exact(NOSUCH)).unwrap().verdict, Verdict::Fail);
    assert_eq!(judge(&allowed(0.0), &exact(NOSUCH)).unwrap().verdict, Verdict::Pass);
}
