//! Readings by small tables of our own.

use super::*;
use crate::tables::Tables;
use crate::test_support::{block_of, core};

fn readings(json: &str, value: u64, msrs: &[MsrValue]) -> Vec<(Closeness, String)> {
    let block = block_of(&["one"], json);
    let core = Tables::open(&block).unwrap().named("one").unwrap();
    let all = general(value, msrs, core.vendor(), Some(&core)).unwrap();
    all.into_iter().map(|one| (one.closeness, one.text)).collect()
}

/// The texts of one closeness.
fn of(closeness: Closeness, json: &str, value: u64) -> Vec<String> {
    let all = readings(json, value, &[]);
    all.into_iter().filter(|(own, _)| *own == closeness).map(|(_, text)| text).collect()
}

const MASKS: &str = r#"[
    {"EventName": "E.MA", "EventCode": "0x40", "UMask": "1", "Counter": "0"},
    {"EventName": "E.MB", "EventCode": "0x40", "UMask": "2", "Counter": "0"},
    {"EventName": "E.MAB", "EventCode": "0x40", "UMask": "3", "Counter": "0"},
    {"EventName": "E.MC", "EventCode": "0x40", "UMask": "4", "Counter": "0"},
    {"EventName": "E.ANY", "EventCode": "0x40", "UMask": "8", "Counter": "0"},
    {"EventName": "E.MD", "EventCode": "0x40", "UMask": "16", "Counter": "0"},
    {"EventName": "S.MA", "EventCode": "0x41", "UMask": "1", "Counter": "0", "CounterMask": "2", "Invert": "1",
     "EdgeDetect": "1", "AnyThread": "1"},
    {"EventName": "S.MB", "EventCode": "0x41", "UMask": "2", "Counter": "0", "CounterMask": "2", "Invert": "1",
     "EdgeDetect": "1", "AnyThread": "1"}
]"#;

#[test]
fn p6_the_fewest_unit_masks_are_joined() {
    let joined = |umask: u64| of(Closeness::UnitMasks, MASKS, 0x43_0040 | umask << 8);
    assert_eq!(
        joined(7),
        ["E.MAB:MC"],
        "those with the most bits first, and none that adds nothing"
    );
    assert_eq!(joined(5), ["E.MA:MC"]);
    // One alone is an event of its own, whether others make it up or not.
    assert_eq!((joined(3), joined(1)), (vec![], vec![]));
    // A unit mask that is called like a modifier stands after the dot.
    assert_eq!(joined(8 | 16), ["E.ANY:MD"]);
    assert_eq!(joined(8 | 16 | 3), ["E.ANY:MAB:MD"]);
    // No unit mask has the rest.
    assert_eq!(joined(0x27), [""; 0]);
    // What all of them have is not said again; what they have not, is.
    let edges = |bits: u64| of(Closeness::UnitMasks, MASKS, 0x0200_0000 | bits);
    assert_eq!(edges(0xe7_0341), ["S.MA:MB"]);
    assert_eq!(edges(0xe5_0341), ["S.MA:MB:u"]);
    assert_eq!(edges(0xe3_0341), [""; 0], "without edge detection it is none of these");
}

#[test]
fn m5_an_event_whose_msr_holds_another_value_is_not_meant() {
    const SAME: &str = r#"[
        {"EventName": "A.PRECISE", "EventCode": "0xc0", "UMask": "1", "Counter": "0", "PEBS": "2"},
        {"EventName": "B.PLAIN", "EventCode": "0xc0", "UMask": "1", "Counter": "0"},
        {"EventName": "C.OLD", "EventCode": "0xc0", "UMask": "1", "Counter": "0", "Deprecated": "1"},
        {"EventName": "M.ONE", "EventCode": "0xb7", "UMask": "1", "Counter": "0", "MSRIndex": "0x1a6",
         "MSRValue": "1"}
    ]"#;
    let names = |value, msrs: &[MsrValue]| {
        let all = readings(SAME, value, msrs);
        all.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    // Names in use before deprecated ones, and plain events before those that need PEBS.
    assert_eq!(names(0x43_01c0, &[]), ["B.PLAIN", "A.PRECISE", "C.OLD", "r1c0"]);
    let held = |value| [MsrValue { address: 0x1a6, value }];
    assert_eq!(names(0x43_01b7, &held(1)), ["M.ONE", "r1b7:offcore_rsp_0=0x1"]);
    assert_eq!(names(0x43_01b7, &held(2)), ["r1b7:offcore_rsp_0=0x2"]);
    // Though another MSR holds its value.
    let other = MsrValue { address: 0x1a7, value: 1 };
    let named = names(0x43_01b7, &[held(2)[0], other]);
    assert_eq!(named, ["r1b7:offcore_rsp_0=0x2"]);
    assert_eq!(names(0x43_01b7, &[]), ["M.ONE", "0x4301b7"]);
}

#[test]
fn m1_codes_without_a_table_are_architectural_events_or_as_they_are() {
    let texts = |value, vendor| {
        let all = general(value, &[], vendor, None).unwrap();
        all.into_iter().map(|one| one.text).collect::<Vec<_>>()
    };
    // Those that AMD does not have, on Intel.
    assert_eq!(texts(0x43_013c, Vendor::Intel), ["arch-ref-cycles", "r13c"]);
    assert_eq!(texts(0x43_412e, Vendor::Intel), ["arch-llc-misses", "r412e"]);
    assert_eq!(texts(0x43_01a4, Vendor::Intel), ["arch-slots", "r1a4"]);
    assert_eq!(texts(0x43_412e, Vendor::Amd), ["r412e"]);
    // What Intel's codes look at means nothing on AMD.
    assert_eq!(texts(0x43_01cd, Vendor::Amd), ["r1cd"]);
    assert_eq!(texts(0x43_01cd, Vendor::Intel), ["0x4301cd"]);
    // Settings are in the code itself where perf's raw form has them.
    let raw = |bits: u64| texts(0x43_01d5 | bits, Vendor::Intel).remove(0);
    assert_eq!(raw(1 << 21), "r2001d5");
    assert_eq!(raw(1 << 32), "r1000001d5");
    assert_eq!(raw(1 << 33), "r2000001d5");
    assert_eq!(raw(1 << 36), "r10000001d5");
    assert_eq!(raw(1 << 19), "r1d5:pc=1");
}

#[test]
fn m5_values_of_msrs_stand_in_the_words_of_their_registers() {
    let core = core("skylakex");
    let last = |value, address| {
        let msrs = [MsrValue { address, value: 0x123 }];
        let all = general(value, &msrs, core.vendor(), Some(&core)).unwrap();
        all.into_iter().find(|one| one.closeness == Closeness::Raw).map(|one| one.text)
    };
    assert_eq!(last(0x43_01c6, 0x3f7).as_deref(), Some("r1c6:frontend=0x123"));
    assert_eq!(last(0x43_01cd, 0x3f6).as_deref(), Some("r1cd:ldlat=0x123"));
    assert_eq!(last(0x43_01b7, 0x1a6).as_deref(), Some("r1b7:offcore_rsp_0=0x123"));
}
