//! The functions that compilers call without being told to: `memcpy`, `memmove`, `memset`, `memcmp`, and `bcmp`; and what C++
//! compilers refer to in every class with virtual functions, and for objects with static storage.
//!
//! They are linked only where no file has its own: all are weak, as a file may have one and need another. The first five are as
//! short as string instructions make them: a repeated one counts as one instruction. Destructors of static objects are not
//! run, as nothing ends a program here; what deletes memory that nobody allocated ends the item.

use super::cache;
use super::error::ProgramError;
use crate::job::assemble;
use std::path::PathBuf;

/// System V calling convention: RDI, RSI and RDX in, RAX out; the direction flag is clear between calls. The names that begin with
/// `__cxa` are those of the Itanium C++ ABI (2.8, 3.2.6, 3.3.3, 3.3.6); a guard's first byte says that its object is there.
const TEXT: &str = r#"
    .section .text.memcpy,"ax",@progbits
    .weak memcpy; .type memcpy,@function
memcpy:
    mov rax, rdi
    mov rcx, rdx
    rep movsb
    ret
    .size memcpy, . - memcpy

    .section .text.memmove,"ax",@progbits
    .weak memmove; .type memmove,@function
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
    .weak memset; .type memset,@function
memset:
    mov r8, rdi
    mov eax, esi
    mov rcx, rdx
    rep stosb
    mov rax, r8
    ret
    .size memset, . - memset

    .section .text.memcmp,"ax",@progbits
    .weak memcmp, bcmp; .type memcmp,@function; .type bcmp,@function
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

    .section .text.__cxa_pure_virtual,"ax",@progbits
    .weak __cxa_pure_virtual; .type __cxa_pure_virtual,@function
__cxa_pure_virtual:
    ud2
    .size __cxa_pure_virtual, . - __cxa_pure_virtual

    .section .text.__cxa_atexit,"ax",@progbits
    .weak __cxa_atexit, atexit; .type __cxa_atexit,@function; .type atexit,@function
__cxa_atexit:
atexit:
    xor eax, eax
    ret
    .size __cxa_atexit, . - __cxa_atexit
    .size atexit, . - atexit

    .section .text.__cxa_guard_acquire,"ax",@progbits
    .weak __cxa_guard_acquire; .type __cxa_guard_acquire,@function
__cxa_guard_acquire:
    xor eax, eax
    cmp byte ptr [rdi], 0
    sete al
    ret
    .size __cxa_guard_acquire, . - __cxa_guard_acquire

    .section .text.__cxa_guard_release,"ax",@progbits
    .weak __cxa_guard_release; .type __cxa_guard_release,@function
__cxa_guard_release:
    mov byte ptr [rdi], 1
    ret
    .size __cxa_guard_release, . - __cxa_guard_release

    .section .text._ZdlPv,"ax",@progbits
    .weak _ZdlPv, _ZdlPvm, _ZdaPv, _ZdaPvm
    .type _ZdlPv,@function; .type _ZdlPvm,@function; .type _ZdaPv,@function; .type _ZdaPvm,@function
_ZdlPv:
_ZdlPvm:
_ZdaPv:
_ZdaPvm:
    test rdi, rdi
    jnz 1f
    ret
1:  ud2
    .size _ZdlPv, . - _ZdlPv
    .size _ZdlPvm, . - _ZdlPvm
    .size _ZdaPv, . - _ZdaPv
    .size _ZdaPvm, . - _ZdaPvm

    .section .rodata.__dso_handle,"a",@progbits
    .weak __dso_handle; .hidden __dso_handle; .type __dso_handle,@object
__dso_handle:
    .quad 0
    .size __dso_handle, . - __dso_handle
"#;

/// The object file that has them, assembled once.
pub(super) fn object() -> Result<PathBuf, ProgramError> {
    cache::file(cache::key([TEXT.as_bytes()]), "o", |to| {
        let object = assemble::object(TEXT).map_err(ProgramError::Tool)?;
        std::fs::write(to, object).map_err(|error| ProgramError::Tool(error.to_string()))
    })
}
