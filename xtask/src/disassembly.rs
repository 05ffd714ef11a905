//! Machine code as text.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

/// The first instruction of `code`, which lies at `address` and is code of so many `bits`, 64 or 32; from a report, so
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

/// The bytes that hexadecimal digits stand for. They come from a serial line, so they may be anything.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
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
}
