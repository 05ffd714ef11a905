//! Lines on the serial port.

use core::fmt::{Arguments, Result, Write};
use x86_64::instructions::port::Port;

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> Result {
        for byte in text.bytes() {
            // SAFETY: COM1's data register; QEMU's UART takes a byte at any time.
            unsafe { Port::<u8>::new(0x3f8).write(byte) };
        }
        Ok(())
    }
}

/// Writes a line.
pub fn line(text: Arguments) {
    let _ = writeln!(Serial, "{text}");
}

/// `println!` for the serial port.
#[macro_export]
macro_rules! line {
    ($($text:tt)*) => { $crate::serial::line(format_args!($($text)*)) };
}
