//! ACPI tables that name serial ports, of any bytes; with a length and a checksum that are right as well.
#![no_main]

use arch::acpi::serial::{console, debug};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (_, _) = (console(bytes), debug(bytes));
    let mut table = bytes.to_vec();
    if table.len() > 36 {
        let length = (table.len() as u32).to_le_bytes();
        table[4..8].copy_from_slice(&length);
        table[9] = 0;
        table[9] = table.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
        let (_, _) = (console(&table), debug(&table));
    }
});
