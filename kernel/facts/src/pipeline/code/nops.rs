//! Loops of NOPs of several lengths.

use super::Code;

/// Bytes of code in which a loop has always as many instructions.
pub const BLOCK: u32 = 32;
/// Where a loop lies, at a multiple of every block and line.
const START: u32 = 4096;
/// Bytes of `dec ecx` and `jnz`: two instructions.
const TAIL: u32 = 8;

/// NOPs of one byte to eight (SDM vol. 2, NOP; the longer ones as it recommends).
const NOPS: [&[u8]; 8] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0f, 0x1f, 0x00],
    &[0x0f, 0x1f, 0x40, 0],
    &[0x0f, 0x1f, 0x44, 0, 0],
    &[0x66, 0x0f, 0x1f, 0x44, 0, 0],
    &[0x0f, 0x1f, 0x80, 0, 0, 0, 0],
    &[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
];

/// Instructions of a loop of NOPs, with the two that end it, that fit into so many bytes.
#[must_use]
pub const fn most_nops(bytes: u32, in_block: u32) -> u32 {
    (bytes - 2 * BLOCK) / BLOCK * in_block
}

impl Code {
    /// A loop of `instructions`, `in_block` of them in each block of code, and fewer in the last one if they are no multiple. `dec ecx`
    /// and `jnz` are the last two: in one block, at whose end they do not end, as jumps there are not held by the micro-op caches of
    /// some processors (Intel, "Mitigations for Jump Conditional Code Erratum", 2.1). Returns where it is entered.
    pub(super) fn loop_of_nops(&mut self, instructions: u32, in_block: u32, rounds: u32) -> u32 {
        let instructions = instructions.max(2);
        let before = (instructions - 1) / in_block;
        let last = instructions - before * in_block;
        // The two that end it stay together: the block before has one less.
        let borrowed = u32::from(last == 1);
        // The loop's entry lies in the block before.
        let entry = START - 5;
        self.at(entry);
        self.rounds(rounds);
        for block in 1..=before {
            let less = if block == before { borrowed } else { 0 };
            self.block_of_nops(in_block - less);
        }
        self.short_nops(last + borrowed - 2, in_block);
        self.again(START);
        self.put(&[0xc3]);
        entry
    }

    /// So many NOPs that fill a block, as evenly as whole bytes can.
    fn block_of_nops(&mut self, nops: u32) {
        (0..nops).for_each(|nop| self.nop(BLOCK * (nop + 1) / nops - BLOCK * nop / nops));
    }

    /// So many NOPs as long as those of a full block, or shorter so that what ends the loop fits after them.
    fn short_nops(&mut self, nops: u32, in_block: u32) {
        let room = BLOCK - TAIL - 1;
        let length = (BLOCK / in_block).min(room / nops.max(1));
        (0..nops).for_each(|_| self.nop(length));
    }

    /// One of so many bytes, with prefixes that mean nothing beyond eight.
    fn nop(&mut self, length: u32) {
        let length = length as usize;
        let longest = NOPS.len();
        (longest..length).for_each(|_| self.put(&[0x66]));
        self.put(NOPS[length.clamp(1, longest) - 1]);
    }
}
