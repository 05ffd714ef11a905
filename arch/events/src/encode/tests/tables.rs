//! What a table says of codes, unit masks and MSRs, on small tables of our own.

use super::*;
use crate::tables::Tables;
use crate::test_support::block_of;

/// Encodes on a processor with four counters that has the table of these events, PEBS and the MSRs that the events name.
fn ask(json: &str, text: &str) -> Result<Encoded, EncodeError> {
    let block = block_of(&["one"], json);
    let core = Tables::open(&block).unwrap().named("one").unwrap();
    let processor = Processor { extra_msrs: core.extra_msrs(), ..skylakex() };
    on(&processor, Some(&core), text)
}

fn counters(json: &str, text: &str) -> u64 {
    let encoded = ask(json, text).unwrap_or_else(|error| panic!("{error}"));
    general(&encoded, Vendor::Intel).1
}

/// Two events of one code that differ in their counter mask, and others of the same event.
const COUNTERS: &str = r#"[
    {"EventName": "A.X", "EventCode": "0x10", "UMask": "1", "Counter": "0,1", "TakenAlone": "1"},
    {"EventName": "A.X4", "EventCode": "0x10", "UMask": "1", "Counter": "1,2", "CounterMask": "4",
     "TakenAlone": "1", "PEBS": "2"},
    {"EventName": "A.X4I", "EventCode": "0x10", "UMask": "1", "Counter": "1", "CounterMask": "4", "Invert": "1",
     "TakenAlone": "1"},
    {"EventName": "A.X4B", "EventCode": "0x10", "UMask": "1", "Counter": "2,3", "CounterMask": "4",
     "TakenAlone": "1"},
    {"EventName": "A.Y", "EventCode": "0x10", "UMask": "2", "Counter": "3"},
    {"EventName": "B.X", "EventCode": "0x11", "UMask": "1", "Counter": "0", "CounterMask": "1"},
    {"EventName": "B.X2", "EventCode": "0x11", "UMask": "1", "Counter": "1,2", "CounterMask": "2",
     "TakenAlone": "1"},
    {"EventName": "B.X3", "EventCode": "0x11", "UMask": "1", "Counter": "0,1", "CounterMask": "3",
     "TakenAlone": "1"},
    {"EventName": "C.X", "EventCode": "0x12", "UMask": "1", "Counter": "0,1", "CounterMask": "1"},
    {"EventName": "C.X2", "EventCode": "0x12", "UMask": "1", "Counter": "1,2", "CounterMask": "2"}
]"#;

#[test]
fn a_code_has_the_counters_of_the_events_that_have_it() {
    for (text, expected) in [
        // That of its own counter mask, invert and edge; of several, what they have in common.
        ("r0110", 0b0011),
        ("r0110:c=4", 0b0100),
        ("r0110:c=4:i", 0b0010),
        // Of no event's: what all of the code have in common, or if that is nothing any of theirs.
        ("r0112:c=9", 0b0010),
        ("r0111:c=9", 0b0111),
        ("r0111:c=1:e", 0b0111),
        // Another unit mask of the event: any counter of that; of no event: any counter.
        ("r0410", 0b1111),
        ("r0411", 0b0111),
        ("r0413", 0b1111),
    ] {
        assert_eq!(counters(COUNTERS, text), expected, "{text}");
    }
}

#[test]
fn a_code_is_alone_and_precise_as_its_events_are() {
    let asked = |text: &str| ask(COUNTERS, text).unwrap_or_else(|error| panic!("{error}"));
    assert!(asked("r0110").taken_alone, "all events of the code are");
    assert!(!asked("r0111").taken_alone, "two of three are");
    assert!(!asked("r0413").taken_alone, "nothing is known of it");
    assert_eq!(asked("r0110:p").notes, []);
    assert_eq!(asked("r0110").notes, [], "one that must be precise leaves the code capable");
    assert_eq!(asked("r0413:p").notes, [Note::PrecisionUnknown]);
    assert!(refusal(ask(COUNTERS, "r0111:p")).contains("cannot be counted precisely"));
}

/// Events with an MSR each: a threshold that the facility does not take for itself, one on another code, and MSRs that only
/// few processors have.
const MSRS: &str = r#"[
    {"EventName": "L.TWO", "EventCode": "0xcd", "UMask": "1", "Counter": "0", "MSRIndex": "0x3f6", "MSRValue": "2"},
    {"EventName": "L.OTHER", "EventCode": "0xcd", "UMask": "2", "Counter": "0", "MSRIndex": "0x3f6", "MSRValue": "8"},
    {"EventName": "F.ONE", "EventCode": "0xc6", "UMask": "1", "Counter": "0", "MSRIndex": "0x3f7", "MSRValue": "1"},
    {"EventName": "S.ONE", "EventCode": "0x27", "UMask": "1", "Counter": "0", "MSRIndex": "0x1328", "MSRValue": "1"},
    {"EventName": "S.TWO", "EventCode": "0x27", "UMask": "2", "Counter": "0", "MSRIndex": "0x1329", "MSRValue": "1"},
    {"EventName": "R.ONE", "EventCode": "0xb7", "UMask": "1", "Counter": "0", "MSRIndex": "0x3e1", "MSRValue": "1"},
    {"EventName": "X.ONE", "EventCode": "0x99", "UMask": "1", "Counter": "0", "MSRIndex": "0x1234", "MSRValue": "1"}
]"#;

#[test]
fn m5_a_missing_value_is_asked_for_in_the_words_of_its_msr() {
    for (text, msr, term) in [
        ("r01cd", "PEBS_LD_LAT (0x3f6)", "with ldlat="),
        ("r01c6", "PEBS_FRONTEND (0x3f7)", "with frontend="),
        ("r0127", "SNOOP_RSP_0 (0x1328)", "with snoop_rsp="),
        ("r0227", "SNOOP_RSP_1 (0x1329)", "with snoop_rsp="),
        ("r01b7", "OFFCORE_RSP (0x3e0 to 0x3e3) (0x3e1)", "with offcore_rsp="),
        ("r0199", "extra MSR (0x1234)", "with config1="),
    ] {
        let error = refusal(ask(MSRS, text));
        assert!(error.contains(msr) && error.ends_with(term), "{error}");
        // With it the code is what the event is.
        let name = term.trim_start_matches("with ");
        let encoded = ask(MSRS, &format!("{text}:{name}0x10")).unwrap();
        assert_eq!(encoded.choices[0].msr.map(|msr| msr.value), Some(0x10), "{text}");
    }
}

#[test]
fn m5_a_threshold_below_the_facilitys_own_is_that_of_its_event_alone() {
    assert!(ask(MSRS, "r01cd:ldlat=2").is_ok());
    // The same code with another value, another code with the same value.
    for text in ["r01cd:ldlat=1", "r02cd:ldlat=2"] {
        let error = refusal(ask(MSRS, text));
        assert!(error.contains("the smallest threshold is 3"), "{text}: {error}");
    }
}

#[test]
fn m5_one_of_two_msrs_is_enough() {
    let table = core("skylakex");
    let only = |address: u32| {
        let extra_msrs = table.extra_msrs().into_iter().filter(|msr| msr.address == address);
        let processor = Processor { extra_msrs: extra_msrs.collect(), ..skylakex() };
        let encoded = on(&processor, Some(&table), "offcore_response:offcore_rsp=1").unwrap();
        encoded.choices.iter().map(|choice| choice.msr.unwrap().address).collect::<Vec<_>>()
    };
    assert_eq!((only(0x1a6), only(0x1a7)), (vec![0x1a6], vec![0x1a7]));
}

/// Unit masks are joined where nothing else differs; what holds for one of them holds for both.
#[test]
fn p6_unit_masks_are_joined_with_all_that_holds_for_them() {
    const JOINED: &str = r#"[
        {"EventName": "J.A", "EventCode": "0x40", "UMask": "1", "Counter": "0,1", "Errata": "E1,E2"},
        {"EventName": "J.B", "EventCode": "0x40", "UMask": "2", "Counter": "1,2", "Errata": "E2,E3", "TakenAlone": "1",
         "Deprecated": "1", "PEBS": "1"},
        {"EventName": "J.C", "EventCode": "0x40", "UMask": "4", "Counter": "0,1,2,3"},
        {"EventName": "J.OTHER", "EventCode": "0x41", "UMask": "8", "Counter": "0,1"},
        {"EventName": "J.MASKED", "EventCode": "0x40", "UMask": "8", "Counter": "0,1", "CounterMask": "1"},
        {"EventName": "J.INVERTED", "EventCode": "0x40", "UMask": "8", "Counter": "0,1", "Invert": "1"},
        {"EventName": "J.EDGES", "EventCode": "0x40", "UMask": "8", "Counter": "0,1", "EdgeDetect": "1"},
        {"EventName": "J.BOTH", "EventCode": "0x40", "UMask": "8", "Counter": "0,1", "AnyThread": "1"},
        {"EventName": "J.MSR", "EventCode": "0x40", "UMask": "8", "Counter": "0,1", "MSRIndex": "0x1234",
         "MSRValue": "1"},
        {"EventName": "J.MSR2", "EventCode": "0x40", "UMask": "16", "Counter": "0,1", "MSRIndex": "0x1234",
         "MSRValue": "2"},
        {"EventName": "J.CODES", "EventCode": "0xb7,0xbb", "UMask": "1", "Counter": "0,1"},
        {"EventName": "J.FIXED", "EventCode": "0", "UMask": "2", "Counter": "Fixed counter 1"}
    ]"#;
    let joined = ask(JOINED, "j:a:b").unwrap();
    assert_eq!(general(&joined, Vendor::Intel), (0x43_0340, 0b0010));
    assert_eq!((joined.name.as_str(), joined.errata.as_str()), ("J.A:B", "E1|E2|E3"));
    assert!(joined.taken_alone);
    assert_eq!(joined.notes, [Note::Deprecated]);
    assert!(refusal(ask(JOINED, "j:a:b:p")).contains("precisely"), "one of them is not");
    let plain = ask(JOINED, "j:c:a").unwrap();
    assert_eq!(general(&plain, Vendor::Intel), (0x43_0540, 0b0011));
    assert_eq!((plain.errata.as_str(), plain.taken_alone), ("E1|E2", false));
    assert_eq!(plain.notes, []);
    let zen = core("zen5");
    let processor = Processor::described_by(&zen);
    for text in ["all:packed_double_flops", "packed_double_flops:all"] {
        let flops = on(&processor, Some(&zen), &format!("fp_ret_sse_avx_ops:{text}")).unwrap();
        assert_eq!(flops.notes, [Note::Doubtful], "{text}");
    }
    for (mask, differs) in [
        ("other", "(the event)"),
        ("masked", "(the counter mask)"),
        ("inverted", "(the counter mask)"),
        ("edges", "(edge detection)"),
        ("both", "(the hyper-threads counted)"),
        ("msr", "(the extra MSR)"),
        ("codes", "(one has several codes)"),
        ("fixed", "(one is on a fixed counter)"),
    ] {
        for text in [format!("j:a:{mask}"), format!("j:{mask}:a")] {
            let error = refusal(ask(JOINED, &text));
            assert!(error.contains("cannot be joined") && error.contains(differs), "{error}");
        }
    }
    // The same MSR with another value is another event.
    assert!(refusal(ask(JOINED, "j:msr:msr2")).contains("(the extra MSR)"));
}
