//! The guest's vector registers, which are in the processor: the hypervisor's code uses none.

use super::port::cpuid;
use core::arch::asm;

/// Where FXSAVE puts XMM0, in words (SDM vol. 1, 10.5.1).
const XMM: usize = 160 / 8;
/// CR0.EM and TS, with which FXSAVE raises an exception; CR4.OSFXSR, without which it leaves the vectors out.
const CR0_TRAPS: u64 = 1 << 2 | 1 << 3;
const CR4_OSFXSR: u64 = 1 << 9;

/// Assembly between the guest's own CR0 and CR4, with a bit of CR4 set and nothing in CR0 that traps. Both are restored before
/// anything else runs.
macro_rules! with_cr4 {
    ($bit:ident, [$($line:literal),* $(,)?], $($operands:tt)*) => {
        asm!(
            "mov {cr0}, cr0",
            "mov {cr4}, cr4",
            "mov {with}, {cr0}",
            "and {with}, {untrapped}",
            "mov cr0, {with}",
            "mov {with}, {cr4}",
            "or {with}, {bit}",
            "mov cr4, {with}",
            $($line,)*
            "mov cr4, {cr4}",
            "mov cr0, {cr0}",
            cr0 = out(reg) _,
            cr4 = out(reg) _,
            with = out(reg) _,
            untrapped = const !(CR0_TRAPS as i32),
            bit = const $bit as i32,
            $($operands)*
        )
    };
}

/// What FXSAVE writes.
#[repr(C, align(16))]
struct Saved([u64; 64]);

/// The guest's XMM0 to XMM15, two words each: the hypervisor's code uses none of them, so they are still there.
pub fn vectors() -> [u64; 32] {
    let mut saved = Saved([0; 64]);
    // SAFETY: the control registers are restored before anything else runs; FXSAVE writes 512 bytes at an address that is
    // a multiple of 16.
    unsafe {
        with_cr4!(
            CR4_OSFXSR,
            ["fxsave64 [{at}]"],
            at = in(reg) saved.0.as_mut_ptr(),
            options(nostack),
        );
    }
    let mut vectors = [0; 32];
    vectors.copy_from_slice(&saved.0[XMM..XMM + 32]);
    vectors
}

/// CPUID leaf 1 ECX: XSAVE and AVX. CR4.OSXSAVE, without which neither XGETBV nor AVX is there. XCR0: the states of SSE and of AVX.
const XSAVE_AND_AVX: u32 = 1 << 26 | 1 << 28;
const CR4_OSXSAVE: u64 = 1 << 18;
const XCR0_AVX: u32 = 0b110;

/// Whether the machine has AVX, so that the upper halves of YMM registers are there.
pub fn has_avx() -> bool {
    cpuid(1, 0).ecx & XSAVE_AND_AVX == XSAVE_AND_AVX
}

/// The upper halves of the guest's YMM0 to YMM15, two words each; `None` if it has not enabled AVX in XCR0. As with XMM, the
/// hypervisor's code uses neither the registers nor XCR0: both are still the guest's.
pub fn upper_halves() -> Option<[u64; 32]> {
    if !has_avx() {
        return None;
    }
    let mut halves = [0; 32];
    let states: u32;
    // SAFETY: the processor has XSAVE and AVX, so that CR4.OSXSAVE can be set; the control registers are restored before anything
    // else runs. The instructions of AVX are reached where XCR0 has its state on, and write 16 times 16 bytes at any alignment.
    unsafe {
        with_cr4!(
            CR4_OSXSAVE,
            [
                "xor ecx, ecx",
                "xgetbv",
                "and eax, {avx}",
                "cmp eax, {avx}",
                "jne 2f",
                ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
                "vextractf128 xmmword ptr [{at} + 16 * \\n], ymm\\n, 1",
                ".endr",
                "2:",
            ],
            avx = const XCR0_AVX,
            at = in(reg) halves.as_mut_ptr(),
            out("eax") states,
            out("ecx") _,
            out("edx") _,
            options(nostack),
        );
    }
    (states == XCR0_AVX).then_some(halves)
}
