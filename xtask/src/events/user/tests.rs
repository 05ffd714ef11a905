use super::*;
use events::cpu::CpuKey;

const GOOD: &str = r#"{"Header": {}, "Events": [
  {"EventName": "MY.EVENT", "EventCode": "0xA1", "UMask": "0x7", "Counter": "0,1"},
  {"EventName": "inst_retired.any_p", "EventCode": "0xC0", "UMask": "0x1", "Counter": "0,1,2,3"},
  {"EventName": "UNC_X", "EventCode": "0x1", "UMask": "0x1", "Counter": "0", "Unit": "CHA"}
]}"#;

fn merge(text: &str, cpu: Option<&str>) -> Result<(Block, Vec<String>), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.json");
    fs::write(&path, text).unwrap();
    let cpu = cpu.map(|cpu| cpu.parse().unwrap());
    merged(&[EventFile { cpu, path }], None).map_err(|error| error.to_string())
}

#[test]
fn a_users_events_come_over_the_tables() {
    let (block, lines) = merge(GOOD, Some("skylake")).unwrap();
    let core = block.tables().named("skylake").unwrap();
    let event = core.find("my.event").unwrap();
    assert_eq!((event.ways()[0].event, event.ways()[0].umask, event.counters), (0xa1, 7, 3));
    assert_eq!(core.find("INST_RETIRED.ANY_P").unwrap().ways()[0].umask, 1);
    assert!(core.find("l2_rqsts.miss").is_some());
    assert!(
        lines[0]
            .ends_with("1 events added to skylake, 1 replaced, 1 left out that are not of a core")
    );
}

#[test]
fn a_processor_that_is_newer_than_the_tables_gets_its_own() {
    let (block, lines) = merge(GOOD, Some("6.0xfe")).unwrap();
    let key = CpuKey::new(Vendor::Intel, 6, 0xfe, 2);
    let tables = block.tables();
    let core = tables.core(&key).unwrap();
    assert_eq!((core.name(), core.len()), ("user_6_fe", 2));
    assert!(lines[0].contains("2 events added to user_6_fe"), "{lines:?}");
    assert!(Block::embedded().tables().core(&key).is_err());
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
    for (text, cpu, parts) in [
        ("[\n  {\"EventName\": }\n]", Some("skylake"), &["my.json: ", "line 2 column 17"][..]),
        ("[", Some("skylake"), &["line 1 column 1"]),
        ("{\"Header\": {}}", Some("skylake"), &["my.json: it is not a list"]),
        ("7", Some("skylake"), &["not a list of events"]),
        (
            "[{\"EventName\": \"B\", \"UMask\": \"zz\"}]",
            Some("skylake"),
            &["my.json: no event of it can be taken", "event 0 (B): UMask is \"zz\""],
        ),
        ("[]", Some("skylke"), &["did you mean skylake"]),
        ("[]", None, &["name the processor", "--event-file CPU="]),
    ] {
        let error = merge(text, cpu).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
    let missing = EventFile { cpu: None, path: "/no/such/file".into() };
    let cpu = "skylake".parse().unwrap();
    let error = merged(&[missing], Some(&cpu)).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the events in /no/such/file: "), "{error}");
}

#[test]
fn m1_an_event_that_is_not_understood_is_named_and_the_others_are_taken() {
    let good = r#"{"EventName": "A", "Counter": "0"}"#;
    for (bad, part) in [
        (r#"{"EventCode": "0xC0"}"#, "event 1: EventName is \"\": it is missing"),
        (r#"{"EventName": 7}"#, "event 1: EventName is \"7\": a name must be a string"),
        (r#"{"EventName": "B", "Counter": "0,99"}"#, "event 1 (B): Counter is \"0,99\""),
        (r#"{"EventName": "\u001b[31m", "Counter": "0"}"#, "event 1 (\\u{1b}[31m): EventName"),
    ] {
        let (block, lines) = merge(&format!("[{good}, {bad}]"), Some("skylake")).unwrap();
        assert!(block.tables().named("skylake").unwrap().find("A").is_some());
        assert!(lines[0].ends_with(", 1 left out that are not understood"), "{lines:?}");
        assert!(lines[1].starts_with("warning: ") && lines[1].contains(part), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains('\u{1b}')), "{lines:?}");
    }
    // A long file does not fill the screen.
    let many = vec![r#"{"EventName": "B"}"#; 50].join(",");
    let (_, lines) = merge(&format!("[{good}, {many}]"), Some("skylake")).unwrap();
    assert!(lines.len() == 22 && lines[21].ends_with("and 30 more"), "{lines:?}");
    let (_, lines) =
        merge(r#"[{"EventName": "MY,EVENT", "Counter": "0"}]"#, Some("skylake")).unwrap();
    assert!(lines[1].contains("MY,EVENT is read as MY_EVENT"), "{lines:?}");
}

/// The Silvermont file has two unit masks and one MSR, and numbers fixed counters from 1.
#[test]
fn a_file_of_the_older_atoms_is_taken_whole() {
    let (block, lines) = merge(
        r#"{"Events": [
  {"EventCode": "0x00", "UMask": "0x01", "EventName": "INST_RETIRED.ANY",
   "Counter": "Fixed counter 1", "MSRIndex": "0", "Errata": "null"},
  {"EventCode": "0xB7", "UMask": "0x01,0x02", "EventName": "OFFCORE_RESPONSE.MINE.OUTSTANDING",
   "Counter": "0,1", "MSRIndex": "0x1a6", "MSRValue": "0x4000000044"}]}"#,
        Some("slm"),
    )
    .unwrap();
    assert!(lines.len() == 1 && lines[0].ends_with("1 events added to silvermont, 1 replaced"));
    let core = block.tables().named("silvermont").unwrap();
    assert_eq!(core.find("inst_retired.any").unwrap().fixed, Some(0));
    let event = core.find("offcore_response.mine.outstanding").unwrap();
    assert_eq!(
        (event.ways().len(), event.ways()[0].umask, event.ways()[0].msr),
        (1, 1, Some(0x1a6))
    );
}

#[test]
fn the_option_names_a_processor_or_not() {
    let parse = |text: &str| text.parse::<EventFile>().unwrap();
    assert_eq!(parse("a.json"), EventFile { cpu: None, path: "a.json".into() });
    let named = EventFile { cpu: Some("zen4".parse().unwrap()), path: "/x/a.json".into() };
    assert_eq!(parse("zen4=/x/a.json"), named);
    assert_eq!(parse("./a=b.json"), EventFile { cpu: None, path: "./a=b.json".into() });
    assert!("6.999=x".parse::<EventFile>().is_err());
}
