//! Machine code as text.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use protocol::record::ListedInstruction;
use std::fmt::Write;

/// The first instruction of `code`, which is at `address` and is code of so many `bits`, 64 or 32; from a report, so
/// that anything else stands for 64. Empty if there is no code.
#[must_use]
pub fn instruction(code: &[u8], address: u64, bits: u8) -> String {
    if code.is_empty() {
        return String::new();
    }
    let bits = if bits == 32 { 32 } else { 64 };
    let mut decoder = Decoder::with_ip(bits, code, address, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    let mut text = String::new();
    formatter.format(&decoder.decode(), &mut text);
    text
}

/// An instruction of some code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Decoded {
    /// Bytes from the code's start.
    pub offset: usize,
    /// How many bytes it has.
    pub bytes: usize,
    /// Its text.
    pub text: String,
}

/// All instructions of `code`, one after the other, at most `limit`. The arguments are those of [`instruction`].
#[must_use]
pub fn all(code: &[u8], address: u64, bits: u8, limit: usize) -> Vec<Decoded> {
    let (mut decoded, mut offset) = (Vec::new(), 0);
    while offset < code.len() && decoded.len() < limit {
        let rest = &code[offset..];
        let at = address.wrapping_add(offset as u64);
        let wide = if bits == 32 { 32 } else { 64 };
        let mut decoder = Decoder::with_ip(wide, rest, at, DecoderOptions::NONE);
        let bytes = decoder.decode().len().max(1);
        decoded.push(Decoded { offset, bytes, text: instruction(rest, at, bits) });
        offset += bytes;
    }
    decoded
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that hexadecimal digits stand for. They come from a serial line, so they may be anything.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

/// The instruction as text. Its code comes from a serial line, so it may be anything.
#[must_use]
pub fn listed(row: &ListedInstruction) -> String {
    let Some(bytes) = unhex(&row.bytes).filter(|bytes| !bytes.is_empty()) else {
        return "?".to_string();
    };
    instruction(&bytes, row.offset.into(), row.bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t6_the_same_bytes_are_other_instructions_as_32_bit_code() {
        for (bytes, wide, narrow) in [
            ("4889c8", "mov rax, rcx", "dec eax"),
            ("50", "push rax", "push eax"),
            ("8b0500000000", "mov eax, [rip]", "mov eax, [0]"),
            ("ebfe", "jmp 0x10", "jmp 0x10"),
            ("", "", ""),
        ] {
            let code = unhex(bytes).unwrap();
            let text =
                |bits| instruction(&code, 0x10, bits).replace("0x16", "rip").replace("0x0", "0");
            assert_eq!([text(64), text(32)], [wide, narrow], "{bytes}");
        }
        assert_eq!(unhex("zz").or(unhex("\u{e9}")), None);
    }

    #[test]
    fn x5_code_is_listed_to_its_end_whatever_it_is() {
        let code = unhex("4889c80f0bff").unwrap();
        let listed = all(&code, 0x10, 64, 9);
        let seen: Vec<_> = listed.iter().map(|one| (one.offset, one.bytes, &*one.text)).collect();
        assert_eq!(seen, [(0, 3, "mov rax, rcx"), (3, 2, "ud2"), (5, 1, "(bad)")]);
        assert_eq!(all(&code, 0, 32, 1)[0].text, "dec eax");
        assert_eq!(hex(&code), "4889c80f0bff");
        assert_eq!(all(&[], 0, 64, 9), []);
    }

    #[test]
    fn instructions_are_written_with_their_place_as_address() {
        let row = |bytes: &str| ListedInstruction {
            offset: 16,
            bytes: bytes.into(),
            value: 1.0,
            bits: 64,
            ..ListedInstruction::default()
        };
        assert_eq!(listed(&row("480fafc0")), "imul rax, rax");
        assert_eq!(listed(&row("75ee")), "jne 0x0");
        assert_eq!(listed(&row("zz")), "?");
        assert_eq!(listed(&row("\u{e9}")), "?");
        assert_eq!(listed(&row("")), "?");
    }
}
