//! The way in.

use super::launch;
use core::arch::naked_asm;

/// The ELF file's entry point: `handover::Entry`.
///
/// Puts the caller's registers on its stack and prepares a guest that finds them there at `resume`. From the first
/// entry of that guest on, the caller is the guest.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub extern "sysv64" fn _start() -> u64 {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "pushfq",
        "cli",
        "lea rsi, [rip + 2f]",
        "mov rdx, rsp",
        // With 7 words of ours and the return address the stack is aligned to 16 again.
        "call {prepare}",
        "test rax, rax",
        "jz 1f",
        // A copy for another processor: the call comes back.
        "cmp rax, {prepared}",
        "je 2f",
        "jmp 3f",
        // The hypervisor's own stack; the call does not return.
        "1: lea rsp, [rip + {stack} + {stack_bytes}]",
        "xor ebp, ebp",
        "call {go}",
        "ud2",
        // The guest begins here, on its own stack.
        "2:",
        "xor eax, eax",
        "3:",
        "popfq",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        prepare = sym launch::prepare,
        prepared = const launch::PREPARED,
        go = sym launch::go,
        stack = sym super::tables::STACK,
        stack_bytes = const super::tables::STACK_BYTES,
    )
}
