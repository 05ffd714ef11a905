//! Tables of our own: what is told of them, and what a name finds.

use super::super::*;
use crate::cpu::{CpuKey, Vendor};
use crate::pack::{Row, SourceTable, Sources};
use crate::test_support::{core, tables};

#[test]
fn a_table_says_where_its_facts_come_from() {
    let zen = core("zen4");
    assert_eq!(
        (zen.source(), zen.version()),
        ("linux:tools/perf/pmu-events/arch/x86/amdzen4", "6.12.117")
    );
    let skylake = core("skylakex");
    assert_eq!(skylake.source(), "perfmon:SKX/events/skylakex_core.json");
    assert!(!skylake.is_empty() && skylake.version().starts_with("V1."), "{}", skylake.version());
}

#[test]
fn a_table_without_events_is_empty() {
    let generics = vec![None; crate::generic::TABLE_NAMES];
    let table = SourceTable { name: "none".to_string(), generics, ..SourceTable::default() };
    let block = Sources { tables: vec![table], ..Sources::default() }.pack().unwrap();
    let core = Tables::open(&block).unwrap().named("none").unwrap();
    assert!(core.is_empty() && core.events().next().is_none());
    assert_eq!(core.find("anything"), None);
}

/// Names that differ in separators alone: of those in use the first, whatever the spelling of the question.
#[test]
fn of_equal_names_the_first_is_found() {
    let row = |name: &str, deprecated| Row {
        name: name.to_string(),
        ways: vec![crate::event::Way::default()],
        counters: 1,
        deprecated,
        ..Row::default()
    };
    let rows = vec![row("A.B_C", true), row("A.B.C", false), row("A_B_C", false)];
    let table = SourceTable { name: "one".to_string(), rows, ..SourceTable::default() };
    let block = Sources { tables: vec![table], ..Sources::default() }.pack().unwrap();
    let core = Tables::open(&block).unwrap().named("one").unwrap();
    let found = |name: &str| core.find(name).unwrap().name.to_string();
    assert_eq!(found("a-b-c"), "A.B.C");
    for name in ["A.B_C", "A.B.C", "A_B_C"] {
        assert_eq!(found(&name.to_lowercase()), name);
    }
}

#[test]
fn i11_a_hybrid_processor_names_its_cores() {
    let key = CpuKey::new(Vendor::Intel, 6, 0x97, 0);
    let error = tables().core(&key).map(|core| core.name()).unwrap_err().to_string();
    for part in [
        "Intel family 0x6 model 0x97 stepping 0",
        "Core goldencove: core type 0x40, native model 0x",
        "Atom gracemont: core type 0x20, native model 0x",
    ] {
        assert!(error.contains(part), "{error}\n  lacks: {part}");
    }
}
