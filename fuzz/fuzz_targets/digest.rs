//! The text of QR codes, and what is in them: of any bytes, and of any bytes in a form that is right around them, so that the checksum
//! and the compression let them through.
#![no_main]

use libfuzzer_sys::fuzz_target;
use miniz_oxide::deflate::compress_to_vec;
use protocol::digest::{Digest, VERSION, text};

fuzz_target!(|bytes: &[u8]| {
    let _ = text::join(&String::from_utf8_lossy(bytes));
    let _ = Digest::unpack(&[&[VERSION], bytes].concat());
    if let Ok(digest) = Digest::unpack(&[&[VERSION], &compress_to_vec(bytes, 1)[..]].concat()) {
        assert_eq!(Digest::unpack(&digest.pack()), Ok(digest));
    }
    // The first byte is how much room a code has. A digest is never empty.
    let Some((&room, digest)) = bytes.split_first().filter(|(_, rest)| !rest.is_empty()) else { return };
    if let Some(parts) = text::split(digest, 20 + 4 * usize::from(room)) {
        assert_eq!(text::join(&parts.concat()).as_deref(), Ok(digest));
    }
});
