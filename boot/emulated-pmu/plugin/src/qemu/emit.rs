//! Reading what is being translated.

use super::api::api;
use super::types::{Block, Insn};

/// Longest instruction (SDM vol. 2, 2.3.11).
const MAX_BYTES: usize = 15;

/// The instructions of a block that is being translated.
pub fn instructions(block: Block) -> impl Iterator<Item = Insn> {
    // SAFETY: QEMU has just handed the block out.
    let length = unsafe { (api().length)(block) };
    // SAFETY: as above; the index is below the length.
    (0..length).map(move |index| unsafe { (api().instruction)(block, index) })
}

/// An instruction's bytes.
pub fn bytes(insn: Insn) -> Vec<u8> {
    // SAFETY: the instruction is of the block that is being translated.
    let size = unsafe { (api().size)(insn) }.min(MAX_BYTES);
    let mut bytes = vec![0; size];
    // SAFETY: as above; there is room for `size` bytes.
    let copied = unsafe { (api().bytes)(insn, bytes.as_mut_ptr().cast(), size) };
    bytes.truncate(copied);
    bytes
}
