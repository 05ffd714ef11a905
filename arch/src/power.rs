//! Ways to end: QEMU's exit device, reset, and standing still.

use crate::acpi::reset::{Place, Reset};
use crate::memory::layout;
use crate::pci::{ADDRESS_PORT, DATA_PORT};
use core::arch::asm;
use x86_64::VirtAddr;
use x86_64::instructions::port::Port;
use x86_64::instructions::tables::lidt;
use x86_64::instructions::{hlt, interrupts};
use x86_64::structures::DescriptorTablePointer;

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
/// (port 0xCF9, PIIX and later), then the keyboard controller, then by a processor that shuts down.
///
/// # Safety
/// Nothing that still runs may need the machine. Physical memory is mapped.
pub unsafe fn reset(acpi: Option<Reset>) -> ! {
    // SAFETY: the caller wants the machine gone; ports without a device ignore writes.
    unsafe {
        if let Some(Reset { place, value }) = acpi {
            match place {
                Place::Port(port) => Port::new(port).write(value),
                Place::Memory(address) => {
                    let at = layout::PHYSICAL + u64::from(address);
                    (at as *mut u8).write_volatile(value);
                }
                Place::Pci(function, offset) => {
                    Port::new(ADDRESS_PORT).write(function.select(offset));
                    Port::new(DATA_PORT + (offset & 3)).write(value);
                }
            }
            delay();
        }
        // Bit 1: hard reset; bit 2: on its rising edge (Intel PIIX3, 2.5.11).
        Port::<u8>::new(0xcf9).write(0x02);
        Port::<u8>::new(0xcf9).write(0x06);
        delay();
        // Command 0xFE pulses the reset line (IBM PC AT).
        Port::<u8>::new(0x64).write(0xfe);
        delay();
        shut_down()
    }
}

/// An exception that no table has a handler for: the third fault shuts the processor down, and chipsets reset the machine then (SDM
/// vol. 3, 6.15, interrupt 8).
///
/// # Safety
/// Nothing that still runs may need the machine.
unsafe fn shut_down() -> ! {
    let none = DescriptorTablePointer { limit: 0, base: VirtAddr::zero() };
    interrupts::disable();
    // SAFETY: the caller wants the machine gone.
    unsafe {
        lidt(&none);
        asm!("int3", options(noreturn));
    }
}

/// Gives a device the time to act: some ten milliseconds of port writes.
pub(crate) fn delay() {
    for _ in 0..10_000 {
        // SAFETY: port 0x80 takes diagnostic codes and has no effect.
        unsafe { Port::<u8>::new(0x80).write(0) };
    }
}
