//! Calls of the BIOS.

use core::arch::asm;

/// The registers of a call: those that it begins with, then those that it ends with.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Registers {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
    pub esi: u32,
    pub edi: u32,
    pub es: u16,
    pub ds: u16,
    pub flags: u16,
    pub reserved: u16,
}

impl Registers {
    /// Whether the call failed, as most say: the carry flag is set.
    pub fn failed(&self) -> bool {
        self.flags & 1 != 0
    }

    /// The upper byte of AX: what most calls return.
    pub fn ah(&self) -> u8 {
        (self.eax >> 8) as u8
    }
}

unsafe extern "sysv64" {
    static mut bios_registers: Registers;
    fn bios_call(number: u8);
}

/// Calls interrupt `number` in real mode.
///
/// # Safety
/// The call must do no harm: it may write wherever the registers point.
pub unsafe fn bios(number: u8, mut registers: Registers) -> Registers {
    // SAFETY: one processor, interrupts off, and never called from within itself; the assembly reads and writes the
    // registers, keeps what a function has to keep, and comes back in the state in which it was called.
    unsafe {
        (&raw mut bios_registers).write_volatile(registers);
        bios_call(number);
        registers = (&raw const bios_registers).read_volatile();
        // What the BIOS wrote is memory that the compiler has not seen change.
        asm!("", options(nostack, preserves_flags));
    }
    registers
}
