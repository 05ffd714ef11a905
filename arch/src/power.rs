//! Ways to end: QEMU's exit device, reset, and standing still.

use x86_64::instructions::port::Port;
use x86_64::instructions::{hlt, interrupts};

/// Ends QEMU through its isa-debug-exit device: the process's exit status becomes `value << 1 | 1`.
/// Without the device nothing happens.
///
/// # Safety
/// `port` must be the device's, or belong to nothing.
pub unsafe fn debug_exit(port: u16, value: u32) {
    // SAFETY: passed on.
    unsafe { Port::new(port).write(value) }
}

/// Stops this processor for good.
pub fn stop() -> ! {
    loop {
        interrupts::disable();
        hlt();
    }
}

/// Resets the machine: through the register that ACPI names, then the chipset's reset control register
/// (port 0xCF9, PIIX and later), then the keyboard controller.
///
/// # Safety
/// Nothing that still runs may need the machine.
pub unsafe fn reset(acpi: Option<(u16, u8)>) -> ! {
    // SAFETY: the caller wants the machine gone; ports without a device ignore writes.
    unsafe {
        if let Some((port, value)) = acpi {
            Port::new(port).write(value);
            delay();
        }
        // Bit 1: hard reset; bit 2: on its rising edge (Intel PIIX3, 2.5.11).
        Port::<u8>::new(0xcf9).write(0x02);
        Port::<u8>::new(0xcf9).write(0x06);
        delay();
        // Command 0xFE pulses the reset line (IBM PC AT).
        Port::<u8>::new(0x64).write(0xfe);
    }
    stop()
}

/// Gives a device the time to act: some ten milliseconds of port writes.
pub(crate) fn delay() {
    for _ in 0..10_000 {
        // SAFETY: port 0x80 takes diagnostic codes and has no effect.
        unsafe { Port::<u8>::new(0x80).write(0) };
    }
}
