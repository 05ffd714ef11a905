//! A saved report of any bytes, compared with itself: nothing got worse.
#![no_main]

use libfuzzer_sys::fuzz_target;
use xtask::compare::{Limits, compare, saved};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(report) = saved::parse(bytes, "report.json")
        && let Ok(compared) = compare(&report, &report, &Limits::default(), 0.99)
    {
        assert!(!compared.is_worse(), "{compared:?}");
    }
});
