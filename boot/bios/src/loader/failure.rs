//! The loader failed: say so and stop.

use super::console;
use core::panic::PanicInfo;
use x86_64::instructions::port::Port;

/// Port and value of QEMU's exit device, as the host tool attaches it: the code for a crash.
const EXIT_PORT: u16 = 0xf4;
const EXIT_CRASH: u32 = 0x13;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    console::say(format_args!("\nbarecount: cannot be loaded: {}\n", info.message()));
    // CPUID leaf 1 ECX bit 31: a virtual machine.
    if core::arch::x86_64::__cpuid(1).ecx & 1 << 31 != 0 {
        // SAFETY: on a virtual machine the port is the exit device's or nobody's.
        unsafe { Port::<u32>::new(EXIT_PORT).write(EXIT_CRASH) };
    }
    loop {
        x86_64::instructions::interrupts::disable();
        x86_64::instructions::hlt();
    }
}
