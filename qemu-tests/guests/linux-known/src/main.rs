//! `linux-known PROGRAM ROUNDS`: programs for Linux whose instructions, branches and loads in user mode are counted by hand.
//!
//! What each of them executes is told in `qemu-tests/src/stock_linux/known.rs`, line by line of what is here: whoever
//! changes one changes the other. There is no C library: it would execute instructions that nobody has counted.
#![no_std]
#![no_main]

use core::arch::naked_asm;
use core::panic::PanicInfo;

/// The stack's red zone is not used, and nothing else lies below RSP: the strings are written there.
const STRING_BELOW_RSP: u32 = 512;
/// Bytes of a string: four cache lines, at whose beginning it lies.
const STRING_BYTES: u32 = 256;
const LINE: i32 = 64;
const SYS_EXIT: u32 = 60;

/// The entry point: `argc`, then the pointers to the arguments lie on the stack. The first letter of the first argument
/// names the program: `loop`, `calls`, and all others are `strings`. The second is the number of rounds, in decimal.
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn _start() -> ! {
    naked_asm!(
        "mov rsi, [rsp + 24]",
        "mov rdi, [rsp + 16]",
        "xor ecx, ecx",
        "2: movzx eax, byte ptr [rsi]",
        "sub eax, '0'",
        "js 3f",
        "imul rcx, rcx, 10",
        "add rcx, rax",
        "inc rsi",
        "jmp 2b",
        "3: mov al, [rdi]",
        "cmp al, 'l'",
        "je 4f",
        "cmp al, 'c'",
        "je 5f",
        "mov rdx, rcx",
        "6: lea rdi, [rsp - {below}]",
        "and rdi, {line}",
        "mov ecx, {bytes}",
        "rep stosb",
        "dec rdx",
        "jnz 6b",
        "jmp 8f",
        "4: mov rax, [rsp]",
        "dec rcx",
        "jnz 4b",
        "jmp 8f",
        "5: call 7f",
        "dec rcx",
        "jnz 5b",
        "8: mov eax, {exit}",
        "xor edi, edi",
        "syscall",
        "ud2",
        "7: ret",
        below = const STRING_BELOW_RSP,
        line = const -LINE,
        bytes = const STRING_BYTES,
        exit = const SYS_EXIT,
    )
}

#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    // Nothing here can fail.
    loop {
        core::hint::spin_loop();
    }
}
