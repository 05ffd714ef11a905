//! What the hypervisor says: lines on QEMU's debug console, each with its name in front. The guest's serial line is
//! left alone.

use super::port::write_byte;
use core::fmt::{Arguments, Result, Write};
use handover::DEBUG_PORT;

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> Result {
        for byte in text.bytes() {
            // SAFETY: the debug console's port; nothing happens where there is none.
            unsafe { write_byte(DEBUG_PORT, byte) };
        }
        Ok(())
    }
}

/// Writes one line.
pub fn line(text: Arguments) {
    // The console cannot fail.
    let _ = writeln!(Console, "emulated-pmu: {text}");
}
