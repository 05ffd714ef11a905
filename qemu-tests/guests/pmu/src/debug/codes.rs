//! The codes, with a label wherever an exception is expected.

use crate::handlers::{BACK, DEVICE, LEAVE};
use crate::machine::apic;
use core::arch::global_asm;
use core::sync::atomic::AtomicU64;

/// What is watched.
#[repr(align(64))]
pub struct Watched(#[allow(dead_code, reason = "the codes touch it")] [u64; 8]);
pub static mut VARIABLE: Watched = Watched([0; 8]);
#[repr(align(64))]
pub struct Stack(#[allow(dead_code, reason = "as above")] [u64; 64]);
/// Its top is its end.
pub static mut FRAME: Stack = Stack([0; 64]);
/// A stack across the end of a page.
#[repr(align(4096))]
pub struct Pages(#[allow(dead_code, reason = "as above")] [u64; 1024]);
pub static mut PAGES: Pages = Pages([0; 1024]);
/// RSP in there.
pub static STACK_AT: AtomicU64 = AtomicU64::new(0);
/// What a code has read of the debug registers, and of flags.
pub static SEEN: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

macro_rules! labels {
    ($($label:ident)*) => {
        unsafe extern "C" { $(pub static $label: u8;)* }
    };
}

labels!(
    steps_code steps_1 steps_2 steps_3 steps_4 steps_5
    block_code block_1 block_2 block_3 block_4 block_5
    emulated_code emulated_1 emulated_2 emulated_3 emulated_4 emulated_5 emulated_6 emulated_7 emulated_8
    software_code software_1 software_2 software_3 software_4
    shadow_code shadow_1 shadow_2 shadow_3 shadow_4 shadow_5 shadow_6 shadow_7
    repeated_code repeated repeated_1 repeated_2 repeated_3 repeated_4
    flags_code breaks_code breaks_x special_code special_0 special_1 special_2 special_3 icebp_code icebp_1
    behind_ss_code behind_ss_0 behind_ss_1 behind_ss_2
    met_code met met_repeated_code
    watched_code watched_1 watched_2 stored_code stored stored_1
    stack_segment_code stack_segment_1 pushed_code
    detected_code detected registers_code
    user_code user_break user_break_x user_steps user_steps_1 user_steps_2
);

global_asm!(
    ".macro flag_on", "pushfq", "or qword ptr [rsp], 0x100", "popfq", ".endm",
    ".pushsection .text.debug, \"ax\"",
    // 9
    "steps_code: flag_on",
    "nop", "steps_1: nop", "steps_2: pushfq", "steps_3: and qword ptr [rsp], ~0x100", "steps_4: popfq",
    "steps_5: ret",
    // 14: DEBUGCTL.BTF, which the first exception clears.
    "block_code: mov ecx, 0x1d9", "mov eax, 2", "xor edx, edx", "wrmsr", "flag_on",
    "nop", "jmp block_1", "nop", "block_1: nop",
    "block_2: pushfq", "block_3: and qword ptr [rsp], ~0x100", "block_4: popfq", "block_5: ret",
    // 16
    "emulated_code: push rbx", "xor eax, eax", "xor ecx, ecx", "flag_on",
    "cpuid", "emulated_1: xor ecx, ecx", "emulated_2: rdpmc", "emulated_3: mov rax, dr7",
    "emulated_4: mov dr0, rax",
    "emulated_5: pushfq", "emulated_6: and qword ptr [rsp], ~0x100", "emulated_7: popfq",
    "emulated_8: pop rbx", "ret",
    // 10, and one of the handler is among them
    "software_code: flag_on",
    "int {back}", "nop", "software_1: pushfq", "software_2: and qword ptr [rsp], ~0x100", "software_3: popfq",
    "software_4: ret",
    // 12
    "shadow_code: flag_on",
    "mov eax, ss", "shadow_1: mov ss, eax", "nop", "shadow_2: sti", "shadow_3: cli",
    "shadow_4: pushfq", "shadow_5: and qword ptr [rsp], ~0x100", "shadow_6: popfq",
    "shadow_7: ret",
    // 11
    "repeated_code: lea rdi, [rip + {variable}]", "mov rsi, rdi", "mov ecx, 3", "flag_on",
    "repeated: rep movsb", "repeated_1: pushfq", "repeated_2: and qword ptr [rsp], ~0x100", "repeated_3: popfq",
    "repeated_4: ret",
    // 8
    "flags_code: mov rdx, rsp", "mov rsp, [rip + {stack_at}]", "nop", "pushfq", "pop rax", "mov rsp, rdx",
    "mov [rip + {seen}], rax", "ret",
    // 2 and 40
    "breaks_code: mov ecx, 10",
    "2: nop", "breaks_x: nop", "dec ecx", "jnz 2b", "ret",
    // 11, one of the handler among them
    "special_code: lea rdi, [rip + {variable}]", "mov ecx, 5", "xor eax, eax",
    "special_0: rep stosb", "special_1: int {back}", "mov eax, ss", "special_2: mov ss, eax",
    "nop", "special_3: rdpmc", "ret",
    // 7 and 8, and the device's handler: the interrupt comes in front of the instruction after the store.
    "met_code: movabs rsi, {command}", "sti", "nop", "mov dword ptr [rsi], {to_self}", "met: nop", "cli", "ret",
    "met_repeated_code: lea rdi, [rip + {variable}]", "movabs rsi, {command}", "mov ecx, 5", "sti",
    "mov dword ptr [rsi], {to_self}", "rep stosb", "cli", "ret",
    // 5
    "behind_ss_code: mov eax, ss", "behind_ss_0: mov ss, eax", "behind_ss_1: nop", "behind_ss_2: nop", "ret",
    // 3
    "icebp_code: nop", ".byte 0xf1", "icebp_1: ret",
    // 3 and 60
    "watched_code: lea rdi, [rip + {variable}]", "mov ecx, 10",
    "2: mov [rdi], rax", "watched_1: mov rax, [rdi]", "mov eax, [rdi + 8]", "watched_2: mov [rdi + 12], eax",
    "dec ecx", "jnz 2b", "ret",
    // 6
    "stored_code: lea rdi, [rip + {variable}]", "mov ecx, 8", "xor eax, eax",
    "stored: rep stosb", "stored_1: nop", "ret",
    // 5
    "stack_segment_code: lea rdi, [rip + {variable}]", "nop", "mov ss, [rdi]", "nop", "stack_segment_1: ret",
    // 8, one of the handler among them
    "pushed_code: mov rdx, rsp", "lea rsp, [rip + {frame} + 512]", "nop", "int {back}", "nop",
    "mov rsp, rdx", "ret",
    // 8
    "detected_code: mov eax, 0x2400", "mov dr7, rax",
    "detected: mov rax, dr0", "mov [rip + {seen}], rax", "mov rax, dr7", "mov [rip + {seen} + 8], rax",
    "nop", "ret",
    "registers_code:",
    "mov eax, 0x1111", "mov dr0, rax", "mov eax, 0x2222", "mov dr1, rax",
    "mov eax, 0x3333", "mov dr2, rax", "mov eax, 0x4444", "mov dr3, rax",
    "mov eax, 0x400f", "mov dr6, rax", "mov eax, 0xd800", "mov dr7, rax",
    "mov rax, dr0", "mov [rip + {seen}], rax", "mov rax, dr1", "mov [rip + {seen} + 8], rax",
    "mov rax, dr2", "mov [rip + {seen} + 16], rax", "mov rax, dr3", "mov [rip + {seen} + 24], rax",
    "mov rax, dr6", "mov [rip + {seen} + 32], rax", "mov rax, dr7", "mov [rip + {seen} + 40], rax",
    // DR4 and DR5 are other names of these without CR4.DE.
    "mov rax, dr4", "mov [rip + {seen} + 48], rax", "mov rax, dr5", "mov [rip + {seen} + 56], rax",
    "ret",
    ".balign 4096",
    "user_code:",
    // 2 and 30
    "user_break: mov ecx, 10",
    "user_break_x: nop", "dec ecx", "jnz user_break_x", "int {leave}",
    // 6: the system call is one step.
    "user_steps: flag_on", "syscall", "user_steps_1: nop", "user_steps_2: int {leave}",
    ".balign 4096",
    ".popsection",
    back = const BACK, command = const apic(0x300), to_self = const 0x40000 | DEVICE as u32, leave = const LEAVE,
    variable = sym VARIABLE, frame = sym FRAME, seen = sym SEEN, stack_at = sym STACK_AT,
);

/// Instructions of `registers_code`.
pub const fn registers_count() -> u64 {
    12 + 16 + 1
}
