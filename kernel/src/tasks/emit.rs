//! The code of a task:
//!
//! ```text
//! entry:  init
//! body:   the body, at a multiple of 64 bytes
//!         if there are turns: count down, back to body
//! exit:   int EXIT_VECTOR
//! ```
//!
//! All registers have their start values already ([`registers`]).

use crate::snippet::Place;
use crate::snippet::emit::{ALIGN, Code};
use arch::trap::TrapFrame;
use arch::vectors::EXIT_VECTOR;
use core::ops::Range;
use protocol::bits::Bits;
use protocol::job::LoopCounter;
use protocol::job::workload::Task;

/// What was emitted, as addresses.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Emitted {
    /// Where the task begins: the init code.
    pub init: Range<u64>,
    /// The body.
    pub body: Range<u64>,
    /// The software interrupt at the end.
    pub exit: u64,
}

/// Emits the code of `task` into `memory`, which lies at `place.code` when it runs.
///
/// # Panics
/// If the memory is too small: `protocol::job::workload` makes sure that checked tasks fit.
pub fn emit(memory: &mut [u8], place: &Place, task: &Task) -> Emitted {
    let mut code = Code::new(memory, place);
    // These are never executed.
    code.align(ALIGN, 0, task.init.len() as u64);
    let init = code.put(&task.init);
    let body = code.put(&task.body);
    if task.turns > 0 {
        code.loop_back(task.loop_counter, task.bits, body.start);
    }
    // int imm8
    let exit = code.put(&[0xcd, EXIT_VECTOR]).start;
    Emitted { init, body, exit }
}

/// Registers of a task at its start, those of a snippet: pointers where [`Place`] says, the loop's count in R15 if it is
/// kept there, all others 0. In 32-bit code EBX stands for R14.
#[must_use]
pub fn registers(place: &Place, task: &Task, emitted: &Emitted) -> TrapFrame {
    let [rsp, rbp, rdi, rsi, r14] = place.pointers;
    let r15 = if task.loop_counter == LoopCounter::R15 { task.turns } else { 0 };
    let rbx = if task.bits == Bits::Compatibility { r14 } else { 0 };
    TrapFrame { rip: emitted.init.start, rsp, rbp, rdi, rsi, rbx, r14, r15, ..TrapFrame::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};
    use protocol::job::workload::Ring;

    fn task(init: usize, turns: u64, loop_counter: LoopCounter) -> Task<'static> {
        Task {
            name: "x".into(),
            init: vec![0xf8; init].into(),
            body: vec![0xf9].into(),
            turns,
            loop_counter,
            extended_state: false,
            ring: Ring::User,
            parent: None,
            cpu: None,
            core: None,
            cpus: None,
            outlives: false,
            program: None,
            bits: protocol::bits::Bits::SixtyFour,
        }
    }

    #[test]
    fn t6_a_32_bit_task_counts_in_memory_and_has_its_pointer_in_ebx() {
        use Mnemonic::{Clc, Dec, Int, Jne, Stc};
        let place = Place { code: 0x10_0000, data: 0x18_0000, pointers: [1, 2, 3, 4, 5] };
        let task = Task { bits: Bits::Compatibility, ..task(1, 5, LoopCounter::Memory) };
        let mut memory = vec![0x90; 256];
        let emitted = emit(&mut memory, &place, &task);
        let start = registers(&place, &task, &emitted);
        assert_eq!((start.rbx, start.r14, start.r15), (5, 5, 0));
        let from = (emitted.init.start - place.code) as usize;
        let decoder =
            Decoder::with_ip(32, &memory[from..], emitted.init.start, DecoderOptions::NONE);
        let code: Vec<_> = decoder.into_iter().take(5).collect();
        let seen: Vec<_> = code.iter().map(iced_x86::Instruction::mnemonic).collect();
        assert_eq!(seen, [Clc, Stc, Dec, Jne, Int]);
        let at = place.data + crate::snippet::emit::COUNT_AT as u64;
        assert_eq!((code[2].memory_displacement64(), code[2].memory_size().size()), (at, 4));
        assert_eq!(code[3].near_branch_target(), emitted.body.start);
        assert_eq!((code[4].ip(), code[4].immediate8()), (emitted.exit, EXIT_VECTOR));
    }

    #[test]
    fn init_body_and_loop_follow_each_other_and_end_in_the_exit() {
        use Mnemonic::{Clc, Dec, INVALID, Int, Jne, Stc};
        let place = Place { code: 0x10_0000, data: 0x18_0000, pointers: [0; 5] };
        for (init, turns, counter, expected) in [
            (0, 0, LoopCounter::R15, &[Stc, Int][..]),
            (2, 5, LoopCounter::R15, &[Clc, Clc, Stc, Dec, Jne, Int]),
            (1, 5, LoopCounter::Memory, &[Clc, Stc, Dec, Jne, Int]),
        ] {
            let mut memory = vec![0x06; 256];
            let emitted = emit(&mut memory, &place, &task(init, turns, counter));
            let task = task(init, turns, counter);
            let start = registers(&place, &task, &emitted);
            let in_r15 = if counter == LoopCounter::R15 { turns } else { 0 };
            assert_eq!((start.rip, start.r15), (emitted.init.start, in_r15));
            assert_eq!((emitted.body.start % 64, emitted.init.end), (0, emitted.body.start));
            let from = (emitted.init.start - place.code) as usize;
            let decoder =
                Decoder::with_ip(64, &memory[from..], emitted.init.start, DecoderOptions::NONE);
            let code: Vec<_> =
                decoder.into_iter().take_while(|one| one.mnemonic() != INVALID).collect();
            let seen: Vec<_> = code.iter().map(iced_x86::Instruction::mnemonic).collect();
            assert_eq!(seen, expected);
            for one in &code {
                match one.mnemonic() {
                    Jne => assert_eq!(one.near_branch_target(), emitted.body.start),
                    Int => assert_eq!((one.ip(), one.immediate8()), (emitted.exit, EXIT_VECTOR)),
                    Dec if counter == LoopCounter::Memory => {
                        let at = place.data + crate::snippet::emit::COUNT_AT as u64;
                        assert_eq!(one.memory_displacement64(), at);
                    }
                    _ => {}
                }
            }
        }
    }
}
