//! Handlers whose instructions are counted. The comment after each says how many it executes.

use crate::line;
use crate::machine::{apic, exit};
use core::arch::naked_asm;
use core::sync::atomic::AtomicU64;
use x86_64::structures::idt::InterruptDescriptorTable;
use x86_64::{PrivilegeLevel, VirtAddr};

/// INT n of ring 0 and 3 that comes straight back.
pub const BACK: u8 = 0x81;
/// A device interrupt: ends itself at the APIC.
pub const DEVICE: u8 = 0x90;
/// The PMI.
pub const PMI: u8 = 0x91;
/// A device interrupt that takes long.
pub const SLOW: u8 = 0x92;
/// Ends a stay in ring 3.
pub const LEAVE: u8 = 0x82;

/// The stack to go back to from ring 3.
pub static RETURN_STACK: AtomicU64 = AtomicU64::new(0);

/// 2: skips the two bytes of UD2, or of a DIV.
#[unsafe(naked)]
extern "C" fn skip_two() {
    naked_asm!("add qword ptr [rsp], 2", "iretq")
}
pub const SKIP_TWO: u64 = 2;

/// 3: drops the error code and skips an instruction of three bytes.
#[unsafe(naked)]
extern "C" fn skip_three() {
    naked_asm!("add rsp, 8", "add qword ptr [rsp], 3", "iretq")
}
pub const SKIP_THREE: u64 = 3;

/// 3: drops the error code and skips WRMSR's or RDPMC's two bytes.
#[unsafe(naked)]
extern "C" fn skip_two_with_error() {
    naked_asm!("add rsp, 8", "add qword ptr [rsp], 2", "iretq")
}
pub const SKIP_TWO_WITH_ERROR: u64 = 3;

/// 1.
#[unsafe(naked)]
extern "C" fn back() {
    naked_asm!("iretq")
}

/// Where [`BACK`] begins.
pub fn back_address() -> u64 {
    back as *const () as u64
}

/// 5.
#[unsafe(naked)]
extern "C" fn device() {
    naked_asm!(
        "push rax",
        "movabs rax, {end}",
        "mov dword ptr [rax], 0",
        "pop rax",
        "iretq",
        end = const apic(0xb0),
    )
}
pub const DEVICE_INSTRUCTIONS: u64 = 5;

/// 2 until the stay is over: the handler gives up the frame and goes on where `rings::enter` waits.
#[unsafe(naked)]
extern "C" fn leave() {
    naked_asm!("mov rsp, [rip + {stack}]", "ret", stack = sym RETURN_STACK)
}

/// 1: SYSRET to where SYSCALL was.
#[unsafe(naked)]
pub extern "C" fn on_system_call() {
    naked_asm!("sysretq")
}

/// Anything else ends the guest.
#[unsafe(naked)]
extern "C" fn unexpected() {
    naked_asm!("mov rdi, rsp", "and rsp, -16", "call {report}", report = sym report)
}

extern "sysv64" fn report(stack: *const [u64; 4]) -> ! {
    // SAFETY: what the processor pushed.
    line!("panic: unexpected exception, stack {:#x?}", unsafe { *stack });
    exit(0x11)
}

/// Sets the gate of `vector`.
pub fn set(idt: &mut InterruptDescriptorTable, vector: u8, handler: extern "C" fn()) {
    let address = VirtAddr::new(handler as *const () as u64);
    // SAFETY: the handlers return with IRET, or not at all.
    unsafe {
        match vector {
            0 => idt.divide_error.set_handler_addr(address),
            1 => idt.debug.set_handler_addr(address),
            2 => idt.non_maskable_interrupt.set_handler_addr(address),
            3 => {
                idt.breakpoint.set_handler_addr(address).set_privilege_level(PrivilegeLevel::Ring3)
            }
            6 => idt.invalid_opcode.set_handler_addr(address),
            7 => idt.device_not_available.set_handler_addr(address),
            8 => idt.double_fault.set_handler_addr(address),
            11 => idt.segment_not_present.set_handler_addr(address),
            12 => idt.stack_segment_fault.set_handler_addr(address),
            13 => idt.general_protection_fault.set_handler_addr(address),
            14 => idt.page_fault.set_handler_addr(address),
            n @ 32.. => idt[n].set_handler_addr(address).set_privilege_level(PrivilegeLevel::Ring3),
            _ => return,
        };
    }
}

pub fn install(idt: &mut InterruptDescriptorTable) {
    for vector in 0..=255 {
        set(idt, vector, unexpected);
    }
    set(idt, 0, skip_two);
    set(idt, 1, crate::debug::on_debug);
    set(idt, 3, back);
    set(idt, 6, skip_two);
    set(idt, 13, skip_two_with_error);
    set(idt, 14, skip_three);
    set(idt, BACK, back);
    set(idt, LEAVE, leave);
    set(idt, DEVICE, device);
    set(idt, PMI, crate::overflow::on_pmi);
    set(idt, SLOW, crate::once::on_slow);
    set(idt, 2, crate::overflow::on_nmi);
}
