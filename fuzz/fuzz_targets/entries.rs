//! What a program of any bytes registers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::benchmarks::entries;

fuzz_target!(|bytes: &[u8]| {
    let _ = entries::read(bytes, "program");
});
