//! Searching code for repeated string instructions.
//!
//! Instructions of x86 have no fixed places, so every byte that could begin one counts: a repeat prefix, further
//! prefixes in any order, a REX prefix, and an opcode of a string instruction.

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
    use crate::step::{self, Kind};
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

    proptest! {
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
