//! Any bytes as an event table: as they are, after a right header, or as changes to a small good
//! table whose checksum is made right again.
#![no_main]

use events::cpu::{CpuKey, Vendor};
use events::generic::meanings;
use events::pack::{ProcessorRange, Sources};
use events::processor::Processor;
use events::tables::Tables;
use events::tables::layout::{CRC_AT, HEADER_BYTES, LENGTH_AT, MAGIC, VERSION, VERSION_AT};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// CRC-32, bit by bit: an own one, so that the target does not use what it tests.
fn crc32(parts: [&[u8]; 2]) -> u32 {
    let mut crc = !0_u32;
    for byte in parts.into_iter().flatten() {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn seal(bytes: &mut [u8]) {
    if bytes.len() < HEADER_BYTES {
        return;
    }
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    bytes[VERSION_AT..VERSION_AT + 2].copy_from_slice(&VERSION.to_le_bytes());
    let length = (bytes.len() as u32).to_le_bytes();
    bytes[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length);
    let crc = crc32([&bytes[..CRC_AT], &bytes[CRC_AT + 4..]]);
    bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
}

/// A table with a few events of every kind.
fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let json = r#"[{"EventName": "A.X", "EventCode": "1", "Counter": "0,1", "Errata": "E1"},
            {"EventName": "A.Y", "EventCode": "0xB7,0xBB", "UMask": "1", "Counter": "0,1,2,3",
             "MSRIndex": "0x1a6,0x1a7", "MSRValue": "7"},
            {"EventName": "B", "EventCode": "0", "UMask": "2", "Counter": "Fixed counter 1",
             "PEBS": "1"}]"#;
        let mut sources = Sources::default();
        for table in ["one", "two"] {
            let merged = sources.merge_perfmon(table, json).unwrap();
            assert_eq!(merged.added.len(), 3, "{merged:?}");
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
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((how, rest)) = data.split_first() else {
        return;
    };
    let mut bytes = rest.to_vec();
    if how % 4 >= 2 {
        bytes = good().to_vec();
        let length = bytes.len();
        for change in rest.chunks_exact(3) {
            bytes[usize::from(u16::from_le_bytes([change[0], change[1]])) % length] = change[2];
        }
    }
    if how % 4 != 0 {
        seal(&mut bytes);
    }
    let Ok(tables) = Tables::open(&bytes) else {
        return;
    };
    for core in tables.cores() {
        let processor = Processor::described_by(&core);
        for event in core.events() {
            let found = core.find(event.name).expect("what is listed is found");
            assert!(!found.ways().is_empty());
        }
        let _ = (core.suggest("cycles", 3), core.extra_msrs());
        let _ = meanings(&processor, Some(&core)).count();
    }
    let _ = tables.core(&CpuKey::new(Vendor::Intel, 6, 0x97, 0));
});
