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
    let event = |text: &str| format!("[{{\"EventName\": \"A\", \"Counter\": \"0\"}}, {{{text}}}]");
    for (text, cpu, parts) in [
        ("[\n  {\"EventName\": }\n]", Some("skylake"), &["my.json: ", "line 2 column 17"][..]),
        ("[", Some("skylake"), &["line 1 column 1"]),
        ("{\"Header\": {}}", Some("skylake"), &["my.json: it is neither a list"]),
        ("7", Some("skylake"), &["neither a list"]),
        (&event("\"EventCode\": \"0xC0\""), Some("skylake"), &["event 1: it has no EventName"]),
        (&event("\"EventName\": 7"), Some("skylake"), &["event 1: EventName is 7, not a text"]),
        (
            &event("\"EventName\": \"B\", \"UMask\": \"zz\""),
            Some("skylake"),
            &["event 1 (B): UMask is \"zz\""],
        ),
        (
            &event("\"EventName\": \"B\", \"Counter\": \"0,99\""),
            Some("skylake"),
            &["event 1 (B): Counter is \"0,99\""],
        ),
        ("[]", Some("skylke"), &["did you mean skylake"]),
        ("[]", None, &["say for which processor", "--event-file CPU="]),
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
fn the_option_names_a_processor_or_not() {
    let parse = |text: &str| text.parse::<EventFile>().unwrap();
    assert_eq!(parse("a.json"), EventFile { cpu: None, path: "a.json".into() });
    let named = EventFile { cpu: Some("zen4".parse().unwrap()), path: "/x/a.json".into() };
    assert_eq!(parse("zen4=/x/a.json"), named);
    assert_eq!(parse("./a=b.json"), EventFile { cpu: None, path: "./a=b.json".into() });
    assert!("6.999=x".parse::<EventFile>().is_err());
}
