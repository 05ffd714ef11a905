//! Names that libraries built for unwinding refer to. A panic ends the program before anything unwinds, so nothing calls them.

use core::arch::naked_asm;

/// What `core` and `alloc`, which come compiled with the toolchain, name in their tables for unwinding.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn rust_eh_personality() {
    naked_asm!("ud2")
}

/// Where their landing pads continue.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn _Unwind_Resume() -> ! {
    naked_asm!("ud2")
}
