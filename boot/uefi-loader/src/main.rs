//! The UEFI application that loads kernel and ramdisk from its own partition and starts the kernel.
//!
//! It hands both to the same code that the direct loader uses, so that the kernel sees the same `BootInfo`. Before that it leaves
//! five-level paging, which that code takes for four-level paging.
#![no_std]
#![no_main]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod application;

use uefi::prelude::{Status, entry};
use uefi::println;

#[entry]
fn main() -> Status {
    match application::start() {
        Err(error) => {
            println!("barecount: the kernel cannot be started: {error}");
            // Not every firmware's console goes to the serial line, where a host listens.
            // SAFETY: the firmware, which may use COM1 for its console, does not run meanwhile.
            unsafe {
                loader_serial::say(format_args!(
                    "barecount: the kernel cannot be started: {error}\n"
                ));
            }
            Status::LOAD_ERROR
        }
        Ok(never) => match never {},
    }
}

/// On the screen, because nobody else listens: by the machine's firmware while that is there, then on the frame buffer.
#[cfg(target_os = "uefi")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    application::say(info);
    loop {
        // SAFETY: nothing is left to be done.
        unsafe { core::arch::asm!("cli", "hlt", options(nomem, nostack)) };
    }
}
