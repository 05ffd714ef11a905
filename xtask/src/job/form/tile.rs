//! Tiles of AMX: their configuration, which the init code loads. The firmware enables them in XCR0, as all state that
//! there is.

use super::Form;
use super::registers::Kind;
use super::start::ones;
use super::text::Operand;
use std::fmt::Write;

/// Bytes between two rows in memory, in R13: the index of a tile's address is a stride.
pub const STRIDE: u64 = 64;

/// Whether a form needs tiles that are configured.
pub fn needs(form: &Form) -> bool {
    let is_tile = |one: &Operand| matches!(one, Operand::Register { kind: Kind::Tile, .. });
    form.mnemonic.contains("tile") || form.operands.iter().any(is_tile)
}

/// Whether an operand's rows lie a stride apart.
pub fn is_strided(form: &Form) -> bool {
    form.operands.contains(&Operand::Strided)
}

/// Code that writes a configuration to memory at `address`: palette 1, eight tiles of 16 rows of 64 bytes (SDM vol. 1,
/// 18.2.2: the palette is byte 0, bytes of a row are from byte 16 on, rows from byte 48 on).
fn configuration(address: &str) -> String {
    let mut code = format!("lea rcx, [{address}]\nxor eax, eax\n");
    for (offset, value) in [
        (0, "1"),
        (8, "0"),
        (16, "0x40004000400040"),
        (24, "0x40004000400040"),
        (32, "0"),
        (40, "0"),
        (48, "0x1010101010101010"),
        (56, "0"),
    ] {
        // Writing to a String does not fail.
        let _ = writeln!(code, "mov rax, {value}\nmov [rcx + {offset}], rax");
    }
    code
}

/// Code that configures tiles. What loads configurations itself has one in each of its `lines`.
pub fn init(form: &Form, lines: usize) -> String {
    let mut code = configuration(&format!("{} + 64", ones(form))) + "ldtilecfg [rcx]\n";
    if form.mnemonic == "ldtilecfg" {
        code.extend((0..lines).map(|line| configuration(&format!("r14 + {}", 64 * line))));
    }
    code
}

#[cfg(test)]
mod tests {
    use crate::job::form::catalog;
    use iced_x86::{Decoder, DecoderOptions, Register};

    /// Each operand is another tile, the rows of memory lie a stride apart, and the init code configures them first.
    #[test]
    fn d2_tiles_are_configured_and_distinct() {
        let mut seen = 0;
        for entry in catalog::all() {
            let features = format!("{:?}", entry.features());
            if !features.contains("AMX") {
                continue;
            }
            let made = catalog::measure(&entry).made;
            let names: Vec<String> = made.iter().map(|one| one.case.to_string()).collect();
            let last = made.last().unwrap_or_else(|| panic!("{}", entry.name));
            assert_eq!(last.case.what(), "throughput", "{names:?}");
            assert!(last.init.contains("ldtilecfg [rcx]\n"), "{names:?}");
            for line in last.body.lines() {
                let bytes = line.trim_start_matches(".byte").split(',');
                let byte = |text: &str| u8::from_str_radix(&text.trim()[2..], 16).unwrap();
                let bytes: Vec<u8> = bytes.map(byte).collect();
                let one = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
                assert_eq!(one.code(), entry.code, "{names:?}");
                let tiles = (0..one.op_count()).map(|index| one.op_register(index));
                let mut tiles: Vec<Register> = tiles.filter(|register| register.is_tmm()).collect();
                let count = tiles.len();
                tiles.sort_unstable();
                tiles.dedup();
                assert_eq!(tiles.len(), count, "{names:?}");
                if entry.name.contains("sibmem") {
                    assert_eq!(one.memory_index(), Register::R13, "{names:?}");
                    assert!(last.init.contains("mov r13d, 64\n"), "{}", last.init);
                }
            }
            seen += 1;
        }
        assert!(seen >= 14, "{seen}");
        let all = catalog::all();
        let entry = all.iter().find(|entry| entry.name == "tdpbssd tmm, tmm, tmm").unwrap();
        let made = catalog::measure(entry);
        let names: Vec<String> = made.made.iter().map(|one| one.case.to_string()).collect();
        let chain = "latency: tdpbssd tmm, tmm, tmm (1 -> 1)";
        assert_eq!(names, [chain, "throughput: tdpbssd tmm, tmm, tmm (6 apart)"]);
        assert_eq!(made.missing.len(), 2, "{:?}", made.missing);
        let load = all.iter().find(|entry| entry.name == "ldtilecfg m512").unwrap();
        let init = &catalog::measure(load).made[0].init;
        // Its own, and one for each of 8.
        assert_eq!(init.matches("mov rax, 0x1010101010101010").count(), 9);
    }
}
