//! Into the guest and back.

use core::arch::naked_asm;
use core::mem::offset_of;
use emulated_pmu::vmcb::Vmcb;

/// The guest's general registers; RAX and RSP are in the VMCB.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Registers {
    pub rcx: u64,
    pub rdx: u64,
    pub rbx: u64,
    pub rbp: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

/// Instructions from the exit to the RDTSC after it, which is one of them: PUSH, 14 MOVs, POP, MOV.
pub const AFTER_EXIT: u64 = 18;

/// How long the guest ran.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Ran {
    /// How far the TSC advanced from just before VMRUN to just after it: the guest's instructions, and a fixed number of our own
    /// that [`super::icount`] measures.
    pub ticks: u64,
    /// The TSC [`AFTER_EXIT`] instructions after the exit.
    pub left: u64,
}

/// Runs the guest until its next exit.
///
/// With `alarm_ns` other than 0 the alarm clock is set to ring not later than so many nanoseconds of the TSC after it is
/// read, a fixed number of instructions before VMRUN, which is measured as well.
///
/// # Safety
/// SVM on, GIF 0, the hypervisor's tables loaded; `vmcb` a valid block at its physical address.
#[unsafe(naked)]
pub unsafe extern "sysv64" fn enter(
    registers: *mut Registers,
    vmcb: *mut Vmcb,
    alarm_ns: u64,
) -> Ran {
    naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "push rdi",
        "push rsi",
        "test rdx, rdx",
        "jz 2f",
        "mov rcx, rdx",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "add rax, rcx",
        "sub rax, [rip + {origin}]",
        "xor edx, edx",
        "div qword ptr [rip + {tick}]",
        "mov rcx, [rip + {comparator}]",
        "mov [rcx], rax",
        "2:",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "push rax",
        // The guest's TSC continues from where it stood.
        "mov rcx, [rip + {now}]",
        "sub rcx, rax",
        "and rcx, [rip + {own}]",
        "add rcx, [rip + {nested}]",
        "mov [rsi + {offset}], rcx",
        "mov rcx, [rdi]",
        "mov rdx, [rdi + 8]",
        "mov rbx, [rdi + 16]",
        "mov rbp, [rdi + 24]",
        "mov rsi, [rdi + 32]",
        "mov r8, [rdi + 48]",
        "mov r9, [rdi + 56]",
        "mov r10, [rdi + 64]",
        "mov r11, [rdi + 72]",
        "mov r12, [rdi + 80]",
        "mov r13, [rdi + 88]",
        "mov r14, [rdi + 96]",
        "mov r15, [rdi + 104]",
        "mov rdi, [rdi + 40]",
        "mov rax, [rsp + 8]",
        "vmrun rax",
        "push rdi",
        "mov rdi, [rsp + 24]",
        "mov [rdi], rcx",
        "mov [rdi + 8], rdx",
        "mov [rdi + 16], rbx",
        "mov [rdi + 24], rbp",
        "mov [rdi + 32], rsi",
        "mov [rdi + 48], r8",
        "mov [rdi + 56], r9",
        "mov [rdi + 64], r10",
        "mov [rdi + 72], r11",
        "mov [rdi + 80], r12",
        "mov [rdi + 88], r13",
        "mov [rdi + 96], r14",
        "mov [rdi + 104], r15",
        "pop rax",
        "mov [rdi + 40], rax",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "mov rdx, rax",
        "pop rcx",
        "sub rax, rcx",
        "pop rsi",
        "pop rdi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        now = sym super::clock::NOW,
        own = sym super::clock::OWN,
        nested = sym super::clock::NESTED_OFFSET,
        offset = const offset_of!(Vmcb, tsc_offset),
        origin = sym super::hpet::ORIGIN,
        tick = sym super::hpet::TICK,
        comparator = sym super::hpet::COMPARATOR,
    )
}
