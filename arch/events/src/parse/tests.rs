use super::*;
use crate::request::{Base, NamePart};
use proptest::prelude::*;

fn one(text: &str) -> Request {
    parse_event(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn pieces(base: &Base) -> Vec<&str> {
    let Base::Name(pieces) = base else { panic!("{base:?}") };
    pieces.iter().map(|NamePart { text, .. }| text.as_str()).collect()
}

#[test]
fn names_keep_their_pieces_and_their_places() {
    let request = one("  l2_rqsts:demand_data_rd_hit:rfo_hit:u");
    assert_eq!(pieces(&request.base), ["l2_rqsts", "demand_data_rd_hit", "rfo_hit", "u"]);
    let Base::Name(pieces) = &request.base else { unreachable!() };
    assert_eq!((request.at, pieces[2].at), (2, 30));
    // perfmon's older offcore names have colons and equal signs in them.
    let long = one("OFFCORE_RESPONSE:request=ALL_RFO:response=L3_HIT_M.SNOOP_NONE");
    let Base::Name(pieces) = &long.base else { unreachable!() };
    assert_eq!(pieces.len(), 3);
}

#[test]
fn terms_between_slashes() {
    let request = one(
        "cpu/event=0xc4,umask=0x20,cmask=1,inv,edge,any,offcore_rsp=0x10,ldlat=3,frontend=0x11/pp",
    );
    assert_eq!(request.base, Base::Code { event: 0xc4, umask: 0x20 });
    let a = &request.attributes;
    assert_eq!(
        (a.cmask, a.invert, a.edge, a.any_thread),
        (Some(1), Some(true), Some(true), Some(true))
    );
    assert_eq!((a.offcore_rsp, a.load_latency, a.frontend), (Some(0x10), Some(3), Some(0x11)));
    assert_eq!(a.precise, Some(2));
    assert_eq!(request.pmu.unwrap().name, "cpu");
    assert_eq!(one("cpu/event=0xc0/").base, Base::Code { event: 0xc0, umask: 0 });
    assert_eq!(one("cpu_core/config=0x1c2,name=x/:u").base, Base::Raw(0x1c2));
    let named = one("cpu/inst_retired.any,cmask=2/k");
    assert_eq!(pieces(&named.base), ["inst_retired.any"]);
    assert_eq!(named.attributes.kernel, Some(true));
}

#[test]
fn p2_raw_forms() {
    assert_eq!(one("r01c0").base, Base::Raw(0x1c0));
    assert_eq!(one("0xc4.0x20").base, Base::Code { event: 0xc4, umask: 0x20 });
    let dotted = one("196.0x111:u:c=2");
    assert_eq!(dotted.base, Base::Code { event: 196, umask: 0x111 });
    assert_eq!((dotted.attributes.user, dotted.attributes.cmask), (Some(true), Some(2)));
    for (text, at) in [("0xc4.", 5), ("0xc4.x", 5), ("0xzz.0x1", 0), ("0x1.2.3", 4)] {
        let error = parse_event(text).unwrap_err();
        assert!(error.at == at && error.to_string().contains("is not a number"), "{text}: {error}");
    }
    assert_eq!(one("R5301c0:u").base, Base::Raw(0x53_01c0));
    assert_eq!(one("r100000111c4").base, Base::Raw(0x0100_0001_11c4));
    assert_eq!(one("0x4300c0").base, Base::Word(0x43_00c0));
    assert_eq!(one("0xc0|U|K|EN").base, Base::Word(0x43_00c0));
    assert_eq!(one("fixed2:k").base, Base::Fixed(2));
    // No raw form: a name that happens to start with r.
    assert_eq!(pieces(&one("resource_stalls.any").base), ["resource_stalls.any"]);
    assert_eq!(pieces(&one("fixed").base.clone()), ["fixed"]);
}

#[test]
fn groups_hand_their_modifiers_down() {
    let items =
        parse_list("{ cycles , instructions:k }:u , cpu/event=1,umask=2/,{branches}").unwrap();
    assert_eq!(items.len(), 3);
    let group = &items[0].requests;
    assert_eq!(group.len(), 2);
    assert_eq!(group[0].attributes.user, Some(true));
    // The pieces after a name are read with the table; they win over the group's there.
    assert_eq!(pieces(&group[1].base), ["instructions", "k"]);
    assert_eq!(items[1].requests[0].text, "cpu/event=1,umask=2/");
    assert_eq!(items[2].requests.len(), 1);
}

/// Between slashes a brace is a letter of a label.
#[test]
fn braces_between_slashes_are_no_group() {
    let labels = |text: &str| {
        let items = parse_list(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let labels = |item: &Item| {
            item.requests.iter().filter_map(|r| r.attributes.label.clone()).collect::<Vec<_>>()
        };
        items.iter().map(labels).collect::<Vec<_>>()
    };
    assert_eq!(labels("cpu/event=1,name=a{b/,cpu/event=2,name=c/"), [["a{b"], ["c"]]);
    assert_eq!(labels("{cpu/event=1,name=a}b/,cpu/event=2,name=c/}"), [["a}b", "c"]]);
    assert_eq!(labels("{cpu/event=1,name=a/,r1c0},cpu/event=2,name=b/"), [["a"], ["b"]]);
}

#[test]
fn hybrid_requests_name_their_cores() {
    let request = one("goldencove::inst_retired.any:u");
    assert_eq!(request.pmu.unwrap().name, "goldencove");
    assert_eq!(pieces(&request.base), ["inst_retired.any", "u"]);
}

#[test]
fn c7_errors_carry_their_place() {
    for (text, at, part) in [
        ("", 0, "an event is missing"),
        ("a,,b", 2, "an event is missing"),
        ("a,", 2, "an event is missing"),
        ("a b", 1, "unexpected character ' '"),
        ("{a,b", 0, "not closed"),
        ("a,{b,{c}}", 5, "cannot contain a group"),
        ("a}", 1, "unexpected character '}'"),
        ("{}", 1, "an event is missing"),
        ("{a}x", 3, "unexpected character 'x'"),
        ("{a}:q", 4, "unknown modifier \"q\""),
        ("x,cpu/event=1", 5, "not closed"),
        ("cpu/event=1,blah=2/", 12, "unknown term \"blah\""),
        ("cpu/event=1,event=2/", 12, "event is given twice"),
        ("cpu/event=zz/", 10, "not a number"),
        ("cpu//", 4, "an event is missing"),
        ("cpu/umask=1/", 4, "an event is missing"),
        ("cpu/event=1,config=2/", 4, "two events"),
        ("cpu/event=1/zz", 12, "unknown modifier"),
        ("r12345678901234567", 0, "16 hexadecimal digits"),
        ("r1c0:c=", 5, "not a number"),
        ("a,0x12|bogus", 7, "not a part of a function word"),
        ("a:", 2, "an event is missing"),
        ("a::", 3, "an event is missing"),
        ("a,0xc0}", 6, "unexpected character '}'"),
        ("a,{b", 2, "not closed"),
        ("cpu/event=1,blah/", 12, "unknown term \"blah\""),
        ("cpu/blah=2/", 4, "unknown term \"blah\""),
        ("ünder", 0, "unexpected character 'ü'"),
    ] {
        let error = parse_list(text).expect_err(text);
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
    assert_eq!(parse_event("a,b").unwrap_err().at, 1);
}

/// Texts that are nearly right find more than random bytes do.
fn nearly() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "cycles",
        "inst_retired.any",
        "cpu/",
        "/",
        "event=",
        "umask=0x3",
        "{",
        "}",
        ",",
        ":",
        "::",
        "u",
        "pp",
        "c=1",
        "=",
        "r1c0",
        "r",
        "0x4300c0",
        "|",
        "<<",
        "UM_SHIFT",
        "fixed0",
        " ",
        "\n",
        "é",
        "0",
        "any",
        "-",
        "name=x",
        "config=1",
        "ldlat=3",
        "\u{0}",
    ]);
    prop::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn no_text_panics_and_every_error_has_a_place_inside(text in nearly()) {
        if let Err(error) = parse_list(&text) {
            prop_assert!(error.at <= text.len(), "{:?}: {}", text, error);
            prop_assert!(text.is_char_boundary(error.at), "{:?}: {}", text, error);
        }
        let _ = parse_event(&text);
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in ".{0,60}") {
        if let Err(error) = parse_list(&text) {
            prop_assert!(error.at <= text.len());
        }
    }
}
