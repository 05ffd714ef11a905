//! What a program leaves behind when it ends itself.

use core::fmt::{self, Write};

/// Longest text that is kept.
pub const MAX_BYTES: usize = 512;

/// A text for the firmware, which reads it after an invalid opcode (UD2) and writes it into the fault's record.
#[repr(C)]
#[derive(Debug)]
pub struct Message {
    bytes: u64,
    text: [u8; MAX_BYTES],
}

impl Message {
    /// No text.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: 0, text: [0; MAX_BYTES] }
    }

    /// Forgets the text.
    pub fn clear(&mut self) {
        self.bytes = 0;
    }

    /// Adds what `end` writes, all of it: a longer text is cut before it.
    pub fn end_with(&mut self, end: impl FnOnce(&mut Self)) {
        let mut last = Self::new();
        end(&mut last);
        let room = MAX_BYTES - last.bytes as usize;
        self.bytes = self.text().floor_char_boundary(room) as u64;
        // It has room.
        let _ = self.write_str(last.text());
    }

    /// Whether memory was lacking where it comes from: it is what `alloc` panics with, or has an error of `try_reserve`.
    #[must_use]
    pub fn is_of_memory(&self) -> bool {
        let text = &self.text[..self.bytes as usize];
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        has(b"memory allocation of ") || has(b"memory allocator") || has(b"AllocError")
    }

    /// The text.
    fn text(&self) -> &str {
        // Only whole characters are taken.
        core::str::from_utf8(&self.text[..self.bytes as usize]).unwrap_or_default()
    }
}

impl Write for Message {
    /// Takes as many whole characters as there is room for.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = self.bytes as usize;
        let end = text.floor_char_boundary(MAX_BYTES - start);
        self.text[start..start + end].copy_from_slice(&text.as_bytes()[..end]);
        self.bytes += end as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_between_characters_and_never_overrun() {
        let mut message = Message::new();
        for _ in 0..300 {
            message.write_str("äö").unwrap();
        }
        assert_eq!(message.text(), "äö".repeat(128));
        message.clear();
        write!(message, "{}x", "a".repeat(MAX_BYTES - 1)).unwrap();
        message.write_str("é").unwrap();
        assert_eq!(message.text().len(), MAX_BYTES);
        message.clear();
        write!(message, "{}é", "a".repeat(MAX_BYTES - 1)).unwrap();
        assert_eq!(message.text(), "a".repeat(MAX_BYTES - 1));
    }

    /// Where a panic came from is known however long its message is.
    #[test]
    fn x7_the_end_of_a_long_message_is_kept() {
        const END: &str = ", at file.rs:7";
        let most = MAX_BYTES - END.len();
        for (length, kept) in [(3, 3), (most, most), (most + 1, most), (600, most)] {
            let mut message = Message::new();
            write!(message, "{}", "a".repeat(length)).unwrap();
            message.end_with(|end| end.write_str(END).unwrap());
            assert_eq!(message.text(), format!("{}{END}", "a".repeat(kept)));
        }
        // Cut between characters; and an end that takes all the room.
        let mut message = Message::new();
        write!(message, "{}", "é".repeat(300)).unwrap();
        message.end_with(|end| end.write_str("x").unwrap());
        assert_eq!(message.text(), format!("{}x", "é".repeat(255)));
        message.end_with(|end| write!(end, "{}", "y".repeat(600)).unwrap());
        assert_eq!(message.text(), "y".repeat(MAX_BYTES));
    }

    /// An allocation that failed and was made do without is not why a later panic came.
    #[test]
    fn x7_lacking_memory_is_told_by_the_panic_that_came_of_it() {
        let of = |text: &str| {
            let mut message = Message::new();
            write!(message, "panicked: {text}").unwrap();
            message.is_of_memory()
        };
        assert!(of("memory allocation of 2097152 bytes failed"));
        let error = Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).unwrap_err();
        assert!(
            of(&format!("called `Result::unwrap()` on an `Err` value: {error:?}")),
            "{error:?}"
        );
        assert!(of(&error.to_string()), "{error}");
        // Nothing was allocated.
        let error = Vec::<u16>::new().try_reserve_exact(usize::MAX).unwrap_err();
        assert!(!of(&error.to_string()), "{error}");
        assert!(!of("index out of bounds: the len is 0 but the index is 7"));
        assert!(!of(""));
    }
}
