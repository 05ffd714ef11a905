//! The text of QR codes, and what is in them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::digest::{Digest, VERSION, text};

fuzz_target!(|bytes: &[u8]| {
    let _ = text::join(&String::from_utf8_lossy(bytes));
    let _ = Digest::unpack(&[&[VERSION], bytes].concat());
});
