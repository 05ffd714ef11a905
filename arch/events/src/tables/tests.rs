mod own;

use super::layout::{COUNTS_AT, CRC_AT, HEADER_BYTES, LENGTH_AT, VERSION_AT};
use super::*;
use crate::generic::{Generic, meanings};
use crate::processor::Processor;
use crate::test_support::{block, small_block, tables};
use proptest::prelude::*;

/// Puts the right checksum on a changed block: what is wrong then must be found otherwise.
fn seal(block: &mut [u8]) {
    if block.len() >= HEADER_BYTES {
        let length = (block.len() as u32).to_le_bytes();
        block[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length);
        let crc = crc32(&block[..CRC_AT], &block[CRC_AT + 4..]).to_le_bytes();
        block[CRC_AT..CRC_AT + 4].copy_from_slice(&crc);
    }
}

/// Uses everything that a block which opens offers.
fn walk(tables: &Tables<'_>) {
    for core in tables.cores() {
        let processor = Processor::described_by(&core);
        let _ = (core.name(), core.source(), core.version(), core.extra_msrs());
        let _ = meanings(&processor, Some(&core)).count();
        for event in core.events().step_by(17) {
            let _ = (core.find(event.name), event.ways(), event.errata);
        }
        let _ = core.processors().count();
    }
    let _ = tables.core(&crate::cpu::CpuKey::new(crate::cpu::Vendor::Intel, 6, 0x97, 0));
}

#[test]
fn each_refusal_has_its_own_error() {
    let open = |block: &[u8]| Tables::open(block).map(|_| ()).unwrap_err();
    assert_eq!(open(&[]), TableError::NoHeader(0));
    assert_eq!(open(&[0; HEADER_BYTES - 1]), TableError::NoHeader(HEADER_BYTES - 1));
    assert!(matches!(open(&[0; HEADER_BYTES]), TableError::Magic(_)));
    // A header alone may be a table, as far as its length goes.
    let announcing = |length: usize| {
        let mut header = block()[..HEADER_BYTES].to_vec();
        header[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&(length as u32).to_le_bytes());
        open(&header)
    };
    assert!(matches!(announcing(HEADER_BYTES), TableError::Checksum { .. }));
    assert!(matches!(announcing(HEADER_BYTES - 1), TableError::Truncated { .. }));
    let mut newer = block().to_vec();
    newer[VERSION_AT] = 9;
    assert_eq!(open(&newer), TableError::Version { found: 9 });
    let cut = &block()[..block().len() - 1];
    assert!(matches!(open(cut), TableError::Truncated { .. }));
    let mut damaged = block().to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(matches!(open(&damaged), TableError::Checksum { .. }));
    let mut more_rows = block().to_vec();
    more_rows[COUNTS_AT + 6 * 4] += 1;
    seal(&mut more_rows);
    assert!(matches!(open(&more_rows), TableError::Inconsistent { .. }));
    // Bytes after the table are not looked at.
    let longer = [block(), &[0xaa; 4096]].concat();
    assert!(Tables::open(&longer).is_ok());
}

/// Each reference and each order that the records of a block must have, spoilt alone: the error names it.
#[test]
fn what_contradicts_itself_under_a_right_checksum_is_named() {
    let good = small_block();
    let tables = Tables::open(&good).unwrap();
    let at = |section: &[u8]| section.as_ptr() as usize - good.as_ptr() as usize;
    let (encodings, rows, cores) = (at(tables.encodings), at(tables.rows), at(tables.tables));
    let (generics, processors) = (at(tables.generics), at(tables.processors));
    let first_name = good.windows(3).position(|three| three == b"A.X").unwrap();
    let ways = tables.ways.len() as u16 / 8;
    let (all_rows, all_msrs) = (tables.rows.len() as u32 / 4, tables.msrs.len() as u16 / 12);
    let all_encodings = tables.encodings.len() as u16 / 24;
    let two = |value: u16| value.to_le_bytes().to_vec();
    let cases: [(usize, Vec<u8>, &str); 23] = [
        (first_name, b"C".to_vec(), "names 1: it is out of order"),
        (encodings + 7, vec![0], "encodings 0: its ways"),
        (encodings + 7, vec![0x7f], "encodings 0: its ways"),
        (encodings + 8, two(ways), "encodings 0: its ways"),
        (encodings + 24 + 8, two(0xffff), "encodings 1: its ways"),
        (encodings + 10, two(0xffff), "encodings 0: its errata"),
        (encodings + 5, vec![0b1100_0000], "encodings 0: its precision"),
        (cores, two(0xffff), "tables 0: a text"),
        (cores + 4, two(0xffff), "tables 0: a text"),
        (cores + 20 + 6, two(2), "tables 1: its vendor"),
        (cores + 8, vec![0xff; 4], "tables 0: its rows"),
        (cores + 12, vec![0xff; 4], "tables 0: its rows"),
        (cores + 18, two(0xffff), "tables 0: its MSRs"),
        (cores + 20 + 8, (all_rows + 1).to_le_bytes().to_vec(), "tables 1: its rows"),
        (cores + 20 + 16, two(all_msrs + 1), "tables 1: its MSRs"),
        (generics, two(0xfff0), "tables 0: a generic name"),
        (rows, two(0xffff), "rows 0: its name or encoding"),
        (rows + 4 + 2, two(0xffff), "rows 1: its name or encoding"),
        (rows + 4 + 2, two(all_encodings), "rows 1: its name or encoding"),
        (rows + 4, two(0), "rows 1: it is out of order"),
        (processors + 12, two(2), "processors 0: its table"),
        (processors + 14, two(0xffff), "processors 0: its vendor or role"),
        (processors, vec![2], "processors 0: its vendor or role"),
    ];
    for (place, bytes, expected) in cases {
        let mut block = good.clone();
        block[place..place + bytes.len()].copy_from_slice(&bytes);
        seal(&mut block);
        let error = Tables::open(&block).map(|_| ()).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let mut sealed = good.clone();
    seal(&mut sealed);
    assert!(Tables::open(&sealed).is_ok());
    assert_eq!(tables.named("one").map(|core| core.event(core.len()).is_none()), Some(true));
}

#[test]
fn a_name_is_found_with_few_comparisons() {
    let mut most = 0;
    for core in tables().cores() {
        let bound = core.len().ilog2() + 1 + 2;
        for event in core.events() {
            let found = core.find_counted(event.name);
            assert_eq!(found.event.map(|e| e.name), Some(event.name));
            assert!(found.comparisons <= bound + 1, "{} {}", core.name(), found.comparisons);
            most = most.max(found.comparisons);
        }
        assert!(core.find_counted("no.such.event").comparisons <= bound);
    }
    assert_eq!(most, 14);
}

#[test]
fn names_that_differ_in_separators_only_are_told_apart() {
    let core = tables().named("goldencove").unwrap();
    for name in ["RS_EMPTY.COUNT", "RS.EMPTY_COUNT"] {
        assert_eq!(core.find(name).unwrap().name, name);
        assert_eq!(core.find(&name.to_lowercase()).unwrap().name, name);
    }
    // Spelled like neither: the one in use.
    assert_eq!(core.find("rs-empty-count").unwrap().name, "RS.EMPTY_COUNT");
    assert!(core.find("RS_EMPTY.COUNT").unwrap().deprecated);
}

#[test]
fn p4_the_unit_masks_of_an_event_can_be_listed() {
    let core = tables().named("skylakex").unwrap();
    let names: Vec<&str> = core.with_prefix("l2_rqsts.").map(|event| event.name).collect();
    assert!(
        names.len() > 15 && names.iter().all(|name| name.starts_with("L2_RQSTS.")),
        "{names:?}"
    );
    assert_eq!(core.with_prefix("zzz").count(), 0);
    assert_eq!(core.with_prefix("").len(), core.len());
    assert_eq!(core.events().len(), core.len());
}

/// 0xb7, offcore responses: most of these events differ in nothing but the value of their MSR.
#[test]
fn m5_events_of_a_code_are_left_out_by_the_values_of_their_msrs() {
    for core in tables().cores() {
        let all: Vec<_> = core.with_code(0xb7).collect();
        let values: std::collections::BTreeSet<u64> =
            all.iter().map(|event| event.msr_value).collect();
        for &value in &values {
            let found: Vec<_> = core.with_code_if(0xb7, |other| other == value).collect();
            let expected: Vec<_> =
                all.iter().filter(|event| event.msr_value == value).copied().collect();
            assert_eq!(found, expected, "{} {value:#x}", core.name());
        }
    }
    let skylakex = tables().named("skylakex").unwrap();
    assert!(skylakex.with_code_if(0xb7, |value| value != 0).count() > 10);
}

#[test]
fn m2_generic_events_are_listed_for_every_table_blanks_included() {
    for core in tables().cores() {
        let processor = Processor::described_by(&core);
        let listed: Vec<_> = meanings(&processor, Some(&core)).collect();
        assert_eq!(listed.len(), crate::generic::NAMES.len());
        for (generic, meaning) in &listed {
            if let crate::generic::Meaning::Event(event) = meaning {
                assert_eq!(core.generic(*generic), Some(*event));
            }
        }
        let count = |name: &str| {
            let wanted = Generic::from_name(name).unwrap();
            let meaning = listed.iter().find(|(generic, _)| *generic == wanted).unwrap().1;
            meaning != crate::generic::Meaning::None
        };
        assert!(count("cycles") && count("instructions") && count("branches"), "{}", core.name());
        let intel = core.vendor() == crate::cpu::Vendor::Intel;
        assert_eq!(count("arch-llc-misses"), intel, "{}", core.name());
        let no_such = listed.iter().any(|(_, meaning)| *meaning == crate::generic::Meaning::None);
        assert!(no_such, "{}", core.name());
    }
}

#[test]
fn every_flipped_bit_of_a_block_is_noticed() {
    let mut block = small_block();
    for at in 0..block.len() {
        for bit in 0..8 {
            block[at] ^= 1 << bit;
            assert!(Tables::open(&block).is_err(), "byte {at} bit {bit}");
            block[at] ^= 1 << bit;
        }
    }
    walk(&Tables::open(&block).unwrap());
}

#[test]
fn every_truncation_of_a_block_is_noticed() {
    let block = small_block();
    for length in 0..block.len() {
        assert!(Tables::open(&block[..length]).is_err(), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_right_checksum_over_changed_bytes_does_not_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        near_the_front in any::<bool>(),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>())
    ) {
        let mut block = small_block();
        let range = if near_the_front { HEADER_BYTES } else { block.len() };
        for (at, value) in changes {
            block[at.index(range)] = value;
        }
        if let Some(cut) = cut {
            block.truncate(cut.index(block.len()));
        }
        let head = block.len().min(VERSION_AT);
        block[..head].copy_from_slice(&layout::MAGIC[..head]);
        seal(&mut block);
        if let Ok(tables) = Tables::open(&block) {
            walk(&tables);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(Tables::open(&bytes).is_err());
        let head = bytes.len().min(VERSION_AT);
        bytes[..head].copy_from_slice(&layout::MAGIC[..head]);
        if bytes.len() > VERSION_AT + 1 {
            bytes[VERSION_AT..VERSION_AT + 2].copy_from_slice(&layout::VERSION.to_le_bytes());
        }
        seal(&mut bytes);
        if let Ok(tables) = Tables::open(&bytes) {
            walk(&tables);
        }
    }
}
