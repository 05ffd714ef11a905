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

/// Returns when the console has sent all that was written. Linux keeps it in the serial port's buffer, and does not
/// empty that when the machine is switched off: the last lines came out by chance.
pub fn drain() {
    // tcdrain(3) is this ioctl with an argument other than 0: tty_ioctl(4). <asm-generic/ioctls.h>
    const TCSBRK: usize = 0x5409;
    // SAFETY: it waits, and reads and writes no memory of ours. A console that is none has nothing to send.
    let _ = unsafe { syscall!(Sysno::ioctl, 1, TCSBRK, 1) };
}

/// Writes one line, formatted.
macro_rules! say {
    ($($text:tt)*) => { $crate::console::line(format_args!($($text)*)) };
}
pub(crate) use say;
