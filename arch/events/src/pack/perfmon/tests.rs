mod fields;

use super::*;
use crate::event::Way;
use crate::pack::ProcessorRange;
use crate::tables::fold;
use proptest::prelude::*;
use std::sync::OnceLock;

fn merge(table: &str, rows: &str) -> (Sources, Merged) {
    static EMBEDDED: OnceLock<Sources> = OnceLock::new();
    let mut sources = EMBEDDED.get_or_init(|| Sources::embedded().unwrap()).clone();
    let merged = sources.merge_perfmon(table, &format!("[{rows}]")).unwrap();
    (sources, merged)
}

fn row(sources: &Sources, table: &str, name: &str) -> crate::pack::Row {
    let rows = &sources.table(table).unwrap().rows;
    rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name}")).clone()
}

fn refusals(merged: &Merged) -> Vec<String> {
    merged.refused.iter().map(ToString::to_string).collect()
}

fn offcore(name: &str, codes: &str, msrs: &str) -> String {
    format!(
        r#"{{"EventName": "{name}", {codes}, "Counter": "0,1", "MSRIndex": "{msrs}", "MSRValue": "7"}}"#
    )
}

#[test]
fn one_msr_beside_two_codes_takes_the_code_that_looks_at_it() {
    // The forms of Silvermont, Goldmont, Knights Landing and of the newer cores.
    let two_masks = r#""EventCode": "0xB7", "UMask": "0x01,0x02""#;
    let two_events = r#""EventCode": "0xB7,0xBB", "UMask": "0x01""#;
    let one = r#""EventCode": "0xB7", "UMask": "0x01""#;
    let rows = [
        offcore("A", two_masks, "0x1a6"),
        offcore("B", two_masks, "0x1a7"),
        offcore("C", two_masks, "0x1a6,0x1a7"),
        offcore("D", two_events, "0x1a6"),
        offcore("E", two_events, "0x1A7"),
        offcore("F", two_events, "0x1a7, 0x1a6"),
        offcore("G", one, "0x1a6,0x1a7"),
        offcore("H", two_masks, "0x3f6"),
        offcore("I", two_masks, "0"),
        offcore("J", one, "0x123"),
    ];
    let (sources, merged) = merge("knightslanding", &rows.join(","));
    let way = |event, umask, msr| Way { event, umask, msr: Some(msr) };
    let ways = |name| row(&sources, "knightslanding", name).ways;
    assert_eq!(ways("A"), [way(0xb7, 1, 0x1a6)]);
    assert_eq!(ways("B"), [way(0xb7, 2, 0x1a7)]);
    assert_eq!(ways("C"), [way(0xb7, 1, 0x1a6), way(0xb7, 2, 0x1a7)]);
    assert_eq!(ways("D"), [way(0xb7, 1, 0x1a6)]);
    assert_eq!(ways("E"), [way(0xbb, 1, 0x1a7)]);
    assert_eq!(ways("F"), [way(0xb7, 1, 0x1a6), way(0xbb, 1, 0x1a7)]);
    assert_eq!(ways("G"), [way(0xb7, 1, 0x1a6)]);
    assert_eq!(ways("I"), [1, 2].map(|umask| Way { event: 0xb7, umask, msr: None }));
    assert_eq!(ways("J"), [way(0xb7, 1, 0x123)]);
    // Only the one that cannot be understood is missing, and it is named.
    let refused = refusals(&merged);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].contains("event 7 (H): MSRIndex is \"0x3f6\""), "{refused:?}");
    assert_eq!(merged.added.len(), 9);
}

fn fixed(name: &str, event: &str, umask: &str, counter: &str) -> String {
    format!(
        r#"{{"EventName": "{name}", "EventCode": "{event}", "UMask": "{umask}", "Counter": "{counter}"}}"#
    )
}

#[test]
fn fixed_counters_are_what_the_event_is_whatever_the_file_counts_from() {
    for (table, rows) in [
        // Nehalem and Westmere: no code, from 1.
        ("nehalemep", [("0x0", "0x0", "1"), ("0x0", "0x0", "2"), ("0x0", "0x0", "3")]),
        // Bonnell: a code of its own.
        ("bonnell", [("0xA", "0x0", "1"), ("0xA", "0x0", "2"), ("0xA", "0x0", "3")]),
        // Silvermont: the fixed counters' code, from 1.
        ("silvermont", [("0x00", "0x01", "1"), ("0x00", "0x02", "2"), ("0x00", "0x03", "3")]),
        // Most others: from 0. Jaketown: from 0 but for one row.
        ("skylakex", [("0x00", "0x01", "0"), ("0x00", "0x02", "1"), ("0x00", "0x03", "2")]),
        ("jaketown", [("0x00", "0x01", "0"), ("0x00", "0x02", "2"), ("0x00", "0x03", "2")]),
    ] {
        let names = ["INST_RETIRED.ANY", "CPU_CLK_UNHALTED.THREAD", "CPU_CLK_UNHALTED.REF"];
        let rows: Vec<String> = names
            .iter()
            .zip(rows)
            .map(|(name, (event, umask, n))| {
                fixed(name, event, umask, &format!("Fixed counter {n}"))
            })
            .collect();
        let (sources, merged) = merge(table, &rows.join(","));
        assert_eq!(refusals(&merged), [""; 0], "{table}");
        for (index, name) in (0..).zip(names) {
            let row = row(&sources, table, name);
            assert_eq!((row.fixed, row.counters), (Some(index), 0), "{table} {name}");
            let umask = u16::from(index) + 1;
            assert_eq!(row.ways, [Way { event: 0, umask, msr: None }], "{table} {name}");
        }
    }
}

#[test]
fn a_fixed_counter_that_contradicts_the_event_is_refused() {
    let rows = [
        fixed("INST_RETIRED.ANY", "0x00", "0x01", "Fixed counter 2"),
        fixed("CPU_CLK_UNHALTED.THREAD", "0x00", "0x01", "Fixed counter 1"),
        fixed("CPU_CLK_UNHALTED.CORE", "0x00", "0x02", "Fixed counter 0"),
        fixed("X", "0xC0", "0x00", "Fixed counter 2"),
        fixed("Z", "0x00", "0x02", "Fixed counter 17"),
        fixed("GOOD", "0x3c", "0x00", "Fixed counter 1"),
        fixed("FIRST", "0x12", "0x34", "Fixed counter 0"),
        fixed("GLOBAL", "0x00", "0x02", "33"),
        fixed("GLOBAL.3", "0x00", "0x03", "34"),
    ];
    let (sources, merged) = merge("skylakex", &rows.join(","));
    let refused = refusals(&merged);
    assert_eq!(refused.len(), 5, "{refused:?}");
    for (text, part) in refused.iter().zip([
        "event 0 (INST_RETIRED.ANY): Counter is \"Fixed counter 2\": the event is that of another",
        "event 1 (CPU_CLK_UNHALTED.THREAD): Counter is \"Fixed counter 1\": its name and its code",
        "event 2 (CPU_CLK_UNHALTED.CORE): Counter is \"Fixed counter 0\"",
        "event 3 (X): Counter is \"Fixed counter 2\"",
        "event 4 (Z): Counter is \"Fixed counter 17\": a fixed counter has a number",
    ]) {
        assert!(text.contains(part), "{text}\n  lacks: {part}");
    }
    let on = |name| row(&sources, "skylakex", name).fixed;
    assert_eq!((on("GOOD"), on("FIRST"), on("GLOBAL")), (Some(1), Some(0), Some(1)));
    // Nothing states what an unknown event is counted from.
    let unknown = fixed("Y", "0x12", "0x34", "Fixed counter 1");
    let disagreeing = ["0", "1"].map(fixed_counter_of_instructions).join(",");
    let disagreeing = disagreeing.replacen("INST_RETIRED.ANY", "INST_RETIRED.PREC_DIST", 1);
    for rows in [unknown.clone(), format!("{disagreeing},{unknown}")] {
        let refused = refusals(&merge("skylakex", &rows).1);
        assert!(
            refused.len() == 1 && refused[0].contains("whether this file numbers"),
            "{refused:?}"
        );
    }
    // Where other events of the file show it, an unknown one is counted likewise.
    for (number, from) in [("0", 4), ("1", 3)] {
        let known = fixed_counter_of_instructions(number);
        let (sources, merged) =
            merge("skylakex", &[known, fixed("Y", "0x12", "0x34", "Fixed counter 4")].join(","));
        assert_eq!(refusals(&merged), [""; 0]);
        assert_eq!(row(&sources, "skylakex", "Y").fixed, Some(from));
    }
}

fn fixed_counter_of_instructions(number: &str) -> String {
    fixed("INST_RETIRED.ANY", "0x00", "0x01", &format!("Fixed counter {number}"))
}

#[test]
fn the_well_known_fixed_events_are_those_of_the_tables() {
    let sources = Sources::embedded().unwrap();
    let mut seen = 0;
    for row in sources.tables.iter().flat_map(|table| &table.rows) {
        if let Some(index) = row.fixed {
            let known = fixed::NAMES.iter().find(|(name, _)| *name == row.name);
            assert_eq!(known.map(|(_, index)| *index), Some(index), "{}", row.name);
            seen += 1;
        }
    }
    assert!(seen > 150, "{seen}");
}

#[test]
fn values_that_do_not_fit_are_refused_and_not_cut_off() {
    let row = |fields: &str| format!(r#"{{"EventName": "A", {fields}}}"#);
    for (table, fields, part) in [
        ("skylakex", r#""EventCode": "0x1ff", "Counter": "0""#, "EventCode is \"0x1ff\""),
        ("skylakex", r#""EventCode": "0xB7,0x1bb", "Counter": "0""#, "EventCode is \"0xB7,0x1bb\""),
        ("skylakex", r#""UMask": "0x10000", "Counter": "0""#, "UMask is \"0x10000\""),
        ("skylakex", r#""CounterMask": "256", "Counter": "0""#, "CounterMask is \"256\""),
        ("zen4", r#""EventCode": "0x1000", "Counter": "0""#, "EventCode is \"0x1000\""),
        ("zen4", r#""UMask": "0x1ff", "Counter": "0""#, "UMask is \"0x1ff\""),
        ("zen4", r#""UMask": "1", "UMaskExt": "1", "Counter": "0""#, "UMask is \"0x101\""),
        (
            "zen4",
            r#""EventCode": "0", "UMask": "0xa", "Counter": "Fixed counter 9""#,
            "AMD processors have no fixed counters",
        ),
        ("zen4", r#""AnyThread": "1", "Counter": "0""#, "one hyper-thread at a time"),
        (
            "zen4",
            r#""EventCode": "0xb7", "UMask": "1", "MSRIndex": "0x1a6", "Counter": "0""#,
            "no event of AMD's processors uses an extra MSR",
        ),
        ("skylakex", r#""Counter": """#, "this is not a list of counters"),
        ("skylakex", r#""Counter": "0,32""#, "this is not a list of counters"),
        (
            "skylakex",
            r#""MSRIndex": "0xffffffff", "Counter": "0""#,
            "a number is too large: the maximum is 0xfffffffe",
        ),
    ] {
        let (_, merged) = merge(table, &row(fields));
        let refused = refusals(&merged);
        assert!(merged.added.is_empty() && refused.len() == 1, "{fields}: {merged:?}");
        assert!(refused[0].contains(part), "{fields}: {refused:?}");
    }
    // What fits, goes in.
    let (_, merged) =
        merge("zen4", &row(r#""EventCode": "0x1ff", "UMask": "0xff", "Counter": "0""#));
    assert_eq!(merged.added, ["A"]);
}

#[test]
fn a_bad_event_costs_itself_and_no_escape_sequence_comes_through() {
    let (sources, merged) = merge(
        "skylakex",
        r#"{"EventName": "A\u001b[31m", "EventCode": "1", "Counter": "0"},
           {"EventName": "\u001b]0;x\u0007", "EventCode": "1", "Counter": "0"},
           {"EventName": "B", "EventCode": "\u001b[2J", "Counter": "0"},
           {"EventName": "C", "EventCode": "1", "Counter": "0", "Errata": "E1\u001b[31m,E2\u009b"},
           {"EventCode": "1", "Counter": "0"}, 7, {"EventName": 5},
           {"EventName": "D", "EventCode": "1", "Counter": "0", "Unit": "CHA\u001b[31m"}"#,
    );
    assert_eq!(merged.added, ["C"]);
    assert_eq!(merged.skipped, ["D"]);
    assert_eq!(merged.refused.iter().map(|e| e.index).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6]);
    let errata = row(&sources, "skylakex", "C").errata;
    assert_eq!(errata, "E1\\u{1b}[31m|E2\\u{9b}");
    for text in refusals(&merged) {
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
}

#[test]
fn a_name_that_no_list_can_spell_is_taken_under_one_that_it_can() {
    let event =
        |name: &str| format!(r#"{{"EventName": "{name}", "EventCode": "1", "Counter": "0"}}"#);
    let rows = [
        event("MY,EVENT"),
        event("MY EVENT {x}"),
        event("MY_EVENT"),
        event("MY.EVENT"),
        event(",,"),
    ];
    let (sources, merged) = merge("skylakex", &rows.join(","));
    let renamed: Vec<(&str, &str)> =
        merged.renamed.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    assert_eq!(renamed, [("MY,EVENT", "MY_EVENT"), ("MY EVENT {x}", "MY_EVENT__x_")]);
    // Another spelling is another event; the same spelling is refused, and nothing is lost unsaid.
    assert_eq!(merged.added, ["MY_EVENT", "MY_EVENT__x_", "MY.EVENT"]);
    let refused = refusals(&merged);
    assert!(refused[0].contains("event 2 (MY_EVENT)") && refused[0].contains("already"));
    assert!(refused[1].contains("event 4 (,,)"), "{refused:?}");
    let text = "my_event,my_event__x_:u";
    let block = sources.pack().unwrap();
    let core = crate::tables::Tables::open(&block).unwrap().named("skylakex").unwrap();
    let processor = crate::processor::Processor::described_by(&core);
    for item in crate::parse::parse_list(text).unwrap() {
        crate::encode::encode(&item.requests[0], &processor, Some(&core)).unwrap();
    }
}

#[test]
fn a_new_table_has_the_vendor_of_its_processors() {
    let mut sources = Sources::default();
    sources.processors.push(ProcessorRange {
        vendor: Vendor::Amd,
        family: 0x1b,
        models: 1..=1,
        steppings: 0..=15,
        core_type: None,
        native_model: None,
        role: String::new(),
        table: "mine".to_string(),
    });
    let json = r#"[{"EventName": "A", "EventCode": "0x1c0", "Counter": "0"}]"#;
    let merged = sources.merge_perfmon("mine", json).unwrap();
    assert_eq!(merged.added, ["A"]);
    assert_eq!(sources.table("mine").unwrap().vendor, Some(Vendor::Amd));
}

/// Work is counted in spellings folded: every comparison and look-up of a name folds it.
#[test]
fn a_large_file_costs_each_event_the_same() {
    let work = |count: usize| {
        let rows: Vec<String> = (0..count)
            .map(|n| format!(r#"{{"EventName": "EVENT.N{n}", "EventCode": "1", "Counter": "0"}}"#))
            .collect();
        let mut sources = Sources::default();
        let before = fold::work();
        let merged = sources.merge_perfmon("mine", &format!("[{}]", rows.join(","))).unwrap();
        assert_eq!(merged.added.len(), count);
        let merging = fold::work() - before;
        sources.pack().unwrap();
        (merging, fold::work() - before - merging)
    };
    let (one, packing_one) = work(1_000);
    let (four, packing_four) = work(4_000);
    assert!(one >= 1_000 && four <= 4 * one + 100, "{one} {four}");
    // Sorting the names takes a logarithm more: 12 / 10 here.
    assert!(packing_four <= 6 * packing_one, "{packing_one} {packing_four}");
}

/// Files that are nearly right: fields with values of every kind.
fn nearly() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        "EventName",
        "EventCode",
        "UMask",
        "UMaskExt",
        "Counter",
        "CounterHTOff",
        "CounterMask",
        "Invert",
        "AnyThread",
        "EdgeDetect",
        "MSRIndex",
        "MSRValue",
        "PEBS",
        "Precise",
        "Data_LA",
        "TakenAlone",
        "Errata",
        "Deprecated",
        "Unit",
    ]);
    let value = prop::sample::select(vec![
        "\"INST_RETIRED.ANY\"",
        "\"X\"",
        "\"RFACE\"",
        "\"a,b\"",
        "\"\\u001b[m\"",
        "\"\"",
        "\"0\"",
        "\"1\"",
        "\"0x01,0x02\"",
        "\"0xB7,0xBB\"",
        "\"0xffffffffffffffff\"",
        "\"0,1,2,3\"",
        "\"Fixed counter 0\"",
        "\"Fixed counter 1\"",
        "\"Fixed counter 99\"",
        "\"33\"",
        "\"0x1a6\"",
        "\"0x1a6,0x1a7\"",
        "null",
        "7",
        "-1",
        "1.5",
        "true",
        "[]",
        "{}",
    ]);
    let event = prop::collection::vec((field, value), 0..8).prop_map(|fields| {
        let fields: Vec<String> =
            fields.iter().map(|(field, value)| format!("\"{field}\": {value}")).collect();
        format!("{{\"EventName\": \"E\", \"Counter\": \"0\", {}}}", fields.join(","))
            .replace(", }", "}")
    });
    prop::collection::vec(event, 0..5).prop_map(|events| format!("[{}]", events.join(",")))
}

proptest! {
    #[test]
    fn whatever_a_file_holds_each_event_is_taken_or_named(text in nearly(), amd in any::<bool>()) {
        let vendor = if amd { Vendor::Amd } else { Vendor::Intel };
        let mut sources = Sources::default();
        sources.merge_perfmon("mine", "[]").unwrap();
        sources.tables[0].vendor = Some(vendor);
        let count = serde_json::from_str::<Vec<Value>>(&text).unwrap().len();
        let merged = sources.merge_perfmon("mine", &text).unwrap();
        prop_assert_eq!(merged.added.len() + merged.skipped.len() + merged.refused.len(), count);
        let block = sources.pack().unwrap();
        let core = crate::tables::Tables::open(&block).unwrap().named("mine").unwrap();
        prop_assert_eq!(core.len(), merged.added.len());
        for name in &merged.added {
            prop_assert!(crate::parse::parse_event(name).is_ok(), "{}", name);
        }
        for row in &sources.tables[0].rows {
            prop_assert!(row.check(vendor).is_ok(), "{:?}", row);
        }
        for line in refusals(&merged) {
            prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
        }
    }
}
