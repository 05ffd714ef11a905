//! PEBS records out of any memory, in each format.
#![no_main]

use arch::pmu::pebs::{Adaptive, Format, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (words, _) = bytes.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    for format in Format::ALL {
        let mut rest = &words[..];
        while let Ok((record, count)) = decode(format, rest) {
            if format.is_adaptive() {
                let (seen, _) = Adaptive::decode(format, rest).expect("it was decoded just now");
                assert_eq!(seen.record(), record);
                let again = seen.encode();
                assert_eq!(Adaptive::decode(format, &again), Ok((seen, again.len())));
            }
            rest = &rest[count..];
        }
    }
});
