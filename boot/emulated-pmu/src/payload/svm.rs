//! Switching SVM on, and the map of model-specific registers that the guest cannot reach by itself.

use super::port::{cpuid, read_msr, write_msr};
use super::system_call::SYSENTER_CS;
use core::slice;
use emulated_pmu::nested::permissions::{IO_BYTES, MSR_BYTES, msr_place};
use emulated_pmu::x2apic;
use handover::Refusal;
use pmu_model::Pmu;

/// EFER.
pub const EFER: u32 = 0xc000_0080;
/// EFER.SVME.
pub const SVME: u64 = 1 << 12;
/// VM_CR: bit 4 SVMDIS.
pub const VM_CR: u32 = 0xc001_0114;
/// VM_HSAVE_PA.
pub const VM_HSAVE_PA: u32 = 0xc001_0117;

#[repr(C, align(4096))]
struct HostSave([u8; 4096]);
static mut HOST_SAVE: HostSave = HostSave([0; 4096]);

#[repr(C, align(4096))]
struct MsrPermissions([u8; MSR_BYTES]);
static mut MSR_PERMISSIONS: MsrPermissions = MsrPermissions([0; MSR_BYTES]);
#[repr(C, align(4096))]
struct IoPermissions([u8; IO_BYTES]);
static mut IO_PERMISSIONS: IoPermissions = IoPermissions([0; IO_BYTES]);

/// Says whether this processor has what is needed.
pub fn check() -> Result<(), Refusal> {
    const SVM: u32 = 1 << 2;
    const NESTED_PAGING: u32 = 1 << 0;
    const GIANT_PAGES: u32 = 1 << 26;
    const SVMDIS: u64 = 1 << 4;
    if cpuid(0x8000_0000, 0).eax < 0x8000_000a || cpuid(0x8000_0001, 0).ecx & SVM == 0 {
        return Err(Refusal::NoSvm);
    }
    if cpuid(0x8000_000a, 0).edx & NESTED_PAGING == 0
        || cpuid(0x8000_0001, 0).edx & GIANT_PAGES == 0
    {
        return Err(Refusal::NoNestedPaging);
    }
    // SAFETY: processors with SVM have the register.
    if unsafe { read_msr(VM_CR) } & SVMDIS != 0 {
        return Err(Refusal::SvmDisabled);
    }
    Ok(())
}

/// Switches SVM on.
///
/// # Safety
/// After [`check`], ring 0, one processor.
pub unsafe fn enable() -> Result<(), Refusal> {
    // SAFETY: the registers exist with SVM; the page is ours.
    unsafe {
        write_msr(EFER, read_msr(EFER) | SVME);
        if read_msr(EFER) & SVME == 0 {
            return Err(Refusal::SvmDisabled);
        }
        write_msr(VM_HSAVE_PA, (&raw const HOST_SAVE) as u64);
    }
    Ok(())
}

/// Further registers that are intercepted: SVM's own, and the one that may be withheld.
const OTHER_REGISTERS: [u32; 4] = [EFER, VM_CR, VM_HSAVE_PA, SYSENTER_CS];

/// Fills the map for the registers of `pmu`, and those of the local APIC in x2APIC mode if that is offered. Returns its address and that of the I/O map.
///
/// # Safety
/// No guest may run with the map.
pub unsafe fn permissions(pmu: &Pmu, x2apic: bool) -> (u64, u64) {
    let map = &raw mut MSR_PERMISSIONS;
    // SAFETY: the caller's promise.
    let map = unsafe { &mut (*map).0 };
    let own = OTHER_REGISTERS.into_iter();
    let apic = [(x2apic::BASE, x2apic::BASE), x2apic::REGISTERS].into_iter().filter(|_| x2apic);
    let ranges = pmu.msr_ranges().chain(apic).flat_map(|(first, last)| first..=last);
    for msr in own.chain(ranges) {
        set(map, msr);
    }
    (map.as_ptr() as u64, (&raw const IO_PERMISSIONS) as u64)
}

/// Leaves to the processor what `before` has and `now` has not: such as MISC_ENABLE, which every guest may expect.
pub fn release(before: &Pmu, now: &Pmu) {
    let map = &raw mut MSR_PERMISSIONS;
    // SAFETY: one processor, which runs the hypervisor now.
    let map = unsafe { &mut (*map).0 };
    let released = before.msr_ranges().flat_map(|(first, last)| first..=last);
    for (byte, bit) in released.filter(|msr| !now.owns(*msr)).filter_map(msr_place) {
        map[byte] &= !(0b11 << bit);
    }
}

/// Intercepts the four bytes from `port` on, or no longer.
pub fn intercept_port(port: u16, on: bool) {
    let map = &raw mut IO_PERMISSIONS;
    for port in usize::from(port)..usize::from(port) + 4 {
        let bit = 1 << (port % 8);
        // SAFETY: one processor, which runs the hypervisor now; the map continues beyond the last port.
        unsafe {
            let byte = &mut (*map).0[port / 8];
            *byte = if on { *byte | bit } else { *byte & !bit };
        }
    }
}

/// The addresses of both maps.
pub fn map_addresses() -> (u64, u64) {
    ((&raw const MSR_PERMISSIONS) as u64, (&raw const IO_PERMISSIONS) as u64)
}

/// Both maps, by words.
pub fn maps() -> (&'static [u64], &'static [u64]) {
    let (msr, io) = map_addresses();
    // SAFETY: one processor, which runs the hypervisor now and keeps neither beyond the next change; they are aligned to pages.
    unsafe {
        (
            slice::from_raw_parts(msr as *const u64, MSR_BYTES / 8),
            slice::from_raw_parts(io as *const u64, IO_BYTES / 8),
        )
    }
}

fn set(map: &mut [u8; MSR_BYTES], msr: u32) {
    // Registers outside the three ranges always exit.
    if let Some((byte, bit)) = msr_place(msr) {
        map[byte] |= 0b11 << bit;
    }
}
