//! Code whose instructions in user mode are counted by hand.
//!
//! A SYSCALL instruction begins in user mode and is counted there: the last one is among the million of V. Weaver's
//! program `million`, with which he compared processors. The SYSRET that leads back is the kernel's.

use core::arch::{asm, naked_asm};
use core::ffi::CStr;

/// `_IO('$', 0)` and `_IO('$', 1)`.
const ENABLE: u32 = 0x2400;
const DISABLE: u32 = 0x2401;
const SYS_IOCTL: u32 = 16;
const SYS_EXIT: u32 = 60;

/// Instructions that [`region`] executes between the two system calls, the second among them.
pub fn region_instructions(iterations: u64) -> u64 {
    2 * iterations + 3
}

/// Switches the counter on, runs a loop, and switches it off.
pub fn region(counter: i32, iterations: u64) {
    // SAFETY: two system calls that take a descriptor and have no pointer; SYSCALL overwrites RCX and R11.
    unsafe {
        asm!(
            "syscall",
            "2: dec {count}",
            "jnz 2b",
            "mov eax, {ioctl}",
            "mov esi, {disable}",
            "syscall",
            count = inout(reg) iterations => _,
            ioctl = const SYS_IOCTL,
            disable = const DISABLE,
            inout("eax") SYS_IOCTL => _,
            in("edi") counter,
            inout("esi") ENABLE => _,
            in("edx") 0,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
}

/// First argument that makes this file the counted program.
pub const PROGRAM_NAME: &CStr = c"counted";
/// Iterations of its loop.
const ITERATIONS: u32 = 1_000_000;
/// Its instructions: three that look at the argument, the loop with its start, and three to end.
pub const PROGRAM_INSTRUCTIONS: u64 = 3 + 1 + 2 * ITERATIONS as u64 + 3;

/// The entry point: `argc`, then the pointers to the arguments lie on the stack. The kernel calls the first program
/// `/init`; one that is called `counted` runs its loop and ends.
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn _start() -> ! {
    naked_asm!(
        "mov rax, [rsp + 8]",
        "cmp byte ptr [rax], 'c'",
        "jne 3f",
        "mov ecx, {iterations}",
        "2: dec ecx",
        "jnz 2b",
        "mov eax, {exit}",
        "xor edi, edi",
        "syscall",
        "ud2",
        "3: xor ebp, ebp",
        "and rsp, -16",
        "call {main}",
        "ud2",
        iterations = const ITERATIONS,
        exit = const SYS_EXIT,
        main = sym crate::main,
    )
}
