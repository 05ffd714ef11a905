//! The code. Each function's constant says how many instructions a call executes, RET among them and CALL not.

use crate::handlers::{
    BACK, DEVICE, DEVICE_INSTRUCTIONS, SKIP_THREE, SKIP_TWO, SKIP_TWO_WITH_ERROR,
};
use crate::machine::apic;
use core::arch::naked_asm;

macro_rules! code {
    ($name:ident, $count:expr, $($body:tt)*) => {
        pub mod $name {
            #[allow(unused_imports, reason = "some need nothing of it")]
            use super::*;
            pub const COUNT: u64 = $count;
            #[unsafe(naked)]
            pub extern "C" fn run() {
                naked_asm!($($body)*)
            }
        }
    };
}

code!(nothing, 1, "ret");
code!(straight, 101, ".rept 100", "nop", ".endr", "ret");
code!(
    mixed,
    9,
    "push rax",
    "mov rax, [rsp]",
    "lea rcx, [rax + 8]",
    "imul rcx, rcx",
    "xchg [rsp], rcx",
    "lock inc qword ptr [rsp]",
    "pop rax",
    "pause",
    "ret"
);
code!(
    calls,
    2 + 1000 * 4,
    "mov ecx, 1000",
    "2: call 3f",
    "dec ecx",
    "jnz 2b",
    "ret",
    "3: ret",
    "nop"
);
code!(undefined, 2 + 10 * (2 + SKIP_TWO), "mov ecx, 10", "2: ud2", "dec ecx", "jnz 2b", "ret");
code!(
    division,
    4 + 10 * (2 + SKIP_TWO),
    "mov ecx, 10",
    "xor esi, esi",
    "mov eax, 1",
    "2: div esi",
    "dec ecx",
    "jnz 2b",
    "ret"
);
code!(
    page_fault,
    3 + 10 * (2 + SKIP_THREE),
    "mov ecx, 10",
    "mov rsi, 0x1000",
    "2: mov rax, [rsi]",
    "dec ecx",
    "jnz 2b",
    "ret"
);
// The reload mask of counter 0, which no model has: #GP by the hypervisor.
code!(
    protection,
    2 + 10 * (3 + SKIP_TWO_WITH_ERROR),
    "mov r8d, 10",
    "2: mov ecx, 0x1902",
    "wrmsr",
    "dec r8d",
    "jnz 2b",
    "ret"
);
// Bit 0 of IA32_PEBS_INDEX is reserved.
code!(
    reserved,
    3 + 10 * (4 + SKIP_TWO_WITH_ERROR),
    "mov r8d, 10",
    "xor edx, edx",
    "2: mov ecx, 0x3f5",
    "mov eax, 1",
    "wrmsr",
    "dec r8d",
    "jnz 2b",
    "ret"
);
code!(software_interrupt, 2 + 10 * 4, "mov ecx, 10", "2: int {back}", "dec ecx", "jnz 2b", "ret", back = const BACK);
code!(breakpoint, 2 + 10 * 4, "mov ecx, 10", "2: int3", "dec ecx", "jnz 2b", "ret");
// The interrupt is taken as soon as it may: the store is to the APIC's command register.
code!(
    interrupts, 5 + 10 * (3 + DEVICE_INSTRUCTIONS),
    "mov ecx, 10", "movabs rsi, {command}", "sti",
    "2: mov dword ptr [rsi], {to_self}", "dec ecx", "jnz 2b", "cli", "ret",
    command = const apic(0x300), to_self = const 0x40000 | DEVICE as u32,
);
// The local APIC's timer, 100,000 nanoseconds from now, wakes it. MONITOR and MWAIT as bytes: the assembler's names for
// their operands differ.
code!(
    halted, 6 + DEVICE_INSTRUCTIONS,
    "movabs rsi, {count}", "mov dword ptr [rsi], 100000", "sti", "hlt", "cli", "ret",
    count = const apic(0x380),
);
code!(
    monitored, 10 + DEVICE_INSTRUCTIONS,
    "movabs rsi, {count}", "mov dword ptr [rsi], 100000", "lea rax, [rsp]", "xor ecx, ecx", "xor edx, edx",
    ".byte 0x0f, 0x01, 0xc8", "sti", ".byte 0x0f, 0x01, 0xc9", "cli", "ret",
    count = const apic(0x380),
);
code!(
    cpuid,
    4 + 10 * 4,
    "push rbx",
    "mov r8d, 10",
    "2: xor eax, eax",
    "cpuid",
    "dec r8d",
    "jnz 2b",
    "pop rbx",
    "ret"
);
code!(clock, 2 + 10 * 3, "mov r8d, 10", "2: rdtsc", "dec r8d", "jnz 2b", "ret");
code!(flags, 2 + 10 * 4, "mov ecx, 10", "2: pushfq", "popfq", "dec ecx", "jnz 2b", "ret");
// SS may be loaded with what it has: an interrupt shadow.
code!(
    shadow,
    3 + 10 * 4,
    "mov ecx, 10",
    "mov eax, ss",
    "2: mov ss, eax",
    "nop",
    "dec ecx",
    "jnz 2b",
    "ret"
);

macro_rules! loops {
    ($($name:ident = $count:literal),*) => {
        $(code!($name, 2 + 2 * $count, concat!("mov ecx, ", $count), "2: dec ecx", "jnz 2b", "ret");)*
    };
}
loops!(
    loop_1_000 = 1_000,
    loop_10_000 = 10_000,
    loop_100_000 = 100_000,
    loop_1_000_000 = 1_000_000,
    loop_10_000_000 = 10_000_000,
    loop_100_000_000 = 100_000_000
);
