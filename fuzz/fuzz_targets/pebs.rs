//! PEBS records out of any memory, in each format.
#![no_main]

use arch::pmu::pebs::{Format, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (words, _) = bytes.as_chunks();
    let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    for format in
        [Format::Core, Format::Nehalem, Format::Haswell, Format::Skylake, Format::Adaptive]
    {
        let mut rest = &words[..];
        while let Ok((_, count)) = decode(format, rest) {
            rest = &rest[count..];
        }
    }
});
