//! Data accesses by direction.

use super::{Test, area};
use crate::machine::apic;
use core::arch::{asm, naked_asm};
use pmu_model::Occurrence::*;

/// Switches the vector instructions on: CR4.OSFXSR, OSXMMEXCPT and OSXSAVE; x87, SSE and AVX in XCR0.
pub fn enable() {
    // SAFETY: QEMU's processor has them all, and nothing else uses them.
    unsafe {
        asm!("mov {0}, cr4", "or {0}, 0x40600", "mov cr4, {0}", out(reg) _);
        asm!("xsetbv", in("ecx") 0, in("eax") 7, in("edx") 0);
    }
}

pub fn run() {
    enable();
    Test::new("plain", &[(Load, 1 + 3), (Store, 2), (LoadStore, 2), (Return, 1)], 11)
        .with(area(0))
        .at(plain)
        .run();
    Test::new("locked", &[(Load, 1), (LoadStore, 4), (Locked, 3), (Return, 1)], 5)
        .with(area(0))
        .at(locked)
        .run();
    Test::new("stack", &[(Load, 1 + 3), (Store, 4), (Return, 1)], 7).with(area(0)).at(stack).run();
    Test::new("single", &[(Load, 1 + 4), (Store, 2), (Return, 1)], 7)
        .with(area(0))
        .at(single)
        .run();
    Test::new("vector", &[(Load, 1 + 3), (Store, 3), (Return, 1)], 8)
        .with(area(0))
        .at(vector)
        .run();
    Test::new("areas", &[(Load, 1 + 2), (Store, 2), (Return, 1)], 5).with(area(0)).at(areas).run();
    Test::new("flush", &[(ClFlush, 2), (Load, 1), (Return, 1)], 3).with(area(0)).at(flush).run();
    // Ports end a block; the APIC's registers make QEMU begin in the middle of one anew.
    Test::new("port", &[(Load, 1 + 1), (Store, 1), (Return, 1)], 7).with(area(0)).at(port).run();
    Test::new(
        "mmio",
        &[
            (Load, 1 + 3 * 10),
            (Store, 2 * 10),
            (JccTakenBackward, 9),
            (JccNotTaken, 1),
            (Return, 1),
        ],
        3 + 10 * 8,
    )
    .fell_back(1)
    .with(area(0))
    .at(mmio)
    .run();
}

#[unsafe(naked)]
extern "C" fn plain() {
    naked_asm!(
        "mov rax, [rdi]",
        "mov [rdi + 8], rax",
        "add [rdi + 16], eax",
        "lea rdx, [rdi + 24]",
        "cmp [rdx], al",
        "inc byte ptr [rdx]",
        "mov byte ptr [rdi + 63], 3",
        "add eax, [rdi + 4]",
        "nop dword ptr [rdi]",
        "imul eax, eax",
        "ret",
    )
}

#[unsafe(naked)]
extern "C" fn locked() {
    naked_asm!(
        "lock inc qword ptr [rdi]",
        "xchg [rdi], eax",
        "lock cmpxchg [rdi + 8], ecx",
        "cmpxchg [rdi + 8], ecx",
        "ret",
    )
}

#[unsafe(naked)]
extern "C" fn stack() {
    naked_asm!("push [rdi]", "pop [rdi + 8]", "push rbp", "mov rbp, rsp", "push 3", "leave", "ret",)
}

#[unsafe(naked)]
extern "C" fn single() {
    naked_asm!("mov rsi, rdi", "cld", "movsb", "lodsb", "stosb", "cmpsb", "ret")
}

#[unsafe(naked)]
extern "C" fn vector() {
    naked_asm!(
        "movups xmm0, [rdi + 3]",
        "movups [rdi + 60], xmm0",
        "vmovups ymm0, [rdi + 33]",
        "vmovups [rdi + 65], ymm0",
        "nop",
        "movss xmm0, [rdi]",
        "movsd [rdi], xmm0",
        "ret",
    )
}

#[unsafe(naked)]
extern "C" fn areas() {
    naked_asm!(
        "fxsave64 [rdi]",
        "fxrstor64 [rdi]",
        "fld tbyte ptr [rdi]",
        "fstp tbyte ptr [rdi]",
        "ret",
    )
}

#[unsafe(naked)]
extern "C" fn flush() {
    naked_asm!("clflush [rdi]", "clflushopt [rdi + 64]", "ret")
}

#[unsafe(naked)]
extern "C" fn port() {
    naked_asm!(
        "mov rax, [rdi]",
        "mov edx, 0x3fd",
        "in al, dx",
        "mov [rdi], al",
        "out 0x80, al",
        "nop",
        "ret",
    )
}

#[unsafe(naked)]
extern "C" fn mmio() {
    naked_asm!(
        "mov ecx, 10",
        "movabs rsi, {id}",
        "2: mov rax, [rdi]",
        "mov edx, [rsi]",
        "mov [rdi + 8], edx",
        "mov [rsi + 0x60], edx",
        "add eax, [rdi]",
        "nop",
        "dec ecx",
        "jnz 2b",
        "ret",
        id = const apic(0x20),
    )
}
