//! A job file of any text.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = xtask::job::file::parse(text, "job.toml");
});
