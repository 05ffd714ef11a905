//! Text that others wrote, made fit for a terminal.

use std::borrow::Cow;

/// `text` with everything escaped that a terminal would obey instead of show: control characters,
/// C1 ones included (a lone 0x9b opens a sequence, too), and the marks that turn the direction of
/// writing around. Line ends stay; other escapes look as in Rust, `\u{1b}`.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if steers(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn steers(character: char) -> bool {
    match character {
        '\n' => false,
        // Bidirectional controls (Unicode, UAX #9), and the line and paragraph separators.
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_shown_instead() {
        for (text, shown) in [
            ("l2_rqsts.miss\nümlaut", "l2_rqsts.miss\nümlaut"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}31m\r\t\u{7f}", "\\u{9b}31m\\r\\t\\u{7f}"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
        ] {
            assert_eq!(plain(text), shown);
        }
        assert!(matches!(plain("plain"), Cow::Borrowed(_)));
    }
}
