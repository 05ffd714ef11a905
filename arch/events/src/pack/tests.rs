mod sheets;

use super::*;
use crate::cpu::{CORE_TYPE_ATOM, CORE_TYPE_CORE, CpuKey};
use crate::event::{Precise, Way};
use crate::tables::{NoCore, Tables};
use std::collections::BTreeSet;
use std::path::Path;

fn packed() -> Vec<u8> {
    Sources::embedded().and_then(|sources| sources.pack()).unwrap()
}

#[test]
fn every_file_of_the_data_folder_is_embedded() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let mut there = BTreeSet::new();
    for vendor in ["intel", "amd"] {
        for file in std::fs::read_dir(data.join(vendor)).unwrap() {
            there.insert(format!("{vendor}/{}", file.unwrap().file_name().to_str().unwrap()));
        }
    }
    let embedded: BTreeSet<String> =
        embedded::TABLES.iter().map(|(name, _)| (*name).to_string()).collect();
    assert_eq!(embedded, there);
    assert_eq!(embedded.len(), 62);
}

#[test]
fn p4_all_tables_are_below_a_megabyte_and_nothing_is_lost() {
    let sources = Sources::embedded().unwrap();
    let block = sources.pack().unwrap();
    println!("event tables: {} bytes", block.len());
    assert!(block.len() < 1_000_000, "{}", block.len());
    let tables = Tables::open(&block).unwrap();
    let mut rows = 0;
    for table in &sources.tables {
        let core = tables.named(&table.name).unwrap();
        assert_eq!(core.len(), table.rows.len(), "{}", table.name);
        assert_eq!(Some(core.vendor()), table.vendor);
        assert!(!core.source().is_empty() && !core.version().is_empty(), "{}", table.name);
        for row in &table.rows {
            let event = core.find(&row.name).unwrap();
            assert_eq!(event.name, row.name, "{}", table.name);
            assert_eq!(event.ways(), row.ways);
            let read = Row {
                name: event.name.to_string(),
                ways: event.ways().to_vec(),
                cmask: event.cmask,
                invert: event.invert,
                edge: event.edge,
                any_thread: event.any_thread,
                counters: event.counters,
                fixed: event.fixed,
                msr_value: event.msr_value,
                precise: event.precise,
                data_address: event.data_address,
                taken_alone: event.taken_alone,
                deprecated: event.deprecated,
                errata: event.errata.to_string(),
                doubtful: event.doubtful,
            };
            assert_eq!(&read, row, "{}", table.name);
            rows += 1;
        }
        for (number, name) in table.generics.iter().enumerate() {
            let generic = generic::Generic::from_number(number as u8).unwrap();
            assert_eq!(core.generic(generic).map(|e| e.name), name.as_deref(), "{generic}");
        }
    }
    assert_eq!(rows, 21_999);
}

#[test]
fn corrections_are_in_the_block_and_the_files_are_untouched() {
    let block = packed();
    let tables = Tables::open(&block).unwrap();
    let event = |table: &str, name: &str| tables.named(table).unwrap().find(name).unwrap();
    assert_eq!(event("sandybridge", "L1D_PEND_MISS.FB_FULL").counters, 0x4);
    assert_eq!(event("lioncove_arl", "OCR.DEMAND_DATA_RD.L3_MISS").counters, 0xf);
    let stalls = event("bonnell", "UOPS_RETIRED.STALLS");
    assert_eq!((stalls.cmask, stalls.invert, stalls.edge), (1, true, true));
    assert_eq!(event("haswell", "UOPS_EXECUTED.CORE_CYCLES_NONE").cmask, 1);
    assert_eq!(event("zen2", "ls_tlb_flush").ways()[0].umask, 0xff);
    let (_, text) =
        embedded::TABLES.iter().find(|(name, _)| *name == "intel/sandybridge.csv").unwrap();
    assert!(text.contains("L1D_PEND_MISS.FB_FULL,0x48,0x02,0x01,0,0,0,0xff,"));
    // Nothing else is wrong in this way: invert and edge need a counter mask.
    for core in tables.cores() {
        for event in core.events() {
            let meaningless = (event.invert || event.edge) && event.cmask == 0;
            assert!(!meaningless, "{} {}", core.name(), event.name);
        }
    }
}

#[test]
fn every_msr_value_of_the_tables_keeps_to_the_bits_that_may_be_set() {
    let block = packed();
    let mut checked = 0;
    for core in Tables::open(&block).unwrap().cores() {
        let msrs = core.extra_msrs();
        for event in core.events() {
            for way in event.ways() {
                let Some(address) = way.msr else { continue };
                let msr = msrs.iter().find(|msr| msr.address == address).unwrap();
                let bad = event.msr_value & !msr.valid_bits;
                assert_eq!(bad, 0, "{} {} {address:#x}", core.name(), event.name);
                checked += usize::from(msr.valid_bits != u64::MAX);
            }
        }
    }
    assert!(checked > 9_000, "{checked}");
}

#[test]
fn i11_the_processor_decides_the_table() {
    use crate::cpu::Vendor::{Amd, Intel};
    let block = packed();
    let tables = Tables::open(&block).unwrap();
    let name = |cpu: CpuKey| tables.core(&cpu).map(|core| core.name());
    assert_eq!(name(CpuKey::new(Intel, 6, 0x55, 4)), Ok("skylakex"));
    assert_eq!(name(CpuKey::new(Intel, 6, 0x55, 7)), Ok("cascadelakex"));
    assert_eq!(name(CpuKey::new(Amd, 0x17, 0x31, 0)), Ok("zen2"));
    assert_eq!(name(CpuKey::new(Amd, 0x17, 0x84, 0)), Ok("zen2"));
    for model in [0x0f, 0x16, 0x17, 0x1d] {
        assert_eq!(name(CpuKey::new(Intel, 6, model, 0)), Ok("core2"));
    }
    for (family, model, table) in [
        (0xf, 0x05, "k8"),
        (0x10, 0x02, "k10_barcelona"),
        (0x10, 0x04, "k10_shanghai"),
        (0x10, 0x08, "k10_istanbul"),
        (0x10, 0x0a, "k10_barcelona"),
        (0x11, 0x03, "turion"),
        (0x12, 0x01, "llano"),
        (0x14, 0x02, "bobcat"),
        (0x15, 0x60, "bulldozer"),
        (0x16, 0x30, "jaguar"),
    ] {
        assert_eq!(name(CpuKey::new(Amd, family, model, 0)), Ok(table));
    }
    // No facts at hand: Cannon Lake, Lakefield, Bartlett Lake, Yonah have the architectural events alone.
    for model in [0x66, 0x8a, 0xd7, 0x0e] {
        let cpu = CpuKey::new(Intel, 6, model, 0);
        assert_eq!(name(cpu), Err(NoCore::Unknown(cpu)));
    }
    assert_eq!(name(CpuKey::new(Amd, 0x1a, 0x44, 0)), Ok("zen5"));
    // Linux 52075128273a, "x86/CPU/AMD: Carve out a Zen5 models range": 0xd0 to 0xd7 are Zen 5. The
    // models around them are Zen 6 (24ee8d9432b5 and later), for which there is no table.
    for (model, table) in [(0xcf, None), (0xd0, Some("zen5")), (0xd7, Some("zen5")), (0xd8, None)] {
        assert_eq!(name(CpuKey::new(Amd, 0x1a, model, 0)).ok(), table, "{model:#x}");
    }
    let hybrid = CpuKey::new(Intel, 6, 0x97, 2);
    let leaf = |core_type: u8, native: u32| u32::from(core_type) << 24 | native;
    assert_eq!(name(hybrid.with_leaf_1a(leaf(CORE_TYPE_ATOM, 1))), Ok("gracemont"));
    assert_eq!(name(hybrid.with_leaf_1a(leaf(CORE_TYPE_CORE, 1))), Ok("goldencove"));
    // A native model that perfmon does not list: the core type is enough here.
    assert_eq!(name(hybrid.with_leaf_1a(leaf(CORE_TYPE_CORE, 9))), Ok("goldencove"));
    let error = name(hybrid.with_leaf_1a(0)).unwrap_err();
    assert!(matches!(&error, NoCore::CoreType { cores, .. } if cores.len() == 2), "{error}");
    assert!(error.to_string().contains("hybrid"), "{error}");
    // Arrow Lake-H has two kinds of efficient cores: only the native model tells them apart.
    let arrow_lake = CpuKey::new(Intel, 6, 0xc5, 0);
    assert_eq!(name(arrow_lake.with_leaf_1a(leaf(CORE_TYPE_ATOM, 2))), Ok("crestmont_arl"));
    assert_eq!(name(arrow_lake.with_leaf_1a(leaf(CORE_TYPE_ATOM, 3))), Ok("skymont_arl"));
    assert!(name(arrow_lake.with_leaf_1a(leaf(CORE_TYPE_ATOM, 9))).is_err());
    let unknown = CpuKey::new(Intel, 6, 0x0e, 0);
    assert_eq!(name(unknown), Err(NoCore::Unknown(unknown)));
}

#[test]
fn a_users_perfmon_file_is_merged_over_a_table() {
    let json = r#"{"Header": {}, "Events": [
        {"EventName": "MY.OFFCORE", "EventCode": "0xB7, 0xBB", "UMask": "0x01", "Counter": "0,1,2,3",
         "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x10001", "Errata": "ABC1, ABC2", "TakenAlone": "1"},
        {"EventName": "inst_retired.any_p", "EventCode": "0xC0", "UMask": "0x00", "Counter": "0,1",
         "CounterMask": 2, "Invert": "1", "PEBS": "1"},
        {"EventName": "MY.FIXED", "EventCode": "0x00", "UMask": "0x2", "Counter": "Fixed counter 1"},
        {"EventName": "UNC_X", "EventCode": "0x1", "Counter": "0", "Unit": "CHA"}]}"#;
    let mut sources = Sources::embedded().unwrap();
    let before = sources.table("skylakex").unwrap().rows.len();
    let merged = sources.merge_perfmon("intel/skylakex.csv", json).unwrap();
    assert_eq!(merged.added, ["MY.OFFCORE", "MY.FIXED"]);
    assert_eq!(merged.replaced, ["INST_RETIRED.ANY_P"]);
    assert_eq!(merged.skipped, ["UNC_X"]);
    let block = sources.pack().unwrap();
    let core = Tables::open(&block).unwrap().named("skylakex").unwrap();
    assert_eq!(core.len(), before + 2);
    let offcore = core.find("my:offcore").unwrap();
    let way = |event, msr| Way { event, umask: 1, msr: Some(msr) };
    assert_eq!(offcore.ways(), [way(0xb7, 0x1a6), way(0xbb, 0x1a7)]);
    assert_eq!((offcore.msr_value, offcore.errata), (0x10001, "ABC1|ABC2"));
    assert!(offcore.taken_alone);
    let replaced = core.find("INST_RETIRED.ANY_P").unwrap();
    assert_eq!((replaced.counters, replaced.cmask, replaced.invert), (3, 2, true));
    assert_eq!(replaced.precise, Precise::Capable);
    // The generic name follows the replacement.
    let instructions = generic::Generic::from_name("instructions").unwrap();
    assert_eq!(core.generic(instructions).unwrap().name, "inst_retired.any_p");
    assert_eq!(core.find("my.fixed").unwrap().fixed, Some(1));
}

#[test]
fn a_users_mistakes_are_named() {
    let merge = |json: &str| Sources::default().merge_perfmon("mine", json);
    assert!(merge("{").unwrap_err().to_string().contains("not in perfmon's form"));
    for json in ["7", "{}", r#"{"Events": 1}"#] {
        assert!(merge(json).unwrap_err().to_string().contains("not a list of events"), "{json}");
    }
    for (row, part) in [
        (r#"{"EventCode": "1"}"#, "event 0: EventName is \"\": it is missing"),
        (
            r#"{"EventName": "A", "EventCode": "zz", "Counter": "0"}"#,
            "event 0 (A): EventCode is \"zz\"",
        ),
        (
            r#"{"EventName": "A", "EventCode": "1", "Counter": "fixed counter x"}"#,
            "Counter is \"fixed counter x\"",
        ),
        (
            r#"{"EventName": "A", "EventCode": "1", "Counter": "0", "MSRIndex": "1,2"}"#,
            "MSRIndex is \"1,2\"",
        ),
    ] {
        let merged = merge(&format!("[{row}]")).unwrap();
        assert!(!merged.took_something());
        assert!(merged.refused[0].to_string().contains(part), "{:?}", merged.refused);
    }
    // A new table is made, and opens.
    let mut sources = Sources::default();
    sources
        .merge_perfmon("mine", r#"[{"EventName": "A", "EventCode": "1", "Counter": "0"}]"#)
        .unwrap();
    let block = sources.pack().unwrap();
    assert_eq!(Tables::open(&block).unwrap().named("mine").unwrap().len(), 1);
}

#[test]
fn what_cannot_be_numbered_or_found_is_named() {
    let small = |count| write::small("names", count).map_err(|error| error.to_string());
    assert_eq!(small(65_534), Ok(65_534));
    assert_eq!(small(65_535), Err("65535 names: the file's layout allows 65534".to_string()));
    let mut sources = Sources::default();
    for table in ["there", "not there"] {
        let json = r#"[{"EventName": "A", "EventCode": "1", "Counter": "0"}]"#;
        sources.merge_perfmon("there", json).unwrap();
        sources.processors.push(ProcessorRange {
            vendor: Vendor::Intel,
            family: 6,
            models: 1..=2,
            steppings: 0..=0xff,
            core_type: None,
            native_model: None,
            role: String::new(),
            table: table.to_string(),
        });
    }
    let error = sources.pack().unwrap_err().to_string();
    assert_eq!(error, "processors line 2: there is no table \"not there\"");
}
