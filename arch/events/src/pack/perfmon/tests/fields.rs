//! Each field of a file, and what is counted from where.

use super::*;
use crate::event::Precise;

/// Fifteen is the last; and one name alone shows from what a file counts, where it has no code.
#[test]
fn fixed_counters_go_up_to_fifteen() {
    let last = |number: u64| {
        let numbering = fixed_counter_of_instructions("0");
        let rows = [numbering, fixed("Y", "0x12", "0x34", &format!("Fixed counter {number}"))];
        let (sources, merged) = merge("skylakex", &rows.join(","));
        match refusals(&merged).pop() {
            Some(refused) => Err(refused),
            None => Ok(row(&sources, "skylakex", "Y").fixed),
        }
    };
    assert_eq!(last(15), Ok(Some(15)));
    assert!(last(16).unwrap_err().contains("a fixed counter has a number from 0 to 15"));
    let nameless = r#"{"EventName": "CPU_CLK_UNHALTED.REF", "Counter": "Fixed counter 3"}"#;
    let rows = [nameless.to_string(), fixed("Y", "0x12", "0x34", "Fixed counter 2")];
    let (sources, merged) = merge("skylakex", &rows.join(","));
    assert_eq!(refusals(&merged), [""; 0]);
    assert_eq!(row(&sources, "skylakex", "Y").fixed, Some(1), "the file counts from 1");
}

/// Each field of a file in its place, whatever form its number has.
#[test]
fn each_field_of_an_event_is_taken() {
    let rows = r#"{"EventName": "A.ALL", "EventCode": "0x12", "UMask": "0x101", "UMaskExt": "0x1", "Counter": "0,1,2,3",
            "CounterHTOff": "0,2", "CounterMask": "3", "Invert": 1, "EdgeDetect": "1", "AnyThread": "1",
            "MSRIndex": "0x3f7", "MSRValue": "0x11", "PEBS": "2", "Data_LA": "1", "TakenAlone": "1",
            "Deprecated": "1", "Errata": "E1, E2", "Unit": "cpu_core"},
        {"EventName": "A.NONE", "EventCode": "0x12", "UMask": "2", "UMaskExt": "0x0", "Counter": "31", "PEBS": "0",
            "Unit": "Core"},
        {"EventName": "A.CAPABLE", "EventCode": "0x12", "UMask": "3", "Counter": "0", "PEBS": "1"},
        {"EventName": "A.PRECISE", "EventCode": "0x12", "UMask": "4", "Counter": "0", "Precise": "1", "Unit": ""},
        {"EventName": "A.ELSEWHERE", "EventCode": "0x12", "Counter": "0", "Unit": "CBO"}"#;
    let (sources, merged) = merge("mine", rows);
    assert_eq!(refusals(&merged), [""; 0]);
    assert_eq!(merged.skipped, ["A.ELSEWHERE"]);
    let way = |umask, msr| Way { event: 0x12, umask, msr };
    let all = crate::pack::Row {
        name: "A.ALL".to_string(),
        ways: vec![way(0x101, Some(0x3f7))],
        cmask: 3,
        invert: true,
        edge: true,
        any_thread: true,
        counters: 0b101,
        fixed: None,
        msr_value: 0x11,
        precise: Precise::Only,
        data_address: true,
        taken_alone: true,
        deprecated: true,
        errata: "E1|E2".to_string(),
        doubtful: false,
    };
    assert_eq!(row(&sources, "mine", "A.ALL"), all);
    let plain = |name: &str, umask, counters, precise| crate::pack::Row {
        name: name.to_string(),
        ways: vec![way(umask, None)],
        counters,
        precise,
        ..crate::pack::Row::default()
    };
    for expected in [
        plain("A.NONE", 2, 1 << 31, Precise::No),
        plain("A.CAPABLE", 3, 1, Precise::Capable),
        plain("A.PRECISE", 4, 1, Precise::Capable),
    ] {
        assert_eq!(row(&sources, "mine", &expected.name), expected);
    }
    assert_eq!(sources.table("mine").unwrap().source, "user");
}

/// Codes and unit masks are one each, or as many of the one as of the other, up to four.
#[test]
fn lists_of_codes_and_unit_masks_have_one_length() {
    let ways = |codes: &str, umasks: &str| {
        let event = format!(
            r#"{{"EventName": "A", "EventCode": "{codes}", "UMask": "{umasks}", "Counter": "0"}}"#
        );
        let (sources, merged) = merge("mine", &event);
        let refused = refusals(&merged).pop();
        match refused {
            Some(refused) => Err(refused),
            None => Ok(row(&sources, "mine", "A").ways.len()),
        }
    };
    assert_eq!(ways("1,2,3,4", "1"), Ok(4));
    assert_eq!(ways("1", "1,2,3,4"), Ok(4));
    assert_eq!(ways("1,2,3", "1,2,3"), Ok(3));
    for (codes, umasks) in
        [("1,2,3,4,5", "1"), ("1,2", "1,2,3"), ("1,2,3", "1,2"), ("1", "1,2,3,4,5")]
    {
        let refused = ways(codes, umasks).unwrap_err();
        assert!(refused.contains("different numbers of values, or more than four"), "{refused}");
    }
}

/// A name that the file brings twice in two spellings: one takes the place of the table's, the other is added.
#[test]
fn another_spelling_of_what_was_replaced_is_another_event() {
    let event =
        |name: &str| format!(r#"{{"EventName": "{name}", "EventCode": "1", "Counter": "0"}}"#);
    let rows = ["INST_RETIRED.ANY_P", "INST.RETIRED_ANY_P", "inst_retired.any.p"].map(event);
    let (sources, merged) = merge("skylakex", &rows.join(","));
    assert_eq!(merged.replaced, ["INST_RETIRED.ANY_P"]);
    assert_eq!(merged.added, ["INST.RETIRED_ANY_P", "inst_retired.any.p"]);
    assert!(merged.took_something());
    let named = |name: &str| {
        let rows = &sources.table("skylakex").unwrap().rows;
        rows.iter().filter(|row| row.name == name).count()
    };
    assert_eq!([named("INST_RETIRED.ANY_P"), named("INST.RETIRED_ANY_P")], [1, 1]);
    let (_, only) = merge("skylakex", &event("INST_RETIRED.ANY_P"));
    assert!(only.added.is_empty() && only.took_something());
}
