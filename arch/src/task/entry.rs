//! The ways in for the vectors by which tasks come back to the kernel.
//!
//! The registers are pushed where [`crate::descriptors::IST_TASK`] says, which is the context of the one that is interrupted.
//! So they are kept where they are, the handler takes another stack, and the interrupt returns with whichever registers it is
//! told. An exception goes the common way.

use super::{
    Cause, EXIT_VECTOR, READ_VECTOR, START_VECTOR, TICK_VECTOR, WAIT_VECTOR, YIELD_VECTOR, ended,
    entered, ticked,
};
use crate::interrupts::TrapFrame;
use core::arch::naked_asm;

/// Each vector's.
pub(super) const ALL: [(u8, extern "C" fn()); 6] = [
    (START_VECTOR, start),
    (YIELD_VECTOR, yields),
    (EXIT_VECTOR, exit),
    (READ_VECTOR, reads),
    (WAIT_VECTOR, waits),
    (TICK_VECTOR, tick),
];

/// From the registers to what says where the handler's stack is: after the pointer to the processor.
const STACK: usize = size_of::<TrapFrame>() + 8;

macro_rules! entry {
    ($name:ident, $vector:ident, $cause:ident, $work:ident) => {
        #[unsafe(naked)]
        extern "C" fn $name() {
            naked_asm!(
                "push 0",
                "push {vector}",
                "push rax", "push rbx", "push rcx", "push rdx", "push rsi", "push rdi", "push rbp",
                "push r8", "push r9", "push r10", "push r11", "push r12", "push r13", "push r14", "push r15",
                // The interrupted code may have set DF; the ABI wants it clear.
                "cld",
                "mov rdi, rsp",
                "mov rsp, [rdi + {stack}]",
                "mov esi, {cause}",
                "call {work}",
                "mov rsp, rax",
                "pop r15", "pop r14", "pop r13", "pop r12", "pop r11", "pop r10", "pop r9", "pop r8",
                "pop rbp", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rbx", "pop rax",
                "add rsp, 16",
                "iretq",
                vector = const $vector as u32,
                stack = const STACK,
                cause = const Cause::$cause as u32,
                work = sym $work,
            )
        }
    };
}

entry!(start, START_VECTOR, Start, entered);
entry!(yields, YIELD_VECTOR, Yield, entered);
entry!(exit, EXIT_VECTOR, Exit, ended);
entry!(reads, READ_VECTOR, Read, entered);
entry!(waits, WAIT_VECTOR, Wait, entered);
entry!(tick, TICK_VECTOR, Tick, ticked);
