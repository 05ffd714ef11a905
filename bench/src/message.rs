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

    /// The text.
    #[cfg(test)]
    fn text(&self) -> &str {
        core::str::from_utf8(&self.text[..self.bytes as usize]).expect("whole characters")
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
}
