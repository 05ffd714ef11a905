//! What a program of any bytes registers. `fuzz/seeds/entries` has one with an entry in its section to begin with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::benchmarks::entries;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(found) = entries::read(bytes, "program") {
        assert!(!found.is_empty() && found.iter().all(|one| !one.name.is_empty()));
    }
});
