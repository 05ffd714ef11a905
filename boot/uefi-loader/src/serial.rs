//! COM1, before the kernel has it.

use core::fmt::{Arguments, Write};
use uart_16550::{BaudRate, Config, Uart16550Tty};

/// Says `text` on the serial line, if there is one.
pub fn say(text: Arguments) {
    let config = Config { baud_rate: BaudRate::Baud115200, ..Config::default() };
    // SAFETY: COM1's port; the firmware, which may use it for its console, does not run meanwhile.
    if let Ok(mut uart) = unsafe { Uart16550Tty::new_port(0x3f8, config) } {
        let _ = uart.write_fmt(text);
    }
}
