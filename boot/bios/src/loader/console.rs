//! What the loader says: on the text screen and on COM1.

use super::call::{Registers, bios};
use core::fmt::{Arguments, Write};

/// INT 10h, 0Eh: writes a character and moves on.
const VIDEO: u8 = 0x10;
const TELETYPE: u32 = 0x0e00;

struct Screen;

impl Write for Screen {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.put(b'\r');
            }
            self.put(byte);
        }
        Ok(())
    }
}

impl Screen {
    fn put(&self, byte: u8) {
        let registers =
            Registers { eax: TELETYPE | u32::from(byte), ebx: 7, ..Registers::default() };
        // SAFETY: writes on the screen.
        unsafe { bios(VIDEO, registers) };
    }
}

/// Says `text` on the screen.
pub fn show(text: Arguments) {
    // It cannot fail.
    let _ = Screen.write_fmt(text);
}

/// Says `text` on both.
pub fn say(text: Arguments) {
    show(text);
    // SAFETY: nothing else uses COM1 before the kernel runs.
    unsafe { loader_serial::say(text) };
}
