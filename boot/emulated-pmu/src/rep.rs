//! Searching code for repeated string instructions.
//!
//! Instructions of x86 have no fixed places, so every byte that could begin one counts: a repeat prefix, further
//! prefixes in any order, a REX prefix, and an opcode of a string instruction.

use crate::step;
use iced_x86::FlowControl;

/// Repeat prefixes.
const REPEAT: [u8; 2] = [0xf2, 0xf3];
/// Longest instruction: so many bytes in front of the opcode at most.
const MAX_PREFIXES: usize = 14;

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3 | 0x40..=0x4f)
}

fn is_string_operation(byte: u8) -> bool {
    // INS, OUTS; MOVS, CMPS; STOS, LODS, SCAS.
    matches!(byte, 0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf)
}

/// Offsets in `page` at which a repeated string instruction could begin. One that begins in its last bytes and ends in
/// the next page counts, as the next page is not looked at; so does, for each, every longer reading with more prefixes
/// in front.
pub fn candidates(page: &[u8]) -> impl Iterator<Item = usize> + '_ {
    (0..page.len()).filter(|&start| is_prefix(page[start]) && could_begin(&page[start..]))
}

/// Candidates that are also where an instruction begins, if the page holds code as compilers make it: it is decoded
/// from its first bytes on, from after everything that execution does not fall through, and from `entry`, where the guest
/// is. Decoding that begins at a wrong place soon meets the right one. What this cannot see is an instruction that is
/// reached by a jump into the middle of another.
pub fn decoded_candidates(
    page: &[u8],
    entry: Option<usize>,
    bits: u32,
) -> impl Iterator<Item = usize> + '_ {
    let mut begins = Begins { known: [0; PAGE / 64] };
    if candidates(page).next().is_some() {
        for start in (0..step::MAX_BYTES).chain(entry) {
            begins.follow(page, start, bits);
        }
    }
    candidates(page).filter(move |&offset| begins.has(offset))
}

const PAGE: usize = 4096;
/// Compilers align functions to as many bytes.
const ALIGNMENT: usize = 16;

/// Where instructions begin.
struct Begins {
    known: [u64; PAGE / 64],
}

impl Begins {
    fn has(&self, offset: usize) -> bool {
        self.known[offset / 64] >> (offset % 64) & 1 != 0
    }

    /// Decodes from `at` on, until it meets what has been decoded.
    fn follow(&mut self, page: &[u8], mut at: usize, bits: u32) {
        let mut waiting = None;
        while at < page.len() {
            if self.has(at) {
                match waiting.take() {
                    Some(next) => at = next,
                    None => return,
                }
                continue;
            }
            self.known[at / 64] |= 1 << (at % 64);
            let Some(instruction) = step::decode(&page[at..], at as u64, bits) else {
                at += 1;
                continue;
            };
            let falls_through = matches!(
                instruction.flow_control(),
                FlowControl::Next
                    | FlowControl::ConditionalBranch
                    | FlowControl::Call
                    | FlowControl::IndirectCall
            );
            at += instruction.len();
            // After it there may be data, and another function.
            if !falls_through && waiting.is_none() {
                waiting = Some(at.next_multiple_of(ALIGNMENT));
            }
        }
        if let Some(next) = waiting {
            self.follow(page, next, bits);
        }
    }
}

fn could_begin(bytes: &[u8]) -> bool {
    let mut repeated = false;
    for (index, &byte) in bytes.iter().enumerate().take(MAX_PREFIXES + 1) {
        if repeated && is_string_operation(byte) {
            return true;
        }
        if index == MAX_PREFIXES || !is_prefix(byte) {
            return false;
        }
        repeated |= REPEAT.contains(&byte);
    }
    // The page ended among the prefixes.
    repeated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Kind;
    use proptest::prelude::*;

    fn found(bytes: &[u8]) -> Vec<usize> {
        candidates(bytes).collect()
    }

    #[test]
    fn string_instructions_are_found_and_other_uses_of_the_prefix_are_not() {
        assert_eq!(found(&[0x90, 0xf3, 0xa4, 0x90]), [1]);
        assert_eq!(found(&[0xf3, 0x48, 0xab, 0xc3]), [0]);
        // addsd, pause, endbr64, a string instruction without prefix.
        assert_eq!(
            found(&[0xf2, 0x0f, 0x58, 0xc1, 0xf3, 0x90, 0xf3, 0x0f, 0x1e, 0xfa, 0xa4, 0xc3]),
            []
        );
        // With an address-size prefix in front it could begin at either.
        assert_eq!(found(&[0x67, 0xf3, 0xa4, 0x90]), [0, 1]);
    }

    #[test]
    fn one_that_crosses_the_end_counts() {
        assert_eq!(found(&[0x90, 0xf3]), [1]);
        assert_eq!(found(&[0x90, 0xf3, 0x48]), [1]);
        assert_eq!(found(&[0x90, 0x48]), []);
    }

    fn page(code: &[u8]) -> Vec<u8> {
        let mut page = vec![0x90; PAGE];
        page[100..100 + code.len()].copy_from_slice(code);
        page
    }

    #[test]
    fn bytes_within_other_instructions_are_no_candidates_once_decoded() {
        // mov eax, 0xa4f3; rep movsb; ret
        let page = page(&[0xb8, 0xf3, 0xa4, 0, 0, 0xf3, 0xa4, 0xc3]);
        assert_eq!(found(&page), [101, 105]);
        let decoded: Vec<usize> = decoded_candidates(&page, None, 64).collect();
        assert_eq!(decoded, [105]);
        // The guest is in the middle of the MOV: so it is one.
        let decoded: Vec<usize> = decoded_candidates(&page, Some(101), 64).collect();
        assert_eq!(decoded, [101, 105]);
    }

    #[test]
    fn functions_behind_data_are_found() {
        // ret; the first bytes of a MOV as data; at the next multiple of 16, rep stosb.
        let page = page(&[0xc3, 0xb8, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xf3, 0xaa, 0xc3]);
        let decoded: Vec<usize> = decoded_candidates(&page, None, 64).collect();
        assert_eq!(decoded, [112]);
    }

    proptest! {
        #[test]
        fn decoding_leaves_out_and_adds_nothing(
            code in prop::collection::vec(any::<u8>(), 0..2000),
            entry in 0..PAGE,
        ) {
            let mut page = vec![0xf3; PAGE];
            page[..code.len()].copy_from_slice(&code);
            let all = found(&page);
            for offset in decoded_candidates(&page, Some(entry), 64) {
                prop_assert!(all.contains(&offset));
            }
        }

        /// Whatever the decoder takes for one, at any offset, is among the candidates.
        #[test]
        fn none_is_missed(bytes in prop::collection::vec(
            prop::sample::select(&[0xf2u8, 0xf3, 0x48, 0x66, 0x67, 0x2e, 0xa4, 0xa5, 0xab, 0xaf, 0x6d, 0x90, 0x0f][..]), 1..40,
        )) {
            let found = found(&bytes);
            for start in 0..bytes.len() {
                if let Some(instruction) = step::decode(&bytes[start..], 0, 64)
                    && matches!(step::kind(&instruction), Kind::Repeated(_))
                {
                    prop_assert!(found.contains(&start), "{:x?} at {}", bytes, start);
                }
            }
        }
    }
}
