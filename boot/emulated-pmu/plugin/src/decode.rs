//! Decoding a block, whose mode QEMU does not tell.

use iced_x86::{Decoder, DecoderOptions, Instruction};

/// An instruction as QEMU has it.
#[derive(Clone, Debug)]
pub struct Raw {
    /// Its linear address, at which the block was translated.
    pub linear: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The instructions of a block, `None` for one that is not valid.
///
/// A block has one mode: 64, 32 or 16 bits, whichever takes the lengths that QEMU found. If several do, the widest is taken:
/// most instructions are the same then but for the width of operands, which QEMU's accesses tell. `legacy`: it is not that of 64 bits.
pub fn decode(block: &[Raw], legacy: bool) -> Vec<Option<Instruction>> {
    // Compatibility mode and less end at 4 GiB.
    let is_high = block.first().is_some_and(|first| first.linear >> 32 != 0);
    let modes: &[u32] = match (is_high, legacy) {
        (true, _) => &[64],
        (false, false) => &[64, 32, 16],
        (false, true) => &[32, 16],
    };
    let decoded = |bits: u32| block.iter().map(|raw| one(raw, bits)).collect::<Vec<_>>();
    let known = |list: &[Option<Instruction>]| list.iter().filter(|one| one.is_some()).count();
    let mut best = decoded(modes[0]);
    for bits in &modes[1..] {
        if known(&best) == block.len() {
            break;
        }
        let other = decoded(*bits);
        if known(&other) > known(&best) {
            best = other;
        }
    }
    best
}

fn one(raw: &Raw, bits: u32) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(bits, &raw.bytes, raw.linear, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid() && instruction.len() == raw.bytes.len()).then_some(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Code;

    fn codes(linear: u64, block: &[&[u8]]) -> Vec<Option<Code>> {
        codes_in(false, linear, block)
    }

    fn codes_in(legacy: bool, linear: u64, block: &[&[u8]]) -> Vec<Option<Code>> {
        let raw = block.iter().map(|bytes| Raw { linear, bytes: bytes.to_vec() });
        let decoded = decode(&raw.collect::<Vec<_>>(), legacy);
        decoded.into_iter().map(|one| one.map(|instruction| instruction.code())).collect()
    }

    #[test]
    fn the_lengths_tell_the_mode() {
        // INC EAX, which is a prefix in 64-bit mode, and MOV EAX, [moffs32].
        let block: &[&[u8]] = &[&[0x40], &[0xa1, 1, 2, 3, 4], &[0x50]];
        let is_32 = [Some(Code::Inc_r32), Some(Code::Mov_EAX_moffs32), Some(Code::Push_r32)];
        assert_eq!(codes(0x1000, block), is_32);
        // The same opcodes with 16-bit operands and addresses.
        let block: &[&[u8]] = &[&[0x40], &[0xa1, 1, 2], &[0x50]];
        let is_16 = [Some(Code::Inc_r16), Some(Code::Mov_AX_moffs16), Some(Code::Push_r16)];
        assert_eq!(codes(0x1000, block), is_16);
        assert_eq!(codes(0x1000, &[&[0x50]]), [Some(Code::Push_r64)]);
        assert_eq!(codes(0x1_0000_0000, &[&[0x40]]), [None]);
    }

    /// ARPL has the bytes of MOVSXD, and what one of them stores the other does not.
    #[test]
    fn e1_without_long_mode_no_code_has_64_bits() {
        let block: &[&[u8]] = &[&[0x63, 0x03], &[0x9d]];
        assert_eq!(codes_in(true, 0x1000, block), [Some(Code::Arpl_r32m16_r32), Some(Code::Popfd)]);
        let is_64 = [Some(Code::Movsxd_r32_rm32), Some(Code::Popfq)];
        assert_eq!(codes_in(false, 0x1000, block), is_64);
        let is_16: &[&[u8]] = &[&[0xa1, 1, 2], &[0x9d]];
        assert_eq!(codes_in(true, 0x1000, is_16), [Some(Code::Mov_AX_moffs16), Some(Code::Popfw)]);
    }

    #[test]
    fn what_is_not_valid_does_not_hide_the_rest() {
        let block: &[&[u8]] = &[&[0x48, 0xff, 0xc0], &[0x0f, 0x0b], &[0x0f, 0xff, 0xff, 0xff]];
        assert_eq!(codes(0x1000, block), [Some(Code::Inc_rm64), Some(Code::Ud2), None]);
    }
}
