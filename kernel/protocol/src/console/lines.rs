//! Lines out of the bytes of a serial line.

use alloc::string::String;
use alloc::vec::Vec;
use thiserror::Error;

/// Longest line, in bytes.
pub const MAX_COMMAND_BYTES: usize = 400;

/// What the receiver of a serial line has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Received {
    /// A byte.
    Byte(u8),
    /// A byte was lost here: it came before the one before it was taken.
    Overrun,
    /// A byte came that was damaged on the way: parity, framing or a break.
    Damaged,
}

/// Why a line cannot be taken.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum WrongLine {
    /// It has no end for too long.
    #[error("the line is longer than {MAX_COMMAND_BYTES} bytes")]
    TooLong,
    /// Control characters, or bytes that are no UTF-8.
    #[error("byte {0} of the line is no text")]
    NoText(usize),
    /// Bytes came faster than they were taken.
    #[error("bytes of the line were lost: they came faster than the machine takes them")]
    Overrun,
    /// The line is set up differently at both ends, or disturbed.
    #[error("bytes of the line were damaged on the way")]
    Damaged,
}

/// Puts lines together, whatever comes. A wrong line is told of at its end, and the next one is read as if nothing had been.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    wrong: Option<WrongLine>,
}

const BACKSPACE: u8 = 8;
const DELETE: u8 = 0x7f;

impl Lines {
    /// At the beginning of a line. Takes its memory now.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(MAX_COMMAND_BYTES), wrong: None }
    }

    /// Takes what came. Returns a line when it has ended, by CR, LF or both, without its end; lines without a character are
    /// passed over. Backspace takes the last character back.
    pub fn take(&mut self, received: Received) -> Option<Result<String, WrongLine>> {
        let byte = match received {
            Received::Byte(byte) => byte,
            Received::Overrun => return self.is_wrong(WrongLine::Overrun),
            Received::Damaged => return self.is_wrong(WrongLine::Damaged),
        };
        match byte {
            b'\r' | b'\n' => self.end(),
            BACKSPACE | DELETE => {
                // Bytes that go on a character of UTF-8 are 10xxxxxx.
                while self.bytes.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
                None
            }
            b'\t' | b' '.. => {
                match self.bytes.len() < MAX_COMMAND_BYTES {
                    true => self.bytes.push(byte),
                    false => drop(self.is_wrong(WrongLine::TooLong)),
                }
                None
            }
            _ => self.is_wrong(WrongLine::NoText(self.bytes.len() + 1)),
        }
    }

    /// Notes what is wrong first.
    fn is_wrong(&mut self, wrong: WrongLine) -> Option<Result<String, WrongLine>> {
        self.wrong.get_or_insert(wrong);
        None
    }

    fn end(&mut self) -> Option<Result<String, WrongLine>> {
        let line = match (self.wrong.take(), core::str::from_utf8(&self.bytes)) {
            (Some(wrong), _) => Some(Err(wrong)),
            (None, Err(error)) => Some(Err(WrongLine::NoText(error.valid_up_to() + 1))),
            (None, Ok(line)) => (!line.trim().is_empty()).then(|| Ok(line.into())),
        };
        self.bytes.clear();
        line
    }
}
