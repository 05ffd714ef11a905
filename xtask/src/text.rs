//! Text from outside on its way to a terminal.
//!
//! Names in a job or an event file, what a machine writes on its serial line and what QEMU or a compiler says may hold
//! control characters: an escape sequence could recolour, move or retitle the reader's terminal, or hide a line. Whatever
//! is shown as text goes through [`printable`] or [`printable_lines`]; JSON goes through [`ascii_controls`], which
//! loses nothing.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a terminal may take `c` as an order and not as a letter: control characters of C0 (escape among them), DEL,
/// those of C1 (0x9b begins a control sequence by itself, ECMA-48 5.4), line and paragraph separators, and what
/// changes the direction of writing (Unicode Standard Annex 9, 2.1 to 2.4), which can show a name backwards.
#[must_use]
pub fn is_order(c: char) -> bool {
    let direction = matches!(c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || direction || matches!(c, '\u{2028}' | '\u{2029}')
}

/// `text` for one line: every order is spelt out, as `\u{1b}` for an escape, `\n` for a line end.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    spelt_out(text, is_order)
}

/// The same for a text of several lines: line ends and tabs stay what they are.
#[must_use]
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    spelt_out(text, |c| is_order(c) && !matches!(c, '\n' | '\t'))
}

fn spelt_out(text: &str, is_order: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_order) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_order(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// A JSON document that says the same without orders. The serialiser escapes those of C0 already; the others can only
/// stand within texts, where `\u` and four digits mean the same character (RFC 8259, 7).
#[must_use]
pub fn ascii_controls(json: &str) -> Cow<'_, str> {
    let raw = |c: char| is_order(c) && !c.is_ascii_whitespace();
    if !json.contains(raw) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if raw(c) {
            // All orders are in the first plane: one unit of UTF-16. Writing to a String does not fail.
            let _ = write!(out, "\\u{:04x}", c as u32);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn orders_are_spelt_out_and_letters_are_not() {
        assert_eq!(printable("\u{1b}[31mred\u{7}\u{9b}2J\n"), "\\u{1b}[31mred\\u{7}\\u{9b}2J\\n");
        assert_eq!(printable_lines("a\tb\r\n\u{202e}c"), "a\tb\\r\n\\u{202e}c");
        let letters = "µops ≤ 3 · 日本 \\ # é";
        assert!(matches!(printable(letters), Cow::Borrowed(same) if same == letters));
    }

    proptest! {
        #[test]
        fn nothing_that_a_terminal_obeys_is_left(text in any::<String>()) {
            prop_assert!(!printable(&text).contains(is_order));
            prop_assert!(!printable_lines(&text).contains(|c| is_order(c) && c != '\n' && c != '\t'));
        }

        #[test]
        fn json_keeps_its_meaning(text in any::<String>()) {
            let json = serde_json::to_string_pretty(&[&text]).unwrap();
            let safe = ascii_controls(&json);
            prop_assert!(!safe.contains(|c| is_order(c) && c != '\n'));
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), vec![text]);
        }
    }
}
