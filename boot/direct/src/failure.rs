//! The loader failed: say so on the text screen and on the serial line, and stop.

use core::fmt::{Display, Write};
use core::panic::PanicInfo;
use x86_64::instructions::port::Port;

/// Port and value of QEMU's exit device, as the host tool attaches it: the code for a crash.
const EXIT_PORT: u16 = 0xf4;
const EXIT_CRASH: u32 = 0x13;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    stop(info)
}

/// Says what was wrong, and stops. Where a screen shows graphics nobody sees the text; the loader of the crate `bios`, which sets
/// that, has said before what can be wrong with a file.
pub fn stop(what: impl Display) -> ! {
    // First the screen, which nothing delays.
    let _ = write!(TextScreen { at: 0 }, "barecount's direct loader failed: {what}");
    // SAFETY: nothing else uses COM1 before the kernel runs.
    unsafe {
        loader_serial::say(format_args!("\nbarecount's direct loader failed: {what}\n"));
    }
    if is_virtual() {
        // SAFETY: on a virtual machine the port is the exit device's or nobody's.
        unsafe { Port::<u32>::new(EXIT_PORT).write(EXIT_CRASH) };
    }
    loop {
        x86_64::instructions::interrupts::disable();
        x86_64::instructions::hlt();
    }
}

/// The text screen of a PC, from its first line on: 80 by 25 characters, each with an attribute.
struct TextScreen {
    at: usize,
}

const TEXT_SCREEN: *mut u16 = 0xb8000 as *mut u16;
const COLUMNS: usize = 80;
const CHARACTERS: usize = COLUMNS * 25;
/// Grey on black.
const ATTRIBUTE: u16 = 7 << 8;

impl Write for TextScreen {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for byte in text.bytes() {
            // To the end of a line.
            let count = if byte == b'\n' { COLUMNS - self.at % COLUMNS } else { 1 };
            let character = if byte == b'\n' { b' ' } else { byte };
            for _ in 0..count.min(CHARACTERS - self.at) {
                // SAFETY: within the screen; where there is none nobody has this memory.
                unsafe {
                    TEXT_SCREEN.add(self.at).write_volatile(ATTRIBUTE | u16::from(character));
                }
                self.at += 1;
            }
        }
        Ok(())
    }
}

/// CPUID leaf 1 ECX bit 31.
fn is_virtual() -> bool {
    core::arch::x86_64::__cpuid(1).ecx & 1 << 31 != 0
}
