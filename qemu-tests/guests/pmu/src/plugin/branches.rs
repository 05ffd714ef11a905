//! Branches of each kind.

use super::Test;
use core::arch::naked_asm;
use pmu_model::Occurrence::*;

pub fn run() {
    Test::new("nothing", &[(Return, 1), (Load, 1)], 1).at(nothing).run();
    Test::new(
        "kinds",
        &[
            (JccTakenForward, 5),
            (JccTakenBackward, 9),
            (JccNotTaken, 6),
            (RelativeJump, 10),
            (RelativeCall, 10),
            (IndirectCall, 10),
            (IndirectJump, 10),
            (Return, 21),
            (Load, 21),
            (Store, 20),
        ],
        // 12 in each turn, the NOP in every second one, MOV and RET.
        10 * 12 + 5 + 2,
    )
    .fell_back(1)
    .at(kinds)
    .run();
    // IRET's loads count as the decoder has them: see the test of the facts.
    Test::new("far", &[(FarBranch, 1), (Return, 1), (Store, 5), (Load, 1 + 5)], 9).at(far).run();
    // A jump to the next instruction is taken by its condition, which the exit behind it tells.
    Test::new("next", &[(JccTakenForward, 2), (JccNotTaken, 1), (Return, 1), (Load, 1)], 5)
        .at(next)
        .run();
}

#[unsafe(naked)]
extern "C" fn nothing() {
    naked_asm!("ret")
}

#[unsafe(naked)]
extern "C" fn kinds() {
    naked_asm!(
        "mov ecx, 10",
        "2: test ecx, 1",
        "jz 3f",
        "nop",
        "3: jmp 4f",
        "nop",
        "4: call 5f",
        "lea rax, [rip + 5f]",
        "call rax",
        "lea rax, [rip + 7f]",
        "jmp rax",
        "nop",
        "7: dec ecx",
        "jnz 2b",
        "ret",
        "5: ret",
    )
}

#[unsafe(naked)]
extern "C" fn far() {
    naked_asm!(
        "mov rax, rsp",
        "push 16",
        "push rax",
        "pushfq",
        "push 8",
        "lea rax, [rip + 2f]",
        "push rax",
        "iretq",
        "2: ret",
    )
}

#[unsafe(naked)]
extern "C" fn next() {
    // JE twice, and JNE.
    naked_asm!("xor eax, eax", ".byte 0x74, 0", ".byte 0x74, 0", ".byte 0x75, 0", "ret")
}
