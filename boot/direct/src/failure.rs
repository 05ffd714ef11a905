//! The loader failed: say so on the serial line and stop.

use core::fmt::Write;
use core::panic::PanicInfo;
use uart_16550::{BaudRate, Config, Uart16550Tty};
use x86_64::instructions::port::Port;

/// Port and value of QEMU's exit device, as the host tool attaches it: the code for a crash.
const EXIT_PORT: u16 = 0xf4;
const EXIT_CRASH: u32 = 0x13;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    let config = Config { baud_rate: BaudRate::Baud115200, ..Config::default() };
    // SAFETY: COM1's port; nothing else uses it before the kernel runs.
    if let Ok(mut uart) = unsafe { Uart16550Tty::new_port(0x3f8, config) } {
        let _ = writeln!(uart, "\nbarecount's direct loader failed: {info}");
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

/// CPUID leaf 1 ECX bit 31.
fn is_virtual() -> bool {
    core::arch::x86_64::__cpuid(1).ecx & 1 << 31 != 0
}
