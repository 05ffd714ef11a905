use super::*;
use crate::authentication::Key;
use crate::job::{OnEnd, tests::any_job, tests::snippet};
use alloc::borrow::Cow;
use proptest::prelude::*;

fn job() -> Job<'static> {
    Job {
        name: Cow::Borrowed("test"),
        baud: 115_200,
        on_end: OnEnd::Halt,
        exit_port: Some(0xf4),
        self_test: None,
        requires: alloc::vec![],
        items: alloc::vec![crate::job::Item::Snippet(snippet("nop", &[0x90]))],
        criteria: alloc::vec![],
        memory: alloc::vec![],
    }
}

#[test]
fn a_job_comes_back_as_it_was_even_with_bytes_behind_it() {
    let mut bytes = pack(&job()).unwrap();
    assert_eq!(unpack(&bytes).unwrap(), job());
    bytes.extend_from_slice(&[0xaa; 4096]);
    assert_eq!(unpack(&bytes).unwrap(), job());
}

#[test]
fn each_refusal_has_its_own_error() {
    let good = pack(&job()).unwrap();
    assert_eq!(unpack(&[]), Err(RamdiskError::NoHeader(0)));
    assert!(matches!(unpack(&[0; 64]), Err(RamdiskError::Magic(_))));
    assert_eq!(unpack(&[0; HEADER_BYTES - 1]), Err(RamdiskError::NoHeader(HEADER_BYTES - 1)));
    assert!(matches!(unpack(&[0; HEADER_BYTES]), Err(RamdiskError::Magic(_))));
    let mut newer = good.clone();
    newer[VERSION_AT] = 2;
    assert_eq!(unpack(&newer), Err(RamdiskError::Newer { found: 2 }));
    let cut = &good[..good.len() - 1];
    assert!(matches!(unpack(cut), Err(RamdiskError::Truncated { .. })));
    let mut bad = job();
    bad.baud = 12345;
    assert!(matches!(pack(&bad), Err(RamdiskError::Limit { .. })));
}

#[test]
fn a_right_checksum_over_nonsense_is_not_a_job() {
    let mut bytes = pack(&job()).unwrap();
    bytes[HEADER_BYTES..].fill(0xff);
    let crc = checksum(&bytes);
    bytes[CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    assert!(matches!(unpack(&bytes), Err(RamdiskError::Decode(_))));
}

proptest! {
    #[test]
    fn what_packs_unpacks(job in any_job()) {
        if let Ok(bytes) = pack(&job) {
            prop_assert_eq!(unpack(&bytes).unwrap(), job);
        }
    }

    #[test]
    fn any_flipped_bit_is_noticed(at in 0usize..usize::MAX, bit in 0u8..8) {
        let mut bytes = pack(&job()).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(unpack(&bytes).is_err(), "byte {} bit {}", at, bit);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = unpack(&bytes);
        let mut framed = pack(&job()).unwrap()[..HEADER_BYTES].to_vec();
        framed[LENGTH_AT..CRC_AT].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        framed.extend_from_slice(&bytes);
        let crc = checksum(&framed);
        framed[CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        let _ = unpack(&framed);
    }
}

const TABLES: &[u8] = &[7; 100];

fn with_sections() -> Vec<u8> {
    let sections = [(SectionKind::Licence, &b"text"[..]), (SectionKind::EventTables, TABLES)];
    pack_with(&job(), &sections).unwrap()
}

#[test]
fn sections_are_found_behind_the_job_and_bytes_behind_them_do_no_harm() {
    let mut bytes = with_sections();
    for _ in 0..2 {
        assert_eq!(unpack(&bytes).unwrap(), job());
        assert_eq!(section(&bytes, SectionKind::EventTables), Ok(Some(TABLES)));
        assert_eq!(section(&bytes, SectionKind::Licence), Ok(Some(&b"text"[..])));
        bytes.extend_from_slice(&[0xaa; 4096]);
    }
    assert_eq!(section(&pack(&job()).unwrap(), SectionKind::EventTables), Ok(None));
    assert_eq!(section(&[0; 64], SectionKind::EventTables), unpack(&[0; 64]).map(|_| None));
}

#[test]
fn sections_of_one_kind_are_told_by_their_number() {
    let sections = [
        (SectionKind::Program, &b"one"[..]),
        (SectionKind::Key, b"x"),
        (SectionKind::Program, b"two"),
    ];
    let bytes = pack_with(&job(), &sections).unwrap();
    for (number, expected) in [Some(&b"one"[..]), Some(b"two"), None].into_iter().enumerate() {
        assert_eq!(nth_section(&bytes, SectionKind::Program, number), Ok(expected));
    }
}

#[test]
fn a_section_without_content_is_found_at_the_end_and_a_cut_header_is_told() {
    let bytes = pack_with(&job(), &[(SectionKind::Licence, &[])]).unwrap();
    assert_eq!(section(&bytes, SectionKind::Licence), Ok(Some(&[][..])));
    let cut = section(&bytes[..bytes.len() - 1], SectionKind::Licence);
    // A section's header: kind and length, four bytes each.
    let (announced, present) = (8, 7);
    assert_eq!(cut, Err(RamdiskError::SectionTruncated { index: 0, announced, present }));
}

#[test]
fn an_unknown_section_is_passed_over() {
    let mut bytes = with_sections();
    let at = pack(&job()).unwrap().len();
    bytes[at] = 0x99;
    assert_eq!(section(&bytes, SectionKind::Licence), Ok(None));
    assert_eq!(section(&bytes, SectionKind::EventTables), Ok(Some(TABLES)));
}

#[test]
fn a_cut_in_the_sections_costs_them_and_not_the_job() {
    let bytes = with_sections();
    for cut in pack(&job()).unwrap().len()..bytes.len() {
        assert_eq!(unpack(&bytes[..cut]).unwrap(), job());
        let error = section(&bytes[..cut], SectionKind::EventTables).unwrap_err();
        assert!(matches!(error, RamdiskError::SectionTruncated { .. }), "{cut}: {error}");
    }
    let cut = &bytes[..bytes.len() - 3];
    let error = section(cut, SectionKind::EventTables).unwrap_err();
    assert_eq!(
        error.to_string(),
        "section 1 of the ramdisk is truncated: 100 bytes are announced, 97 are present"
    );
}

#[test]
fn a_section_can_be_added_to_a_packed_ramdisk() {
    let mut bytes = with_sections();
    add_section(&mut bytes, SectionKind::Key, &[7; 16]).unwrap();
    assert_eq!(unpack(&bytes).unwrap(), job());
    assert_eq!(section(&bytes, SectionKind::Key), Ok(Some(&[7; 16][..])));
    assert_eq!(section(&bytes, SectionKind::EventTables), Ok(Some(TABLES)));
    let mut damaged = bytes[..20].to_vec();
    assert!(add_section(&mut damaged, SectionKind::Key, &[]).is_err());
    assert_eq!(damaged, &bytes[..20]);
}

#[test]
fn x1_the_key_is_there_once_and_the_job_is_not_changed() {
    let key = Key::new(*b"sixteen bytes ok");
    let sections = [(SectionKind::EventTables, TABLES), (SectionKind::Key, &key.bytes()[..])];
    let mut bytes = pack_with(&job(), &sections).unwrap();
    assert_eq!(take_key(&mut bytes), Some(key));
    assert!(!bytes.windows(8).any(|window| window == &key.bytes()[..8]), "it is still there");
    assert_eq!(unpack(&bytes).unwrap(), job());
    assert_eq!(section(&bytes, SectionKind::EventTables), Ok(Some(TABLES)));
    assert_eq!(take_key(&mut with_sections()), None);
    for cut in 0..bytes.len() {
        let _ = take_key(&mut bytes[..cut].to_vec());
    }
}

proptest! {
    #[test]
    fn sections_of_arbitrary_bytes_do_not_panic(behind in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut bytes = with_sections();
        bytes.truncate(pack(&job()).unwrap().len());
        bytes.extend_from_slice(&behind);
        prop_assert_eq!(unpack(&bytes).unwrap(), job());
        let _ = section(&bytes, SectionKind::EventTables);
        let _ = take_key(&mut bytes);
    }
}
