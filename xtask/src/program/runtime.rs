//! The four functions that compilers call without being told to: `memcpy`, `memmove`, `memset`, `memcmp`, and `bcmp`.
//!
//! They are linked only where no file has its own. Each is as short as string instructions make it: a repeated one counts
//! as one instruction.

use super::cache;
use super::error::ProgramError;
use crate::job::assemble;
use std::path::PathBuf;

/// System V calling convention: RDI, RSI and RDX in, RAX out; the direction flag is clear between calls.
const TEXT: &str = r#"
    .section .text.memcpy,"ax",@progbits
    .globl memcpy; .type memcpy,@function
memcpy:
    mov rax, rdi
    mov rcx, rdx
    rep movsb
    ret
    .size memcpy, . - memcpy

    .section .text.memmove,"ax",@progbits
    .globl memmove; .type memmove,@function
memmove:
    mov rax, rdi
    mov rcx, rdx
    mov r8, rdi
    sub r8, rsi
    cmp r8, rdx
    jb 1f
    rep movsb
    ret
1:  lea rdi, [rdi + rdx - 1]
    lea rsi, [rsi + rdx - 1]
    std
    rep movsb
    cld
    ret
    .size memmove, . - memmove

    .section .text.memset,"ax",@progbits
    .globl memset; .type memset,@function
memset:
    mov r8, rdi
    mov eax, esi
    mov rcx, rdx
    rep stosb
    mov rax, r8
    ret
    .size memset, . - memset

    .section .text.memcmp,"ax",@progbits
    .globl memcmp, bcmp; .type memcmp,@function; .type bcmp,@function
memcmp:
bcmp:
    xor eax, eax
    mov rcx, rdx
    cmp rax, rax
    repe cmpsb
    je 2f
    movzx eax, byte ptr [rdi - 1]
    movzx ecx, byte ptr [rsi - 1]
    sub eax, ecx
2:  ret
    .size memcmp, . - memcmp
    .size bcmp, . - bcmp
"#;

/// The object file that has them, assembled once.
pub(super) fn object() -> Result<PathBuf, ProgramError> {
    cache::file(cache::key([TEXT.as_bytes()]), "o", |to| {
        let object = assemble::object(TEXT).map_err(ProgramError::Tool)?;
        std::fs::write(to, object).map_err(|error| ProgramError::Tool(error.to_string()))
    })
}
