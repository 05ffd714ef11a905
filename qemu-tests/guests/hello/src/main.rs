//! Says hello on the serial line and ends QEMU: the yardstick that `bench` holds our own boot against.
#![no_std]
#![no_main]

use bootloader_api::{BootInfo, entry_point};
use x86_64::instructions::{hlt, port::Port};

entry_point!(main);

fn main(_: &'static mut BootInfo) -> ! {
    for byte in *b"hello\n" {
        // SAFETY: COM1's data register; QEMU's UART takes a byte at any time.
        unsafe { Port::<u8>::new(0x3f8).write(byte) };
    }
    // SAFETY: the exit device that the host tool attaches.
    unsafe { Port::<u32>::new(0xf4).write(0x10) };
    loop {
        hlt();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        hlt();
    }
}
