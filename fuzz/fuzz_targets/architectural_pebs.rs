//! Records of architectural PEBS out of any memory.
#![no_main]

use arch::pmu::pebs::{Architectural, Format, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (words, _) = bytes.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let _ = decode(Format::Architectural, &words);
    let mut rest = &words[..];
    while !rest.is_empty() {
        let count = match Architectural::decode(rest) {
            Ok((Some(seen), count)) => {
                let again = seen.encode();
                // The header has 16 bits for the size.
                if 8 * again.len() < 1 << 16 {
                    let whole = Architectural { fragments: 1, ..seen };
                    assert_eq!(Architectural::decode(&again), Ok((Some(whole), again.len())));
                }
                count
            }
            Ok((None, count)) => count,
            Err(_) => Architectural::skip(rest),
        };
        rest = &rest[count..];
    }
});
