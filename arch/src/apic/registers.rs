//! The APIC's registers, by either road.

use crate::memory::layout;
use crate::msr::{self, Msr};
use core::arch::asm;

/// How registers are reached: bits 11:10 of IA32_APIC_BASE (SDM vol. 3, 10.12.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// Memory, 4 KiB at the address in IA32_APIC_BASE.
    XApic = 0b10,
    /// MSRs from 0x800.
    X2Apic = 0b11,
}

impl Mode {
    /// Both bits, in their place.
    pub(super) const fn bits(self) -> u64 {
        (self as u64) << 10
    }
}

/// Offset in the xAPIC's page; the x2APIC's MSR is 0x800 plus a sixteenth of it (SDM vol. 3, table 10-6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are the manual's")]
pub enum Register {
    Id = 0x20,
    Version = 0x30,
    EndOfInterrupt = 0xb0,
    SpuriousVector = 0xf0,
    /// Interrupts in service; seven more follow, 0x10 apart, of 32 vectors each.
    InService = 0x100,
    LvtCmci = 0x2f0,
    InterruptCommand = 0x300,
    LvtTimer = 0x320,
    LvtThermal = 0x330,
    LvtPmc = 0x340,
    LvtLint0 = 0x350,
    LvtLint1 = 0x360,
    LvtError = 0x370,
    TimerInitialCount = 0x380,
    TimerCurrentCount = 0x390,
    TimerDivide = 0x3e0,
}

impl Register {
    const fn msr(self) -> Msr {
        msr_at(self as u32)
    }
}

/// The MSR that has in x2APIC mode what the page has at `offset`.
const fn msr_at(offset: u32) -> Msr {
    Msr(0x800 + (offset >> 4))
}

/// First entry of AMD's extended local vector table; three more may follow, 0x10 apart (AMD APM vol. 2, 16.4.5).
const EXTENDED_LVT: u32 = 0x500;

/// Where an entry of the extended table is in the page, 0 to 3.
const fn extended(entry: u8) -> u32 {
    EXTENDED_LVT + 0x10 * (entry & 3) as u32
}

/// Upper half of the interrupt command in xAPIC mode.
const INTERRUPT_COMMAND_HIGH: u32 = 0x310;
/// Interrupt command, bit 12: the last one is not accepted yet (xAPIC only).
const DELIVERY_PENDING: u32 = 1 << 12;
/// It takes microseconds; a command that never goes out must not keep us.
const DELIVERY_LOOPS: u32 = 100_000;
/// Bits of IA32_APIC_BASE that hold the page's address; processors have at most 52 address bits.
const BASE_MASK: u64 = 0x000f_ffff_ffff_f000;

/// The registers of this processor's APIC.
#[derive(Clone, Copy)]
pub(super) struct Registers {
    mode: Mode,
    page: u64,
}

impl Registers {
    /// # Safety
    /// The APIC must be in `mode`, `base` the value of IA32_APIC_BASE, and physical memory mapped.
    pub(super) unsafe fn new(mode: Mode, base: u64) -> Self {
        Self { mode, page: layout::PHYSICAL + (base & BASE_MASK) }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }

    pub(super) fn page(&self) -> Option<u64> {
        (self.mode == Mode::XApic).then_some(self.page)
    }

    pub(super) fn read(&self, register: Register) -> u32 {
        // SAFETY: `new`'s caller promised the mode; the registers of the enum exist in both, CMCI only
        // where the version register says so, which `lvt` checks.
        unsafe {
            match self.mode {
                Mode::XApic => ((self.page + register as u64) as *const u32).read_volatile(),
                Mode::X2Apic => msr::read(register.msr()) as u32,
            }
        }
    }

    /// Bits of 32 vectors in service, number `part` of 8.
    pub(super) fn in_service(&self, part: u32) -> u32 {
        let register = Register::InService as u32 + 0x10 * (part & 7);
        // SAFETY: as for `read`; reading changes nothing.
        unsafe {
            match self.mode {
                Mode::XApic => ((self.page + u64::from(register)) as *const u32).read_volatile(),
                Mode::X2Apic => msr::read(msr_at(register)) as u32,
            }
        }
    }

    /// Writes an entry of the extended table, 0 to 3, and returns what it reads then.
    pub(super) fn write_extended(&mut self, entry: u8, value: u32) -> u32 {
        let register = extended(entry);
        // SAFETY: for the page as for `write`. In x2APIC mode the MSR may be absent, and then raises an exception that is
        // taken.
        unsafe {
            match self.mode {
                Mode::XApic => {
                    let at = (self.page + u64::from(register)) as *mut u32;
                    at.write_volatile(value);
                    at.read_volatile()
                }
                Mode::X2Apic => {
                    let msr = msr_at(register);
                    let _ = msr::try_write(msr, u64::from(value));
                    msr::try_read(msr).map_or(0, |value| value as u32)
                }
            }
        }
    }

    pub(super) fn write(&mut self, register: Register, value: u32) {
        // SAFETY: as for `read`; the values that this module writes are allowed ones.
        unsafe {
            match self.mode {
                Mode::XApic => ((self.page + register as u64) as *mut u32).write_volatile(value),
                Mode::X2Apic => msr::write(register.msr(), u64::from(value)),
            }
        }
    }

    /// Writes the interrupt command register, when the last command is on its way. Shorthands ignore the destination.
    pub(super) fn write_icr(&mut self, destination: u32, low: u32) {
        if self.mode == Mode::X2Apic {
            // SAFETY: the mode has the register, which is one of 64 bits (SDM vol. 3, 10.12.9).
            unsafe {
                // Unlike the xAPIC's, this write does not wait for stores before it (SDM vol. 3, 10.12.3).
                asm!("mfence", "lfence", options(nostack, preserves_flags));
                let value = u64::from(destination) << 32 | u64::from(low);
                msr::write(Register::InterruptCommand.msr(), value);
            }
            return;
        }
        for _ in 0..DELIVERY_LOOPS {
            if self.read(Register::InterruptCommand) & DELIVERY_PENDING == 0 {
                break;
            }
            core::hint::spin_loop();
        }
        let high = (self.page + u64::from(INTERRUPT_COMMAND_HIGH)) as *mut u32;
        // SAFETY: the page is the APIC's.
        unsafe { high.write_volatile(destination << 24) };
        self.write(Register::InterruptCommand, low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn msr_numbers_are_those_of_the_manual() {
        assert_eq!(Register::EndOfInterrupt.msr(), Msr(0x80b));
        assert_eq!(Register::LvtPmc.msr(), Msr(0x834));
        assert_eq!(Register::InterruptCommand.msr(), Msr(0x830));
        assert_eq!(Register::TimerDivide.msr(), Msr(0x83e));
    }

    /// MSRs 0x850 to 0x853: AMD APM vol. 2, table 16-6; Linux, `X2APIC_MSR(APIC_EILVTn(n))`.
    #[test]
    fn s1_the_extended_entries_are_registers_of_the_x2apic_as_well() {
        let page = [0, 1, 2, 3].map(extended);
        assert_eq!(page, [0x500, 0x510, 0x520, 0x530]);
        assert_eq!(page.map(msr_at), [0x850, 0x851, 0x852, 0x853].map(Msr));
        // IBS_CTL's offset has four bits, of which the table has two.
        assert_eq!(extended(4), 0x500);
    }
}
