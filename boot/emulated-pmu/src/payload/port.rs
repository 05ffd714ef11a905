//! Ports and model-specific registers.

use core::arch::asm;

/// # Safety
/// The port must be one whose device the caller owns, or nobody's.
pub unsafe fn write_byte(port: u16, value: u8) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags));
    };
}

/// Resets the machine, if it can be.
pub fn reset() {
    /// The keyboard controller's command register, and its command to pulse the reset line.
    const KEYBOARD: (u16, u8) = (0x64, 0xfe);
    /// The PC chipset's reset register: a full reset.
    const RESET: (u16, u8) = (0xcf9, 0x0e);
    for (port, value) in [KEYBOARD, RESET] {
        // SAFETY: the machine is to end.
        unsafe { write_byte(port, value) };
    }
}

/// # Safety
/// The register must exist, and reading it have no unwanted effect.
pub unsafe fn read_msr(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the caller's promise.
    unsafe {
        asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// # Safety
/// The register must exist and take the value, and its effect be wanted.
pub unsafe fn write_msr(msr: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("wrmsr", in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32, options(nostack, preserves_flags));
    }
}

/// Writes DR7.
pub fn write_debug_7(value: u64) {
    // SAFETY: breakpoints are at addresses of the guest; while the hypervisor runs none of its own code is there, as
    // they are set just before VMRUN and taken back just after it.
    unsafe {
        asm!("mov dr7, {}", in(reg) value | emulated_pmu::debug_registers::DR7_ONE, options(nomem, nostack, preserves_flags));
    };
}

/// CPUID.
pub fn cpuid(leaf: u32, subleaf: u32) -> core::arch::x86_64::CpuidResult {
    core::arch::x86_64::__cpuid_count(leaf, subleaf)
}

/// The TSC.
pub fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}
