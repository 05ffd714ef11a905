//! Discovery tables of the uncore, and ACPI's MCFG, of any bytes.
#![no_main]

use arch::pci::segments::Segment;
use arch::pmu::uncore::discovery::units;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let word = |word: u64| {
        let at = usize::try_from(word).ok()?.checked_mul(8)?;
        Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    };
    for unit in units(word).unwrap_or_default() {
        for number in 0..unit.counters {
            let _ = unit.pair(number);
        }
    }
    for segment in Segment::listed(bytes) {
        assert!(segment.address(segment.first, 31, 7, 0xffc).is_some_and(|at| at < 1 << 52));
    }
});
