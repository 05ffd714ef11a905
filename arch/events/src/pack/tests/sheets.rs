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
        assert!(said.contains("not a list of values and ranges up to 0xff"), "{wrong}: {said}");
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

/// Each value at its edge: an event select has 8 bits for the event and, with UMASK2, 16 for the unit mask on Intel
/// (SDM vol. 3, 20.2.1), 12 and 8 on AMD (APM vol. 2, 13.2.1).
#[test]
fn a_row_fits_the_registers_of_its_vendor() {
    let row = |event, umask| Row {
        ways: vec![Way { event, umask, msr: None }],
        counters: 1,
        ..Row::default()
    };
    let field = |vendor, row: Row| row.check(vendor).err().map(|misfit| misfit.field);
    use Vendor::{Amd, Intel};
    for (vendor, event, umask) in [(Intel, 0xff, 0xffff), (Amd, 0xfff, 0xff)] {
        assert_eq!(field(vendor, row(event, umask)), None);
        assert_eq!(field(vendor, row(event + 1, 0)), Some("EventCode"));
        assert_eq!(field(vendor, row(event + 2, 0)), Some("EventCode"));
        if let Some(wide) = u16::checked_add(umask, 1) {
            assert_eq!(field(vendor, row(1, wide)), Some("UMask"));
            assert_eq!(field(vendor, row(1, wide + 1)), Some("UMask"));
        }
    }
    // What Intel's processors alone have.
    let msr = vec![Way { event: 1, umask: 0, msr: Some(0x1a6) }];
    for (one, wrong) in [
        (Row { fixed: Some(1), ..row(1, 1) }, "Counter"),
        (Row { ways: msr, ..row(1, 1) }, "MSRIndex"),
        (Row { any_thread: true, ..row(1, 1) }, "AnyThread"),
    ] {
        assert_eq!(field(Intel, one.clone()), None);
        assert_eq!(field(Amd, one), Some(wrong));
    }
    // Some counter has to have it.
    assert_eq!(field(Intel, Row { counters: 0, ..row(1, 1) }), Some("Counter"));
    assert_eq!(field(Intel, Row { counters: 0, fixed: Some(1), ..row(1, 1) }), None);
}

#[test]
fn bits_of_an_msr_go_to_the_tables_that_use_it() {
    let mut sources = Sources::default();
    for (name, msr) in [("a", r#", "MSRIndex": "0x1a6", "MSRValue": "1""#), ("b", "")] {
        let json = format!(r#"[{{"EventName": "A", "EventCode": "1", "Counter": "0"{msr}}}]"#);
        sources.merge_perfmon(name, &json).unwrap();
    }
    let text = "tables,msr,bits,source\n*,0x1a6,0xf,x\nb.csv|a.csv,0x1a7,0x3,x\n";
    sources.read_msr_bits("msr_bits.csv", text).unwrap();
    let bits = |table: usize| -> Vec<(u32, u64)> {
        sources.tables[table].msrs.iter().map(|msr| (msr.address, msr.valid_bits)).collect()
    };
    assert_eq!(bits(0), [(0x1a6, 0xf), (0x1a7, 3)]);
    assert_eq!(bits(1), [(0x1a7, 3)]);
}

/// A line of a table with these fields, the others as most lines have them.
fn line(fields: &[(&str, &str)]) -> Result<Row, String> {
    let usual = [("name", "A"), ("event", "1"), ("umask", "1"), ("counters", "1")];
    let zero = ["cmask", "inv", "edge", "any", "precise", "data_la", "taken_alone", "deprecated"];
    let of = |column: &&str| {
        let found = fields.iter().chain(&usual).find(|(name, _)| name == column);
        found.map_or(if zero.contains(column) { "0" } else { "" }, |(_, text)| text)
    };
    let cells: Vec<&str> = row::COLUMNS.iter().map(of).collect();
    let text = format!("{}\n{}\n", row::COLUMNS.join(","), cells.join(","));
    let sheet = Sheet::read("intel/x.csv", &text, &row::COLUMNS).unwrap();
    row::read(&sheet, 0, Vendor::Intel).map_err(|error| error.to_string())
}

#[test]
fn a_line_of_a_table_is_read_or_refused_by_its_field() {
    let precise = |text| line(&[("precise", text)]).map(|row| row.precise);
    let all = ["0", "1", "2"].map(|text| precise(text).unwrap());
    assert_eq!(all, [Precise::No, Precise::Capable, Precise::Only]);
    assert!(precise("3").is_err());
    assert_eq!(line(&[("cmask", "0xff")]).map(|row| row.cmask), Ok(0xff));
    assert!(line(&[("cmask", "0x100")]).unwrap_err().contains("the number is too large"));
    for name in ["", "CAFÉ"] {
        assert!(line(&[("name", name)]).unwrap_err().contains("all of them ASCII"), "{name}");
    }
    let msr = |text| line(&[("msr", text)]).map(|row| row.ways[0].msr);
    assert_eq!(msr("0xfffffffe"), Ok(Some(0xffff_fffe)));
    assert!(msr("0xffffffff").is_err(), "that number says that there is none");
    let ways = |event, umask, msr| {
        let read = line(&[("event", event), ("umask", umask), ("msr", msr)]);
        read.map(|row| row.ways.iter().map(|way| (way.event, way.umask)).collect::<Vec<_>>())
    };
    assert_eq!(ways("1|2", "3|4", ""), Ok(vec![(1, 3), (2, 4)]));
    assert_eq!(ways("1|2", "3", "5|6"), Ok(vec![(1, 3), (2, 3)]));
    assert_eq!(ways("1", "3|4|5", ""), Ok(vec![(1, 3), (1, 4), (1, 5)]));
    for (event, umask, msr) in
        [("1|2|3", "3|4", ""), ("1|2", "3|4|5", ""), ("1|2", "3", "5"), ("1|2|3|4|5", "1", "")]
    {
        let said = ways(event, umask, msr).unwrap_err();
        assert!(said.contains("have different lengths"), "{said}");
    }
}

#[test]
fn a_line_has_the_number_that_an_editor_gives_it() {
    assert_eq!([0, 1, 5].map(super::sheet::line_number), [2, 3, 7]);
}
