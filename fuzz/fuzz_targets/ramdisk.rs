//! A ramdisk of any bytes; the second half frames them with a right header, so that the decoder is reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::{PROTOCOL_VERSION, checksum, ramdisk};

fuzz_target!(|bytes: &[u8]| {
    let _ = ramdisk::unpack(bytes);
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
});
