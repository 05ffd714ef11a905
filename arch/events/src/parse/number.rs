//! Numbers as perf reads them: decimal, or hexadecimal with `0x`.

/// The number, or `None` if the text is none or it needs more than 64 bits.
pub(crate) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        _ => (text, 10),
    };
    // from_str_radix would take a sign.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number("12"), Some(12));
        assert_eq!(number("0x12"), Some(18));
        assert_eq!(number("0XfF"), Some(255));
        for text in ["", "0x", "+1", "-1", "0x+1", "12h", "1_000", "18446744073709551616", "é0"] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
