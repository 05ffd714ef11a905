//! Looking into a snippet's machine code.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, Register};
use protocol::job::LoopCounter;

/// Where the loop around the copies can keep its count: in R15 if the snippet leaves that alone. Code that
/// does not decode may do anything.
#[must_use]
pub fn loop_counter(init: &[u8], body: &[u8]) -> LoopCounter {
    if leaves_r15(init) && leaves_r15(body) {
        LoopCounter::R15
    } else {
        LoopCounter::Memory
    }
}

fn leaves_r15(code: &[u8]) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    decoder.into_iter().all(|instruction| {
        let used = factory.info(&instruction).used_registers();
        !instruction.is_invalid()
            && used
                .iter()
                .all(|used| used.register().full_register() != Register::R15)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_that_touches_r15_moves_the_count_to_memory() {
        let add_rax_rbx = [0x48, 0x01, 0xd8];
        let add_r15_rbx = [0x49, 0x01, 0xdf];
        let mov_r15b_al = [0x41, 0x88, 0xc7];
        let load_from_r15 = [0x49, 0x8b, 0x07];
        assert_eq!(loop_counter(&[], &add_rax_rbx), LoopCounter::R15);
        for code in [&add_r15_rbx, &mov_r15b_al, &load_from_r15] {
            assert_eq!(loop_counter(&[], code), LoopCounter::Memory);
            assert_eq!(loop_counter(code, &add_rax_rbx), LoopCounter::Memory);
        }
        assert_eq!(
            loop_counter(&[], &[0x06]),
            LoopCounter::Memory,
            "no instruction in 64-bit mode"
        );
    }
}
