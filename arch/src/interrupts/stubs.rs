//! The 256 entry points, 16 bytes apart, and their common tail.

use super::dispatch;
use core::arch::global_asm;

// Each stub leaves the stack as `TrapFrame` wants it up to the vector: the exceptions that push no error
// code (all but 8, 10 to 14, 17, 21, 29 and 30) push a zero in its place.
global_asm!(
    ".pushsection .text.barecount_stubs, \"ax\", @progbits",
    ".balign 16",
    ".global barecount_stubs",
    "barecount_stubs:",
    ".set vector, 0",
    ".rept 256",
    ".balign 16",
    ".if !(vector == 8 || (vector >= 10 && vector <= 14) || vector == 17 || vector == 21 || vector == 29 || vector == 30)",
    "push 0",
    ".else",
    // INT n of such a vector pushes none, nor does an interrupt from outside: an odd number of words is below the aligned
    // top then. All ones in its place, which no error code is.
    "test spl, 8",
    "jz 2f",
    "push -1",
    "2:",
    ".endif",
    "push vector",
    "jmp {common}",
    ".set vector, vector + 1",
    ".endr",
    ".popsection",
    common = sym common,
);

unsafe extern "C" {
    static barecount_stubs: u8;
}

/// Address of the entry point of `vector`.
pub(super) fn address(vector: u8) -> u64 {
    (&raw const barecount_stubs) as u64 + 16 * u64::from(vector)
}

/// Saves the registers, calls [`dispatch`], and returns to where the frame then says.
#[unsafe(naked)]
extern "C" fn common() {
    core::arch::naked_asm!(
        "push rax", "push rbx", "push rcx", "push rdx", "push rsi", "push rdi", "push rbp",
        "push r8", "push r9", "push r10", "push r11", "push r12", "push r13", "push r14", "push r15",
        // The interrupted code may have set DF; the ABI wants it clear.
        "cld",
        "mov rdi, rsp",
        // The processor aligned the stack to 16 before pushing 5 words; with 17 of ours that makes 22.
        "call {dispatch}",
        "pop r15", "pop r14", "pop r13", "pop r12", "pop r11", "pop r10", "pop r9", "pop r8",
        "pop rbp", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rbx", "pop rax",
        "add rsp, 16",
        "iretq",
        dispatch = sym dispatch,
    )
}
