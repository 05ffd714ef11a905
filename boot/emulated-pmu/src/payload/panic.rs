//! A failure of the hypervisor: say so and reset the machine. The guest cannot continue without it.

use super::{debug, port};
use core::arch::asm;
use core::panic::PanicInfo;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    debug::line(format_args!("failed: {info}"));
    port::reset();
    loop {
        // SAFETY: stops the processor; interrupts stay off.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
