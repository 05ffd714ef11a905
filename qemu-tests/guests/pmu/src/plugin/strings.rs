//! Repeated string instructions: QEMU's clock counts each start and each further iteration.

use super::{AREA, Test, area};
use core::arch::naked_asm;
use pmu_model::Occurrence::*;

pub fn run() {
    // 100 iterations and the look at the count that ends it. 100 bytes from a line's start on are in 2 lines.
    Test::new("stos", &[(Return, 1), (Load, 1), (Store, 2)], 5)
        .strings(101, 1)
        .with(area(0))
        .at(stos)
        .run();
    Test::new("none", &[(Return, 1), (Load, 1)], 5).strings(1, 1).with(area(0)).at(none).run();
    // 25 elements of 8 bytes: 200 bytes in 4 lines, each read and written.
    Test::new("movs", &[(Return, 1), (Load, 1 + 4), (Store, 4)], 5)
        .strings(26, 1)
        .with(area(0))
        .at(movs)
        .run();
    // The bytes differ in the 70th: it ends there, without another look at the count. Both operands are read, in 2 lines.
    // SAFETY: the area is this group's, and one processor runs.
    unsafe { AREA.0[1024 + 69] = AREA.0[69] ^ 1 };
    Test::new("cmps", &[(Return, 1), (Load, 1 + 4)], 5).strings(70, 1).with(area(0)).at(cmps).run();
    // Backward from the last byte of a line, over two.
    Test::new("down", &[(Return, 1), (Load, 1), (Store, 2)], 7)
        .strings(101, 1)
        .with(area(127))
        .at(down)
        .run();
    // In a loop.
    Test::new(
        "again",
        &[(JccTakenBackward, 9), (JccNotTaken, 1), (Return, 1), (Load, 1), (Store, 10)],
        4 + 50,
    )
    .fell_back(1)
    .strings(10 * 5, 10)
    .with(area(0))
    .at(again)
    .run();
}

#[unsafe(naked)]
extern "C" fn stos() {
    naked_asm!("mov ecx, 100", "xor eax, eax", "rep stosb", "nop", "ret")
}

#[unsafe(naked)]
extern "C" fn none() {
    naked_asm!("xor ecx, ecx", "xor eax, eax", "rep stosb", "nop", "ret")
}

#[unsafe(naked)]
extern "C" fn movs() {
    naked_asm!("lea rsi, [rdi + 2048]", "mov ecx, 25", "rep movsq", "nop", "ret")
}

#[unsafe(naked)]
extern "C" fn cmps() {
    naked_asm!("lea rsi, [rdi + 1024]", "mov ecx, 100", "repe cmpsb", "nop", "ret")
}

#[unsafe(naked)]
extern "C" fn down() {
    naked_asm!("std", "mov ecx, 100", "xor eax, eax", "rep stosb", "cld", "nop", "ret")
}

#[unsafe(naked)]
extern "C" fn again() {
    naked_asm!(
        "mov rdx, rdi",
        "xor eax, eax",
        "mov r8d, 10",
        "2: mov rdi, rdx",
        "mov ecx, 4",
        "rep stosq",
        "dec r8d",
        "jnz 2b",
        "ret",
    )
}
