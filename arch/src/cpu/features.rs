//! Switching on what snippets may use and what the firmware needs.

use super::{Cpuid, Identity, Vendor, c1e, native};
use crate::msr;
use raw_cpuid::CpuIdReader as _;
use x86_64::registers::control::{Cr0, Cr0Flags, Cr4, Cr4Flags};
use x86_64::registers::xcontrol::{XCr0, XCr0Flags};

/// Leaf 1 ECX.
const XSAVE: u32 = 1 << 26;

/// Whether 1 GiB pages can be mapped (leaf 0x80000001 EDX bit 26).
pub fn has_giant_pages(cpuid: &impl Cpuid) -> bool {
    super::has_leaf(cpuid, 0x8000_0001) && cpuid.cpuid1(0x8000_0001).edx & 1 << 26 != 0
}

/// Switches on SSE and, where the processor has them, the states that XSAVE manages (AVX, AVX-512, AMX
/// and whatever else it names), global pages, and write protection in ring 0. Makes PAT entry 1
/// write-combining and entry 2 write-through. Makes LFENCE serialising on AMD, and lets its old processors halt without C1E. Ring 0
/// may use the pages of ring 3, which the boot loader's firmware may have switched off: a snippet of ring 3 lies between code of ring
/// 0. Machine checks are exceptions.
///
/// Returns the state components that are on, as in XCR0.
///
/// # Safety
/// Ring 0, interrupt table loaded, boot processor before it measures anything.
pub unsafe fn enable(identity: &Identity) -> u64 {
    // SAFETY: bits that every x86-64 processor has; nothing of the firmware uses the x87 or SSE units.
    unsafe {
        Cr0::update(|cr0| {
            cr0.remove(Cr0Flags::EMULATE_COPROCESSOR | Cr0Flags::TASK_SWITCHED);
            cr0.insert(Cr0Flags::MONITOR_COPROCESSOR | Cr0Flags::NUMERIC_ERROR);
            cr0.insert(Cr0Flags::WRITE_PROTECT);
        });
        Cr4::update(|cr4| {
            cr4.remove(
                Cr4Flags::SUPERVISOR_MODE_EXECUTION_PROTECTION
                    | Cr4Flags::SUPERVISOR_MODE_ACCESS_PREVENTION,
            );
            cr4.insert(Cr4Flags::OSFXSR | Cr4Flags::OSXMMEXCPT_ENABLE | Cr4Flags::PAGE_GLOBAL);
            // Without it a machine check resets the machine, unseen (SDM vol. 3, 17.10).
            cr4.insert(Cr4Flags::MACHINE_CHECK_EXCEPTION);
        });
        memory_types();
        if identity.vendor == Vendor::Amd {
            serialise_lfence();
            c1e::switch_off(identity.family);
        }
        enable_xsave()
    }
}

/// # Safety
/// As for [`enable`].
unsafe fn enable_xsave() -> u64 {
    if native().cpuid1(1).ecx & XSAVE == 0 || !super::has_leaf(&native(), 0xd) {
        return 0;
    }
    // Leaf 0xD: components that XCR0 can name.
    let leaf = native().cpuid2(0xd, 0);
    let supported = u64::from(leaf.edx) << 32 | u64::from(leaf.eax);
    // SAFETY: the processor has XSAVE and supports each bit that is written. x87 (bit 0) is always set.
    unsafe {
        Cr4::update(|cr4| cr4.insert(Cr4Flags::OSXSAVE));
        XCr0::write_raw(supported | XCr0Flags::X87.bits());
    }
    supported
}

/// Entries 1 and 2 of the reset value are write-through, which nothing uses, and a second kind of uncacheable; types 1 and
/// 4 are write-combining and write-through (SDM vol. 3, 11.12.2). So the first four entries, which need no PAT bit in
/// the page tables, have all that is offered.
///
/// # Safety
/// No page that is mapped by these entries may be in use.
unsafe fn memory_types() {
    const ENTRIES: u64 = 0xffff << 8;
    // SAFETY: every x86-64 processor has the register, and the value stays well-formed.
    unsafe {
        let pat = msr::read(msr::IA32_PAT);
        msr::write(msr::IA32_PAT, pat & !ENTRIES | 1 << 8 | 4 << 16);
    }
}

/// LFENCE waits for older instructions only with this bit set; AMD documents it since family 10h
/// (Software Techniques for Managing Speculation, mitigation G-2). Absent or fixed on some: no matter.
///
/// # Safety
/// Ring 0 on an AMD processor, interrupt table loaded.
unsafe fn serialise_lfence() {
    const LFENCE_SERIALISES: u64 = 1 << 1;
    // SAFETY: guarded, and the bit has no other effect.
    unsafe {
        if let Ok(value) = msr::try_read(msr::AMD_DE_CFG) {
            let _ = msr::try_write(msr::AMD_DE_CFG, value | LFENCE_SERIALISES);
        }
    }
}
