//! The functions that compilers call for copies and comparisons of memory, which are a C library's elsewhere.
//!
//! In assembly, because a loop that copies would be compiled to a call of `memcpy`, and as string instructions, which cost
//! the same few instructions for any size: what a benchmark counts is its own work, and not that of one library's `memcpy`.
//! On silicon they are as fast as the processor's microcode for them. Comparisons go byte by byte.

use core::arch::naked_asm;

/// Copies `bytes` bytes that do not overlap.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    naked_asm!("mov rax, rdi", "mov rcx, rdx", "rep movsb", "ret")
}

/// Copies `bytes` bytes that may overlap: from the end where the start of the source would be overwritten.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    naked_asm!(
        "mov rax, rdi",
        "mov rcx, rdx",
        "mov r8, rdi",
        "sub r8, rsi",
        "cmp r8, rdx",
        "jb 2f",
        "rep movsb",
        "ret",
        "2: lea rsi, [rsi + rdx - 1]",
        "lea rdi, [rdi + rdx - 1]",
        "std",
        "rep movsb",
        "cld",
        "ret",
    )
}

/// Fills `bytes` bytes.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    naked_asm!("mov r8, rdi", "mov eax, esi", "mov rcx, rdx", "rep stosb", "mov rax, r8", "ret")
}

/// Compares `bytes` bytes.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, bytes: usize) -> i32 {
    naked_asm!(
        "xor ecx, ecx",
        "2: cmp rcx, rdx",
        "je 3f",
        "movzx eax, byte ptr [rdi + rcx]",
        "movzx r8d, byte ptr [rsi + rcx]",
        "inc rcx",
        "sub eax, r8d",
        "je 2b",
        "ret",
        "3: xor eax, eax",
        "ret",
    )
}

/// Compares `bytes` bytes for equality alone.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, bytes: usize) -> i32 {
    naked_asm!("jmp {memcmp}", memcmp = sym memcmp)
}

/// Bytes before the first that is zero.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(text: *const u8) -> usize {
    naked_asm!(
        "xor eax, eax",
        "2: cmp byte ptr [rdi + rax], 0",
        "je 3f",
        "inc rax",
        "jmp 2b",
        "3: ret",
    )
}
