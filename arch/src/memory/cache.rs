//! Emptying caches and TLB.

use core::arch::asm;
use x86_64::registers::control::{Cr3, Cr4, Cr4Flags};

/// Bytes of a cache line on every x86-64 processor so far; CLFLUSH of a smaller stride does no harm.
const LINE: u64 = 64;

/// Writes all caches back and empties them. A hypervisor may ignore it.
///
/// # Safety
/// Ring 0.
pub unsafe fn write_back_all() {
    // SAFETY: the caller's promise; memory keeps its content.
    unsafe { asm!("wbinvd", options(nostack, preserves_flags)) };
}

/// Flushes the lines of a range, and waits for it.
///
/// # Safety
/// The range must be mapped, and the processor have CLFLUSH.
pub unsafe fn flush(range: core::ops::Range<u64>) {
    let mut at = range.start & !(LINE - 1);
    while at < range.end {
        // SAFETY: the caller's promise; memory keeps its content.
        unsafe { asm!("clflush [{}]", in(reg) at, options(nostack, preserves_flags)) };
        at += LINE;
    }
    // SAFETY: waits.
    unsafe { asm!("mfence", options(nostack, preserves_flags)) };
}

/// Empties the TLB, global pages included: writing CR4.PGE does that (SDM vol. 3, 4.10.4.1).
///
/// # Safety
/// Ring 0.
pub unsafe fn flush_tlb() {
    let value = Cr4::read_raw();
    // SAFETY: CR4 ends as it was; CR3 is written with its own value.
    unsafe {
        if value & Cr4Flags::PAGE_GLOBAL.bits() != 0 {
            Cr4::write_raw(value & !Cr4Flags::PAGE_GLOBAL.bits());
            Cr4::write_raw(value);
        } else {
            let (frame, flags) = Cr3::read_raw();
            Cr3::write_raw(frame, flags);
        }
    }
}
