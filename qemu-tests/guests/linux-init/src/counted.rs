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

/// The branches among them: the loop's, and the system call.
pub fn region_branches(iterations: u64) -> u64 {
    iterations + 1
}

/// Bytes of [`region`], at most; what lies in them behind it is no loop.
const REGION_BYTES: u64 = 64;

/// The addresses between which [`region`] lies.
pub fn region_bounds() -> (u64, u64) {
    let begin = region as *const () as u64;
    (begin, begin + REGION_BYTES)
}

/// Switches the counter on, runs a loop, and switches it off.
#[inline(never)]
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

/// Bytes of a cache line.
const LINE: usize = 64;
/// Cache lines that [`stores`] writes to.
pub const LINES: usize = 4096;

#[repr(align(4096))]
struct Buffer([u8; LINE * LINES]);
static mut BUFFER: Buffer = Buffer([0; LINE * LINES]);

/// Switches the counter on, writes to each line of a buffer that was not used before, and switches the counter off.
pub fn stores(counter: i32) {
    // SAFETY: as in `region`; nothing else uses the buffer, which is as long as that.
    unsafe {
        asm!(
            "syscall",
            "2: mov byte ptr [{at}], 1",
            "add {at}, {line}",
            "dec {count}",
            "jnz 2b",
            "mov eax, {ioctl}",
            "mov esi, {disable}",
            "syscall",
            at = inout(reg) &raw mut BUFFER.0 => _,
            line = const LINE,
            count = inout(reg) LINES => _,
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

/// First arguments that make this file the counted program, with a long or a short loop.
pub const PROGRAM_NAME: &CStr = c"counted";
pub const SHORT_NAME: &CStr = c"short";
/// Iterations of its loop.
const ITERATIONS: u32 = 1_000_000;
/// Its instructions: four that look at the argument and set the count, the loop, and three to end.
pub const PROGRAM_INSTRUCTIONS: u64 = 4 + 2 * ITERATIONS as u64 + 3;
/// The same of the short one, which looks at the argument once more.
const SHORT_ITERATIONS: u32 = 997;
pub const SHORT_INSTRUCTIONS: u64 = 4 + 3 + 2 * SHORT_ITERATIONS as u64 + 3;
/// The short one's branches: JE, JNE, those of the loop, and SYSCALL.
pub const SHORT_BRANCHES: u64 = 2 + SHORT_ITERATIONS as u64 + 1;
/// The short one's loads: the pointer, and the letter twice.
pub const SHORT_LOADS: u64 = 3;

/// The entry point: `argc`, then the pointers to the arguments lie on the stack. The kernel calls the first program
/// `/init`; one that is called `counted` or `short` runs its loop and ends.
#[unsafe(no_mangle)]
#[unsafe(naked)]
extern "C" fn _start() -> ! {
    naked_asm!(
        "mov rax, [rsp + 8]",
        "cmp byte ptr [rax], 'c'",
        "mov ecx, {iterations}",
        "je 2f",
        "cmp byte ptr [rax], 's'",
        "mov ecx, {short_iterations}",
        "jne 3f",
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
        short_iterations = const SHORT_ITERATIONS,
        exit = const SYS_EXIT,
        main = sym crate::main,
    )
}
