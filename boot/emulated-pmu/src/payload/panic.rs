//! A failure of the hypervisor: say so and stop. The guest cannot go on without it.

use super::debug;
use core::arch::asm;
use core::panic::PanicInfo;

#[panic_handler]
fn panic(info: &PanicInfo) -> ! {
    debug::line(format_args!("failed: {info}"));
    loop {
        // SAFETY: stops the processor; interrupts stay off.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
