//! What of a table matters for measuring, in a few words: ACPI specification 6.5, 5.2.

use super::bytes::{half, word};
use alloc::format;
use alloc::string::{String, ToString};

/// Length of the header that all tables have.
const HEADER: usize = 36;
/// Entries of the MADT begin after its own two fields (5.2.12).
const MADT_ENTRIES: usize = 44;

/// What a table says; empty for one that is not looked into. `table` begins with its header.
#[must_use]
pub fn facts(signature: &str, table: &[u8]) -> String {
    match signature {
        "FACP" => fadt(table),
        "HPET" => hpet(table),
        "APIC" => madt(table),
        "WDAT" => wdat(table),
        _ => String::new(),
    }
}

/// A physical address of 64 bits.
fn long(table: &[u8], at: usize) -> u64 {
    u64::from(word(table, at)) | u64::from(word(table, at + 4)) << 32
}

/// 5.2.9: the power management timer, the reset register, and what the machine has at all.
fn fadt(table: &[u8]) -> String {
    let flags = word(table, 112);
    let has = |bit: u32| flags & 1 << bit != 0;
    let bits = if has(8) { 32 } else { 24 };
    let mut text = match word(table, 76) {
        0 => "no power management timer".to_string(),
        port => format!("power management timer of {bits} bits at port {port:#x}"),
    };
    if has(10) {
        let space = table.get(116).copied().unwrap_or(u8::MAX);
        let value = table.get(128).copied().unwrap_or(0);
        text += &format!("; reset by {value:#x} to {:#x} of space {space}", long(table, 120));
    }
    if has(20) {
        text += "; hardware-reduced";
    }
    text + &format!("; profile {}", table.get(45).copied().unwrap_or(0))
}

/// IA-PC HPET specification 1.0a, 3.2.4.
fn hpet(table: &[u8]) -> String {
    format!("at {:#x}, block {:#x}", long(table, 44), word(table, HEADER))
}

/// Local APICs and x2APICs that are enabled or not, and other entries.
fn madt(table: &[u8]) -> String {
    let (mut enabled, mut others, mut more, mut at) = (0, 0, 0, MADT_ENTRIES);
    while let [kind, length, ..] = *table.get(at..).unwrap_or_default() {
        let flags = match kind {
            0 => Some(word(table, at + 4)),
            9 => Some(word(table, at + 8)),
            _ => None,
        };
        match flags {
            Some(flags) if flags & 1 != 0 => enabled += 1,
            Some(_) => others += 1,
            None => more += 1,
        }
        at += usize::from(length.max(2));
    }
    format!("{enabled} processors enabled, {others} not; {more} other entries")
}

/// Watchdog Action Table: Microsoft, "Hardware Watchdog Timers Design Specification" 1.0, 3.
fn wdat(table: &[u8]) -> String {
    let flags = table.get(60).copied().unwrap_or(0);
    let state = if flags & 1 != 0 { "enabled" } else { "not enabled" };
    format!(
        "{} ms a count, {} to {} counts, {} actions, {state}",
        word(table, 48),
        word(table, 56),
        word(table, 52),
        half(table, 64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(length: usize, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut table = vec![0; length];
        for (at, bytes) in fields {
            table[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        table
    }

    #[test]
    fn x10_the_tables_that_matter_are_told_in_words() {
        // As on QEMU's q35: the timer at 0x608, reset by 0xf to port 0xcf9.
        let fields: [(usize, &[u8]); 6] = [
            (45, &[1]),
            (76, &[8, 6]),
            (112, &[0xa5, 0x84]),
            (116, &[1]),
            (120, &[0xf9, 0xc]),
            (128, &[0xf]),
        ];
        let text = facts("FACP", &table(244, &fields));
        assert_eq!(
            text,
            "power management timer of 24 bits at port 0x608; reset by 0xf to 0xcf9 of space 1; profile 1"
        );
        let text = facts("FACP", &table(244, &[(112, &[0, 1, 0x10])]));
        assert_eq!(text, "no power management timer; hardware-reduced; profile 0");
        let hpet = table(56, &[(36, &[1, 0xa2, 0x86, 0x80]), (44, &[0, 0, 0xd0, 0xfe])]);
        assert_eq!(facts("HPET", &hpet), "at 0xfed00000, block 0x8086a201");
        let entries =
            [&[0, 8, 0, 0, 1, 0, 0, 0][..], &[0, 8, 1, 1, 0, 0, 0, 0], &[1, 12], &[0; 10]];
        let madt = table(44 + 28, &[(44, &entries.concat())]);
        assert_eq!(facts("APIC", &madt), "1 processors enabled, 1 not; 1 other entries");
        let fields: [(usize, &[u8]); 5] =
            [(48, &[0x58, 2]), (52, &[0xff, 3]), (56, &[4]), (60, &[1]), (64, &[9])];
        let text = facts("WDAT", &table(68, &fields));
        assert_eq!(text, "600 ms a count, 4 to 1023 counts, 9 actions, enabled");
        assert_eq!(facts("SSDT", &[0; 40]), "");
    }

    proptest! {
        #[test]
        fn no_table_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for signature in ["FACP", "HPET", "APIC", "WDAT"] {
                let _ = facts(signature, &bytes);
            }
        }
    }
}
