//! AML code of any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = arch::acpi::sleep_type::find(bytes);
});
