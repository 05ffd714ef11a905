//! Text.

use alloc::string::String;
use core::fmt::Write;

/// A number out of digits.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    text.bytes().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Digits of a number, appended.
pub fn format(number: u64, out: &mut String) {
    // A String takes everything.
    let _ = write!(out, "{number:>20}|{number:#x}");
}

/// Letters moved by 13 places.
pub fn rot13(text: &mut [u8]) {
    for letter in text {
        *letter = match *letter {
            first @ (b'a'..=b'm' | b'A'..=b'M') => first + 13,
            last @ (b'n'..=b'z' | b'N'..=b'Z') => last - 13,
            other => other,
        };
    }
}

/// Edit distance of two short texts.
#[must_use]
pub fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row = [0_usize; 64];
    let row = &mut row[..=b.len().min(63)];
    row.iter_mut().enumerate().for_each(|(at, cell)| *cell = at);
    for (line, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (at, y) in b.iter().take(63).enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
