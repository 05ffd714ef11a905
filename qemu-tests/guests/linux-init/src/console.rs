//! The console, which the kernel opened as standard output.

use core::fmt::{Arguments, Result, Write};
use syscalls::{Sysno, syscall};

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> Result {
        // SAFETY: the kernel reads the text. A console that takes no bytes can be told nothing.
        let _ = unsafe { syscall!(Sysno::write, 1, text.as_ptr(), text.len()) };
        Ok(())
    }
}

/// Writes one line.
pub fn line(text: Arguments) {
    // The console cannot fail.
    let _ = writeln!(Console, "{text}");
}

/// Writes one line, formatted.
macro_rules! say {
    ($($text:tt)*) => { $crate::console::line(format_args!($($text)*)) };
}
pub(crate) use say;
