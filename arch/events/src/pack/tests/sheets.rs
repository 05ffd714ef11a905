//! Lines of the sheets, made up: what they are read as, and which of them are refused.

use super::*;

/// One table of this vendor, with one event.
fn sources(name: &str) -> Sources {
    let mut sources = Sources::default();
    let json = r#"[{"EventName": "A", "EventCode": "1", "Counter": "0"}]"#;
    sources.merge_perfmon(name, json).unwrap();
    sources
}

const HEAD: &str =
    "vendor,family,models,steppings,core_type,native_model,role,table,source,source_version";

/// The table's source, and the models of its lines.
fn index(line: &str) -> Result<(String, Vec<(u8, u8)>), String> {
    let mut sources = sources("zen9");
    let read = sources.read_index("index.csv", &format!("{HEAD}\n{line}\n"));
    read.map_err(|error| error.to_string())?;
    let models = sources.processors.iter().map(|one| (*one.models.start(), *one.models.end()));
    Ok((sources.tables[0].source.clone(), models.collect()))
}

#[test]
fn a_line_of_the_index_names_the_source_of_its_table() {
    let of = |vendor: &str, source: &str| {
        index(&format!("{vendor},0x17,1,,,,,amd/zen9.csv,{source},1")).unwrap().0
    };
    assert_eq!(of("GenuineIntel", "perfmon:X"), "perfmon:X");
    assert_eq!(of("AuthenticAMD", "a manual"), "a manual");
    // The kernel's file has the ranges of models alone.
    let ranges = "linux:arch/x86/kernel/cpu/amd.c";
    assert_eq!(of("AuthenticAMD", ranges), "linux:tools/perf/pmu-events/arch/x86/amdzen9");
    assert_eq!(of("GenuineIntel", ranges), ranges);
}

#[test]
fn models_are_values_and_ranges_that_rise() {
    let of = |models: &str| index(&format!("AuthenticAMD,0x17,{models},,,,,amd/zen9.csv,m,1"));
    assert_eq!(of("0x10-0x1f|3").unwrap().1, [(0x10, 0x1f), (3, 3)]);
    assert_eq!(of("7-7").unwrap().1, [(7, 7)]);
    for wrong in ["", "5-2", "0x100", "1-0x100", "a", "1|", "1-2-3"] {
        let said = of(wrong).unwrap_err();
        assert!(said.contains("no list of values and ranges up to 0xff"), "{wrong}: {said}");
    }
}

#[test]
fn a_generic_event_has_to_be_one_of_its_table() {
    let names = &generic::NAMES[..generic::TABLE_NAMES];
    let read = |event: &str| {
        let mut sources = sources("zen9");
        let rest = ",".repeat(names.len() - 1);
        let text = format!("table,{}\namd/zen9.csv,{event}{rest}\n", names.join(","));
        let read = sources.read_generics("generic.csv", &text);
        read.map(|()| sources.tables.remove(0).generics).map_err(|error| error.to_string())
    };
    let found = read("A").unwrap();
    assert_eq!((found.len(), found[0].as_deref(), &found[1]), (names.len(), Some("A"), &None));
    assert_eq!(read("").unwrap(), vec![None; names.len()]);
    let said = read("B").unwrap_err();
    assert!(said.contains("generic.csv") && said.contains('B'), "{said}");
}

#[test]
fn the_corrections_that_were_applied_go_with_the_tables() {
    let lines = embedded::OVERRIDES.1.trim_end().lines().count() - 1;
    let sources = Sources::embedded().unwrap();
    assert_eq!(sources.overrides.len(), lines);
    assert!(sources.overrides.iter().all(|one| !one.reason.is_empty()));
}
