//! What the tests of several modules share: the real tables, packed once.

use crate::cpu::Vendor;
use crate::encode::{EncodeError, Encoded, encode};
use crate::pack::{ProcessorRange, Sources};
use crate::parse::parse_event;
use crate::processor::{Pebs, Processor};
use crate::tables::{Core, Tables};
use std::sync::OnceLock;

/// The block with all tables.
pub(crate) fn block() -> &'static [u8] {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    BLOCK.get_or_init(|| Sources::embedded().and_then(|sources| sources.pack()).unwrap())
}

/// All tables. Opened once, since the checksum of the whole block takes longer than most tests.
pub(crate) fn tables() -> Tables<'static> {
    static TABLES: OnceLock<Tables<'static>> = OnceLock::new();
    *TABLES.get_or_init(|| Tables::open(block()).unwrap())
}

/// One table.
pub(crate) fn core(name: &str) -> Core<'static> {
    tables().named(name).unwrap()
}

/// Skylake server with hyper-threading on: four counters, three fixed ones, TSX.
pub(crate) fn skylakex() -> Processor {
    Processor {
        pebs: Some(Pebs {
            gp_counters: 0xf,
            fixed_counters: 0,
            format: 3,
            distribution_gp: 2,
            distribution_fixed: 0,
            states_retirement: false,
        }),
        tsx: true,
        extra_msrs: core("skylakex").extra_msrs(),
        ..Processor::intel(4, 4, 3)
    }
}

/// Encodes one text.
pub(crate) fn on(
    processor: &Processor,
    core: Option<&Core<'_>>,
    text: &str,
) -> Result<Encoded, EncodeError> {
    let request = parse_event(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    encode(&request, processor, core)
}

/// Encodes one text on [`skylakex`].
pub(crate) fn skx(text: &str) -> Result<Encoded, EncodeError> {
    on(&skylakex(), Some(&core("skylakex")), text)
}

/// A block with two small tables that hold events of every kind.
pub(crate) fn small_block() -> Vec<u8> {
    let json = r#"[{"EventName": "A.X", "EventCode": "1", "Counter": "0,1", "Errata": "E1"},
        {"EventName": "A.Y", "EventCode": "0xB7,0xBB", "UMask": "1", "Counter": "0,1,2,3",
         "MSRIndex": "0x1a6,0x1a7", "MSRValue": "7"},
        {"EventName": "B", "EventCode": "0", "UMask": "2", "Counter": "Fixed counter 1",
         "PEBS": "1"}]"#;
    block_of(&["one", "two"], json)
}

/// A block with these tables of Intel, whose events are those of perfmon's `json`.
pub(crate) fn block_of(tables: &[&str], json: &str) -> Vec<u8> {
    let mut sources = Sources::default();
    for table in tables {
        let merged = sources.merge_perfmon(table, json).unwrap();
        assert!(merged.refused.is_empty(), "{merged:?}");
        sources.processors.push(ProcessorRange {
            vendor: Vendor::Intel,
            family: 6,
            models: 0x90..=0x9f,
            steppings: 0..=0xff,
            core_type: Some(0x20),
            native_model: None,
            role: "Atom".to_string(),
            table: table.to_string(),
        });
    }
    sources.pack().unwrap()
}
