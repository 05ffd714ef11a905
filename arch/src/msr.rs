//! Model-specific registers.
//!
//! A register that the manuals promise is read with [`read`]. One that only some processors have is
//! read with [`try_read`], which turns the #GP of its absence (or #UD, as QEMU's TCG gives for
//! RDPMC) into [`Absent`].

use crate::interrupts::fixup;
use core::arch::asm;

/// Number of a register.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Msr(pub u32);

/// The register raised an exception: it does not exist here, or the value is not allowed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Absent;

/// IA32_APIC_BASE: Intel SDM vol. 3, 10.4.4.
pub const IA32_APIC_BASE: Msr = Msr(0x1b);
/// IA32_BIOS_SIGN_ID: revision of the microcode, in the upper half on Intel after CPUID leaf 1 with the
/// register zeroed before; AMD's PATCH_LEVEL (same number) holds it in the lower half.
pub const IA32_BIOS_SIGN_ID: Msr = Msr(0x8b);
/// IA32_MISC_ENABLE: bits 7, 11 and 12 say what of the PMU is there.
pub const IA32_MISC_ENABLE: Msr = Msr(0x1a0);
/// IA32_PAT: page attribute table.
pub const IA32_PAT: Msr = Msr(0x277);
/// AMD: DE_CFG, decoder configuration; bit 1 makes LFENCE dispatch-serialising.
pub const AMD_DE_CFG: Msr = Msr(0xc001_1029);

/// Reads a register that exists.
///
/// # Safety
/// The processor must have the register (else #GP), and reading it must have no side effect that the
/// caller does not want.
#[inline]
#[must_use]
pub unsafe fn read(msr: Msr) -> u64 {
    // RDMSR clears the upper halves of both.
    let (low, high): (u64, u64);
    // SAFETY: the caller promises that the register exists; RDMSR touches no memory.
    unsafe {
        asm!("rdmsr", in("ecx") msr.0, out("rax") low, out("rdx") high, options(nomem, nostack, preserves_flags));
    }
    high << 32 | low
}

/// Writes a register that exists.
///
/// # Safety
/// The processor must have the register and allow the value; what it changes must not break the
/// assumptions of code that runs afterwards.
#[inline]
pub unsafe fn write(msr: Msr, value: u64) {
    // SAFETY: the caller promises all that the instruction needs. No `nomem`: some registers change
    // how memory behaves.
    unsafe {
        asm!("wrmsr", in("ecx") msr.0, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// Reads a register that may not exist.
///
/// # Errors
/// [`Absent`] if the access raised an exception.
///
/// # Safety
/// The interrupt table of [`crate::interrupts`] must be loaded. Reading must have no unwanted side effect.
pub unsafe fn try_read(msr: Msr) -> Result<u64, Absent> {
    let (low, high, failed): (u32, u32, u32);
    // SAFETY: if RDMSR faults, the handler continues at label 3 with ECX still holding the register's
    // number, and the code there sets the flag.
    unsafe {
        asm!(
            "2: rdmsr",
            "xor ecx, ecx",
            "jmp 4f",
            "3: xor eax, eax",
            "xor edx, edx",
            "mov ecx, 1",
            "4:",
            fixup!("2b", "3b"),
            inout("ecx") msr.0 => failed, out("eax") low, out("edx") high,
            options(nostack),
        );
    }
    if failed == 0 { Ok(u64::from(high) << 32 | u64::from(low)) } else { Err(Absent) }
}

/// Writes a register that may not exist, or may not take the value.
///
/// # Errors
/// [`Absent`] if the access raised an exception.
///
/// # Safety
/// As for [`write()`], apart from existence; the interrupt table must be loaded.
pub unsafe fn try_write(msr: Msr, value: u64) -> Result<(), Absent> {
    let failed: u32;
    // SAFETY: as in `try_read`.
    unsafe {
        asm!(
            "2: wrmsr",
            "xor ecx, ecx",
            "jmp 4f",
            "3: mov ecx, 1",
            "4:",
            fixup!("2b", "3b"),
            inout("ecx") msr.0 => failed, in("eax") value as u32, in("edx") (value >> 32) as u32,
            options(nostack),
        );
    }
    if failed == 0 { Ok(()) } else { Err(Absent) }
}
