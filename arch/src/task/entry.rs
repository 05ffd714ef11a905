//! The ways in for the vectors by which tasks come back to the kernel.
//!
//! The registers are pushed where [`crate::descriptors::IST_TASK`] says, which is the context of the one that is interrupted.
//! So they are kept where they are, the handler takes another stack, and the interrupt returns with whichever registers it is
//! told. An exception goes the common way.

use super::{Cause, START_VECTOR, TICK_VECTOR, ended, entered, ticked};
use crate::interrupts::deferring::{PROCESSOR, close, open};
use crate::pmu::Deferred;
use crate::smp::Processor;
use crate::trap::TrapFrame;
use crate::vectors::{EXIT_VECTOR, MARK_VECTOR, READ_VECTOR, WAIT_VECTOR, YIELD_VECTOR};
use core::arch::naked_asm;

/// Each vector's, and the one that no counter of ring 0 sees more of than its ends ([`crate::interrupts::deferring`]).
pub(super) const ALL: [(u8, [extern "C" fn(); 2]); 7] = [
    (START_VECTOR, [start, deferring::start]),
    (YIELD_VECTOR, [yields, deferring::yields]),
    (EXIT_VECTOR, [exit, deferring::exit]),
    (READ_VECTOR, [reads, deferring::reads]),
    (MARK_VECTOR, [marks, deferring::marks]),
    (WAIT_VECTOR, [waits, deferring::waits]),
    (TICK_VECTOR, [tick, deferring::tick]),
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
entry!(marks, MARK_VECTOR, Mark, entered);
entry!(waits, WAIT_VECTOR, Wait, entered);
entry!(tick, TICK_VECTOR, Tick, ticked);

/// The same between a stop of the counters and a start. The NOPs are in place of those of the stubs of exceptions.
mod deferring {
    use super::*;

    macro_rules! entry {
        ($name:ident, $vector:ident, $cause:ident, $work:ident) => {
            #[unsafe(naked)]
            pub extern "C" fn $name() {
                naked_asm!(
                    "push 0",
                    "nop",
                    "push {vector}",
                    "nop",
                    "push rax", "push rbx", "push rcx", "push rdx", "push rsi", "push rdi", "push rbp",
                    "push r8", "push r9", "push r10", "push r11", "push r12", "push r13", "push r14", "push r15",
                    "cld",
                    "mov rdi, rsp",
                    close!(),
                    "mov rsp, [rdi + {stack}]",
                    "mov esi, {cause}",
                    "call {work}",
                    "mov rsp, rax",
                    open!(),
                    "pop r15", "pop r14", "pop r13", "pop r12", "pop r11", "pop r10", "pop r9", "pop r8",
                    "pop rbp", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rbx", "pop rax",
                    "add rsp, 16",
                    "iretq",
                    vector = const $vector as u32,
                    stack = const STACK,
                    cause = const Cause::$cause as u32,
                    work = sym $work,
                    processor = const PROCESSOR,
                    deferred = const Processor::DEFERRED,
                    offs = const Deferred::OFFS,
                    off = const Deferred::OFF,
                    ons = const Deferred::ONS,
                    on = const Deferred::ON,
                    closed = const Deferred::CLOSED,
                )
            }
        };
    }

    entry!(start, START_VECTOR, Start, entered);
    entry!(yields, YIELD_VECTOR, Yield, entered);
    entry!(exit, EXIT_VECTOR, Exit, ended);
    entry!(reads, READ_VECTOR, Read, entered);
    entry!(marks, MARK_VECTOR, Mark, entered);
    entry!(waits, WAIT_VECTOR, Wait, entered);
    entry!(tick, TICK_VECTOR, Tick, ticked);
}
