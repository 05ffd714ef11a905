//! The id that the machine's firmware left a processor's APIC with, before the APIC is taken into use.

use super::registers::Registers;
use super::{APIC_ENABLE, Mode, Register, X2APIC_ENABLE};
use crate::cpu::native;
use crate::msr;
use raw_cpuid::CpuIdReader as _;

/// Bits of the id in xAPIC mode.
const XAPIC_IDS: u32 = 0xff;

/// This processor's APIC id. `by_cpuid`: what CPUID says, which is the initial id where there is no leaf 0xB. Firmware may have
/// given another one, and then the MADT has that (AMD, BKDG of families 10h and 15h, APIC20).
///
/// # Safety
/// Ring 0, physical memory mapped.
#[must_use]
pub unsafe fn found_id(by_cpuid: u32) -> u32 {
    /// Leaf 1 EDX: there is an APIC.
    const APIC: u32 = 1 << 9;
    if native().cpuid1(1).edx & APIC == 0 {
        return by_cpuid;
    }
    // SAFETY: a processor with an APIC has the register.
    let base = unsafe { msr::read(msr::IA32_APIC_BASE) };
    // SAFETY: `choose` reads in the mode that the base states; the caller promises the map.
    choose(base, by_cpuid, |mode| unsafe { Registers::new(mode, base) }.read(Register::Id))
}

/// The register's id; CPUID's where the APIC is off, and where the id does not fit the register.
fn choose(base: u64, by_cpuid: u32, read: impl FnOnce(Mode) -> u32) -> u32 {
    if base & APIC_ENABLE == 0 {
        by_cpuid
    } else if base & X2APIC_ENABLE != 0 {
        read(Mode::X2Apic)
    } else if by_cpuid > XAPIC_IDS {
        by_cpuid
    } else {
        read(Mode::XApic) >> 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(base: u64, by_cpuid: u32, id: u32) -> u32 {
        let read = |mode| if mode == Mode::X2Apic { id } else { id << 24 };
        choose(base, by_cpuid, read)
    }

    #[test]
    fn i7_a_processor_is_known_by_the_apic_id_that_firmware_gave_it() {
        assert_eq!(found(0xfee0_0800, 0, 0x10), 0x10, "Opteron 6168: leaf 1 has the initial id");
        assert_eq!(found(0xfee0_0c00, 3, 0x1_0003), 0x1_0003);
        assert_eq!(found(0xfee0_0800, 0x1_0003, 3), 0x1_0003, "eight bits are not all of it");
        assert_eq!(found(0xfee0_0000, 5, 0), 5, "the APIC is off");
    }
}
