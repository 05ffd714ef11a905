//! The local APIC, by its page in the window.

use core::ptr::write_volatile;
use program_format::layout::{address, page};

/// Physical address of its registers.
pub const PHYSICAL: u64 = 0xfee0_0000;
/// End of interrupt.
pub const EOI: u64 = 0xb0;
const SPURIOUS: u64 = 0xf0;
const LVT_TIMER: u64 = 0x320;
const LVTPC: u64 = 0x340;
const INITIAL_COUNT: u64 = 0x380;
const DIVIDE: u64 = 0x3e0;

/// Linear address of a register.
pub const fn register(offset: u64) -> u64 {
    address(page::APIC) + offset
}

/// Writes a register.
pub fn write(offset: u64, value: u32) {
    // SAFETY: the APIC's registers are mapped there, and what is written makes it interrupt at most, for which there are
    // handlers.
    unsafe { write_volatile(register(offset) as *mut u32, value) };
}

/// Where the PMI goes.
pub fn set_lvtpc(value: u32) {
    write(LVTPC, value);
}

/// Before each program: on, no timer set; once it is, it interrupts once, at the bus clock's full rate.
pub fn reset() {
    write(SPURIOUS, 0x1ff);
    write(INITIAL_COUNT, 0);
    write(DIVIDE, 0b1011);
    write(LVT_TIMER, program_format::layout::vector::DEVICE.into());
    write(LVTPC, 1 << 16);
    write(EOI, 0);
}
