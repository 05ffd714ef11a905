//! Handlers. What they execute is counted like the program's own code.

use crate::{apic, pmi, run};
use core::arch::naked_asm;
use program_format::layout::{self, LEAVE_CALL, WINDOW, address, flag, page, slot_address, vector};

/// #DE and #UD: skips an instruction of two bytes.
#[unsafe(naked)]
pub extern "C" fn skip_two() {
    naked_asm!("add qword ptr [rsp], 2", "iretq")
}

/// #GP: goes on where the program left word in R14.
#[unsafe(naked)]
pub extern "C" fn resume() {
    naked_asm!("add rsp, 8", "mov [rsp], r14", "iretq")
}

/// #DB, #BP and INT n.
#[unsafe(naked)]
pub extern "C" fn back() {
    naked_asm!("iretq")
}

/// #PF: makes the page present if it was promised.
#[unsafe(naked)]
pub extern "C" fn page_fault() {
    naked_asm!(
        "push rax",
        "mov rax, cr2",
        "sub rax, {window}",
        "shr rax, 12",
        "cmp rax, {pages}",
        "jae 2f",
        "shl eax, 3",
        "add eax, {table}",
        // Promised, and not present yet.
        "test dword ptr [rax], {demand}",
        "jz 2f",
        "test dword ptr [rax], {present}",
        "jnz 2f",
        "or dword ptr [rax], {present}",
        // As a kernel copies a page: what the instruction has accessed is none of this copy's.
        "push rcx; push rsi; push rdi",
        "mov rsi, cr2",
        "and rsi, -4096",
        "lea rdi, [rsp - 64]",
        "mov ecx, 3",
        "cld",
        "rep movsq",
        "pop rdi; pop rsi; pop rcx",
        "pop rax",
        "add rsp, 8",
        "iretq",
        "2: jmp {unexpected}",
        window = const WINDOW,
        pages = const layout::PAGES,
        table = const address(page::TABLE),
        demand = const flag::DEMAND,
        present = const flag::PRESENT,
        unexpected = sym unexpected_page_fault,
    )
}

/// Ends a stay in ring 3.
#[unsafe(naked)]
pub extern "C" fn leave() {
    naked_asm!(
        "mov rsp, [{rsp}]",
        "sti",
        "jmp [{rip}]",
        rsp = const slot_address(layout::slot::BACK_RSP),
        rip = const slot_address(layout::slot::BACK_RIP),
    )
}

/// SYSCALL: the same, or straight back.
#[unsafe(naked)]
pub extern "C" fn system_call() {
    naked_asm!(
        "cmp eax, {leave_call}",
        "je {leave}",
        "sysretq",
        leave_call = const LEAVE_CALL,
        leave = sym leave,
    )
}

/// A device interrupt.
#[unsafe(naked)]
pub extern "C" fn device() {
    naked_asm!(
        "inc qword ptr [{devices}]",
        "mov dword ptr [{eoi}], 0",
        "iretq",
        devices = const slot_address(layout::slot::DEVICES),
        eoi = const apic::register(apic::EOI),
    )
}

macro_rules! interruption {
    ($vector:expr) => {
        naked_asm!(
            "push rax", "push rcx", "push rdx", "push rsi", "push rdi",
            "push r8", "push r9", "push r10", "push r11",
            "cld",
            "mov edi, {vector}",
            // The frame's RIP.
            "mov rsi, [rsp + 72]",
            "call {note}",
            "pop r11", "pop r10", "pop r9", "pop r8",
            "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax",
            "iretq",
            vector = const $vector,
            note = sym pmi::note,
        )
    };
}

/// The PMI as a fixed interrupt.
#[unsafe(naked)]
pub extern "C" fn pmi() {
    interruption!(vector::PMI as u32)
}

/// The PMI as an NMI, or one that the program sent itself.
#[unsafe(naked)]
pub extern "C" fn nmi() {
    interruption!(2)
}

macro_rules! unexpected {
    ($name:ident, $vector:expr) => {
        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                "mov edi, {vector}",
                "mov rsi, [rsp]",
                "mov rdx, [rsp + 8]",
                "mov rcx, cr2",
                "mov rsp, [rip + {stack}]",
                "and rsp, -16",
                "sub rsp, 16",
                "cld",
                "call {abandon}",
                "jmp {stopped}",
                vector = const $vector,
                stack = sym run::RUNNER_STACK,
                abandon = sym run::abandon,
                stopped = sym run::stopped,
            )
        }
    };
}
unexpected!(unexpected_page_fault_at, 14);
unexpected!(unexpected_double_fault, 8);
unexpected!(unexpected_tss, 10);
unexpected!(unexpected_segment, 11);
unexpected!(unexpected_stack, 12);

/// RAX is on the stack above the error code.
#[unsafe(naked)]
extern "C" fn unexpected_page_fault() {
    naked_asm!("pop rax", "jmp {at}", at = sym unexpected_page_fault_at)
}

/// Exceptions that no program raises, by vector.
pub const UNEXPECTED: [(u8, extern "C" fn()); 4] = [
    (8, unexpected_double_fault),
    (10, unexpected_tss),
    (11, unexpected_segment),
    (12, unexpected_stack),
];
