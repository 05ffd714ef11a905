//! The ways into the handlers in Rust that let counters continue as the last thing before the return.

use super::ControlBlock;
use super::entry::{interrupted, processor};
use super::handling::{Around, AroundAll};
use super::ibs;
use super::service::{handle, handle_tick};
use crate::smp::Processor;
use crate::trap::TrapFrame;
use core::arch::naked_asm;
use core::mem::offset_of;

/// Instructions of an interrupt's end that a counter sees which was frozen until then: `add`, `dec` and `jnz` after the
/// write, 15 POPs, `add` and IRETQ.
pub(super) const SERVICED_TAIL: u64 = 3 + 17;

/// What a counter sees of an interrupt that stops `count` counters one by one: 27 instructions up to its own write if that
/// is the first, [`SERVICED_TAIL`] after it if it is the last, and 7 for each other write before or after.
pub(super) const fn serviced(count: u64) -> u64 {
    27 + SERVICED_TAIL + 7 * (count - 1)
}

/// Where the writes around a PMI's handler are in the processor's block, around a tick's, and around that of instruction-based
/// samples.
const OVERFLOW: usize = offset_of!(ControlBlock, around) + offset_of!(AroundAll, overflow);
const TICK: usize = offset_of!(ControlBlock, around) + offset_of!(AroundAll, tick);
const SAMPLE: usize = offset_of!(ControlBlock, around) + offset_of!(AroundAll, sample);

/// Puts the interrupted code's registers into a [`TrapFrame`] as the common stub does, with the writes around the call. The
/// processor's block is found by the word above the frame ([`Processor`]), so that processors sample at the same time.
macro_rules! entry {
    ($name:ident, $around:ident, $work:ident) => {
        #[unsafe(naked)]
        pub(super) extern "C" fn $name() {
            naked_asm!(
                "push 0", "push 0",
                "push rax", "push rbx", "push rcx", "push rdx", "push rsi", "push rdi", "push rbp",
                "push r8", "push r9", "push r10", "push r11", "push r12", "push r13", "push r14", "push r15",
                "cld",
                "mov rbx, [rsp + {above}]",
                "mov ebp, [rbx + {stops}]",
                "test ebp, ebp",
                "jz 3f",
                "lea rsi, [rbx + {before}]",
                "2: mov ecx, [rsi]",
                "mov eax, [rsi + 8]",
                "mov edx, [rsi + 12]",
                "wrmsr",
                "add rsi, 16",
                "dec ebp",
                "jnz 2b",
                "3: mov rdi, rsp",
                "call {work}",
                "test al, al",
                "jz 5f",
                "mov ebp, [rbx + {resumes}]",
                "test ebp, ebp",
                "jz 5f",
                "lea rsi, [rbx + {after}]",
                "4: mov ecx, [rsi]",
                "mov eax, [rsi + 8]",
                "mov edx, [rsi + 12]",
                "wrmsr",
                "add rsi, 16",
                "dec ebp",
                "jnz 4b",
                "5: pop r15", "pop r14", "pop r13", "pop r12", "pop r11", "pop r10", "pop r9", "pop r8",
                "pop rbp", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rbx", "pop rax",
                "add rsp, 16",
                "iretq",
                above = const size_of::<TrapFrame>(),
                work = sym $work,
                stops = const $around + Around::STOPS,
                before = const $around + Around::BEFORE,
                resumes = const $around + Around::RESUMES,
                after = const $around + Around::AFTER,
            )
        }
    };
}

entry!(on_overflow, OVERFLOW, overflow);
entry!(on_tick, TICK, ticked);
entry!(on_sample, SAMPLE, sampled);

/// Returns whether the counters continue.
extern "sysv64" fn overflow(frame: &TrapFrame) -> bool {
    // SAFETY: this handler and whoever holds LVTPC masked never run at the same time.
    unsafe {
        let block = &mut *Processor::of_frame(frame).block();
        handle(block, &mut processor(block), &interrupted(frame));
        block.around.follow(block.stopped);
        !block.is_closed_at(frame.rip)
    }
}

/// Likewise.
extern "sysv64" fn ticked(frame: &TrapFrame) -> bool {
    // SAFETY: as above. Both handlers run with interrupts off, and NMIs are not chosen together with the timer.
    unsafe {
        let block = &mut *Processor::of_frame(frame).block();
        handle_tick(block, &mut processor(block), &interrupted(frame));
        block.around.follow(block.stopped);
        !block.is_closed_at(frame.rip)
    }
}

/// Likewise; the unit that samples continues with the counters.
extern "sysv64" fn sampled(frame: &TrapFrame) -> bool {
    // SAFETY: as above: both interrupts are fixed ones, or this one is the NMI, and no counter interrupts.
    unsafe {
        let block = &mut *Processor::of_frame(frame).block();
        let goes_on = ibs::handle(block, &mut processor(block), &interrupted(frame));
        let sampling = block.sampling().copied();
        block.around.sample.begin(sampling.as_ref());
        block.around.follow(block.stopped);
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted in the assembly above by hand: what a counter sees of an interrupt when it is the first, and the only one.
    #[test]
    fn an_interrupt_costs_its_instructions_by_the_number_of_counters() {
        assert_eq!(SERVICED_TAIL, 20);
        assert_eq!([1, 2, 8].map(serviced), [47, 54, 96]);
    }

    #[test]
    fn the_assembly_finds_the_writes_around_each_handler() {
        let block = std::boxed::Box::new(ControlBlock::EMPTY);
        let at = |around: &Around| (&raw const *around) as usize - (&raw const *block) as usize;
        let AroundAll { overflow, tick, sample } = &block.around;
        assert_eq!([OVERFLOW, TICK, SAMPLE], [at(overflow), at(tick), at(sample)]);
    }
}
