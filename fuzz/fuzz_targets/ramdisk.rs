//! A ramdisk of any bytes; then the same bytes after a right header, so that the decoder is reached; then as sections
//! after a job, so that the walk over them is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::job::{Job, OnEnd};
use protocol::ramdisk::{SectionKind, section, take_key};
use protocol::{PROTOCOL_VERSION, checksum, ramdisk};
use std::borrow::Cow;

const KINDS: [SectionKind; 4] =
    [SectionKind::EventTables, SectionKind::Licence, SectionKind::Key, SectionKind::Program];

/// Where a header has the number of its sections.
const SECTIONS_AT: usize = 10;
/// Where it has the checksum, which covers all before it and the job after it.
const CRC_AT: usize = 16;
const HEADER_BYTES: usize = 20;

/// A job without items, which announces `count` sections. What follows it is taken for them.
fn announcing(count: u16) -> Vec<u8> {
    let job = Job {
        name: Cow::Borrowed("fuzz"),
        baud: 115_200,
        on_end: OnEnd::Halt,
        exit_port: None,
        self_test: None,
        requires: Vec::new(),
        criteria: Vec::new(),
        memory: Vec::new(),
        items: Vec::new(),
    };
    let mut packed = ramdisk::pack(&job).expect("an empty job packs");
    packed[SECTIONS_AT..SECTIONS_AT + 2].copy_from_slice(&count.to_le_bytes());
    let crc = checksum::crc32_parts(&[&packed[..CRC_AT], &packed[HEADER_BYTES..]]);
    packed[CRC_AT..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    packed
}

fuzz_target!(|bytes: &[u8]| {
    let _ = ramdisk::unpack(bytes);
    for kind in KINDS {
        let _ = section(bytes, kind);
    }
    let mut framed = ramdisk::MAGIC.to_vec();
    framed.extend_from_slice(&PROTOCOL_VERSION.to_le_bytes());
    framed.extend_from_slice(&[0, 0]);
    framed.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    let crc = checksum::crc32_parts(&[&framed, bytes]);
    framed.extend_from_slice(&crc.to_le_bytes());
    framed.extend_from_slice(bytes);
    if let Ok(job) = ramdisk::unpack(&framed) {
        // What was taken can be packed again.
        ramdisk::pack(&job).expect("an unpacked job packs");
    }
    let [low, high, sections @ ..] = bytes else { return };
    let mut whole = announcing(u16::from_le_bytes([*low, *high]));
    let job_bytes = whole.len();
    whole.extend_from_slice(sections);
    for kind in KINDS {
        if let Ok(Some(content)) = section(&whole, kind) {
            // A section lies behind the job, with its kind and length in front of it.
            assert!(content.len() + 8 <= whole.len() - job_bytes);
        }
    }
    let _ = take_key(&mut whole);
    // Whatever stands behind it, the job is all there.
    ramdisk::unpack(&whole).expect("the job does not depend on its sections");
});
